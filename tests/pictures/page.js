'use strict';
/*
 * What the tests of pages share: the browser, and a page as its user sees it. Faults that no test
 * expects (a message of the console, an exception, a request) fail every test.
 */
const assert = require('node:assert');
const path = require('node:path');
const {pathToFileURL} = require('node:url');
const {chromium} = require('playwright-core');

const BUILD = path.resolve(process.env.BUILD || 'build', 'pictures');
/* As in tests/integration/patience.py: what takes longer hangs. Playwright's own limit is 30 s. */
const PATIENCE_MS = 240000;
const ROW = 20; /* pixels, as in proto/export/html/graph.js */

let browser;

async function start() {
	browser = await chromium.launch({
		executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
		/* Its sandbox cannot be had by root, nor in most containers. */
		args: ['--no-sandbox'],
		timeout: PATIENCE_MS,
	});
}

/* A page of the browser; user is what it is told of its user. */
async function newPage(user) {
	const page = await browser.newPage(user);

	page.setDefaultTimeout(PATIENCE_MS);
	return page;
}

class User {
	static async open(file, options = {}) {
		const user = new User();

		user.page = await newPage({viewport: {width: 1280, height: 800}, colorScheme: 'light', ...options});
		user.faults = [];
		user.requests = [];
		user.page.on('console', message => {
			/* What the browser says of pixels(), not of the page. */
			if (!message.text().startsWith('Canvas2D: Multiple readback'))
				user.faults.push(message.type() + ': ' + message.text());
		});
		user.page.on('pageerror', error => user.faults.push(error.stack));
		user.page.on('dialog', dialog => user.faults.push('dialog: ' + dialog.message()));
		user.page.on('request', request => user.requests.push(request.url()));
		user.url = pathToFileURL(path.resolve(BUILD, file)).href;
		await user.page.goto(user.url);
		if (!options.isDamaged)
			await user.page.waitForSelector('main:not([hidden])', {timeout: 120000});
		return user;
	}

	async close() {
		assert.deepStrictEqual(this.faults, []);
		assert.deepStrictEqual(this.requests, [this.url]);
		await this.page.close();
	}

	async choose(label) {
		await this.page.getByRole('radio', {name: label, exact: true}).check({force: true});
	}

	text(selector) {
		return this.page.textContent(selector);
	}

	async canvas() {
		return this.page.locator('#canvas').boundingBox();
	}

	/* The function below the pointer at x of row r of the graph; null: none. top: the axis, if there is one. */
	async at(x, r, top = 0) {
		const box = await this.canvas();

		await this.page.mouse.move(box.x + x, box.y + top + (r + 0.5) * ROW);
		return this.page.evaluate(() => {
			const tip = document.getElementById('tip');

			return tip.hidden ? null : tip.querySelector('b').textContent;
		});
	}

	/* Where the boxes of a function begin and end in a row, as shares of the width of the graph. */
	async edges(name, r, top = 0) {
		const {width} = await this.canvas();
		let inside = -1;

		for (let x = 5; x < width && inside < 0; x += 15)
			if (await this.at(x, r, top) === name)
				inside = x;
		assert.ok(inside >= 0, `${name} is not in row ${r}`);

		const bisect = async (inner, outer) => {
			if (await this.at(outer, r, top) === name)
				return outer;
			while (Math.abs(outer - inner) > 0.5) {
				const middle = (inner + outer) / 2;

				if (await this.at(middle, r, top) === name)
					inner = middle;
				else
					outer = middle;
			}
			return inner;
		};

		return [await bisect(inside, 0) / width, await bisect(inside, width - 0.5) / width];
	}

	async share(name, r) {
		const [from, to] = await this.edges(name, r);

		return to - from;
	}

	async click(x, r) {
		const box = await this.canvas();

		await this.page.mouse.click(box.x + x, box.y + (r + 0.5) * ROW);
	}

	/* Waits for the next redraw. */
	redrawn() {
		return this.page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
	}

	async pixels() {
		await this.redrawn();
		return this.page.evaluate(() => {
			const canvas = document.getElementById('canvas');
			const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
			const colours = new Set();
			let hash = 0;

			for (let i = 0; i < data.length; i += 4) {
				const colour = data[i] << 16 | data[i + 1] << 8 | data[i + 2];

				colours.add(colour);
				hash = Math.imul(hash, 31) + colour | 0;
			}
			return {hash, colours: colours.size};
		});
	}

	/* Milliseconds of the last measure of that name. */
	measure(name) {
		return this.page.evaluate(n => performance.getEntriesByName(n, 'measure').pop().duration, name);
	}

	picture(name) {
		return this.page.screenshot({path: path.join(BUILD, name + '.png')});
	}
}

function near(value, expected, what) {
	assert.ok(Math.abs(value - expected) <= 0.01, `${what}: ${value.toFixed(4)} is not ${expected}`);
}

/* Runs all tests, each named by its function. */
async function run(tests) {
	let failed = 0;

	await start();
	for (const test of tests)
		try {
			await test();
			console.log('ok ' + test.name);
		} catch (error) {
			failed++;
			console.log('FAILED ' + test.name + '\n' + error.stack);
		}
	await browser.close();
	process.exitCode = failed > 0 ? 1 : 0;
}


module.exports = {BUILD, PATIENCE_MS, User, near, newPage, run};
