#!/usr/bin/env node
'use strict';
/* The flame graph of the format svg in Chromium: zoom by click, search, and no request. */
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {execFileSync} = require('node:child_process');
const {pathToFileURL} = require('node:url');
const {BUILD, near, newPage, run} = require('./page.js');

const NAMES = ['main', 'parse', 'read', '<script>alert(1)</script>'];
const WIDTH = 1200;

/* Of 10 s main;parse has 4, main;parse;read 2 and main;<script> 4. */
function chunk() {
	const stacks = [[1, 0], [2, 1, 0], [3, 0]];
	const of_second = [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2];

	return {
		version: '2', profiler_id: 'a'.repeat(32), chunk_id: 'b'.repeat(32), platform: 'native',
		profile: {
			frames: NAMES.map(name => ({function: name})), stacks, thread_metadata: {},
			samples: of_second.map((stack, i) => ({timestamp: 1000 + i, thread_id: '1', stack_id: stack, state: 'running'})),
		},
	};
}

async function open(answer) {
	const page = await newPage({viewport: {width: 1220, height: 300}});
	const file = path.join(BUILD, 'graph');
	const faults = [], requests = [];

	fs.writeFileSync(file + '.json', JSON.stringify(chunk()));
	execFileSync(path.join(BUILD, '../sentry-profctl'), ['convert', file + '.json', '-o', file + '.svg']);
	page.on('console', message => faults.push(message.text()));
	page.on('pageerror', error => faults.push(error.stack));
	page.on('dialog', dialog => dialog.type() === 'prompt' ? dialog.accept(answer) : faults.push(dialog.message()));
	page.on('request', request => requests.push(request.url()));
	await page.goto(pathToFileURL(file + '.svg').href);
	return {page, faults, requests};
}

async function close({page, faults, requests}) {
	assert.deepStrictEqual(faults, []);
	assert.strictEqual(requests.length, 1);
	await page.close();
}

/* The share of the width that the bar has now; null: it is hidden. */
function share(page, name) {
	return page.evaluate(([wanted, width]) => {
		const bar = [...document.querySelectorAll('g.f')].find(g => g.querySelector('title').textContent.startsWith(wanted + ' ('));

		return bar.style.display === 'none' ? null : bar.querySelector('rect').getAttribute('width') / width;
	}, [name, WIDTH]);
}

function click(page, selector, name) {
	return page.evaluate(([what, text]) => {
		const found = [...document.querySelectorAll(what)].find(e => text === null || e.textContent.startsWith(text));

		found.dispatchEvent(new MouseEvent('click', {bubbles: true}));
	}, [selector, name ?? null]);
}

async function widths_are_shares() {
	const user = await open();

	near(await share(user.page, 'all'), 1, 'all');
	near(await share(user.page, 'parse'), 0.6, 'parse');
	near(await share(user.page, 'read'), 0.2, 'read');
	near(await share(user.page, NAMES[3]), 0.4, NAMES[3]);
	await user.page.screenshot({path: path.join(BUILD, 'graph.png')});
	await close(user);
}

async function a_click_zooms() {
	const user = await open();

	await click(user.page, 'g.f', 'parse');
	near(await share(user.page, 'parse'), 1, 'parse');
	near(await share(user.page, 'read'), 1 / 3, 'read');
	near(await share(user.page, 'main'), 1, 'main, below');
	assert.strictEqual(await share(user.page, NAMES[3]), null);
	await user.page.screenshot({path: path.join(BUILD, 'graph-zoomed.png')});
	await click(user.page, '#unzoom');
	near(await share(user.page, 'parse'), 0.6, 'parse');
	await close(user);
}

/* The time of read is within that of parse. */
async function a_search_colours_and_sums_up() {
	const user = await open('parse|read');

	await click(user.page, '#search');
	assert.strictEqual(await user.page.textContent('#matched'), 'Matched: 60.0%');
	assert.strictEqual(await user.page.locator('rect.found').count(), 2);
	await close(user);
}

async function a_faulty_search_is_told() {
	const user = await open('(');

	await click(user.page, '#search');
	assert.match(await user.page.textContent('#matched'), /Invalid regular expression/);
	await close(user);
}

const tests = [widths_are_shares, a_click_zooms, a_search_colours_and_sums_up, a_faulty_search_is_told];

/* test_svg.js NAME: those whose name contains it. */
run(tests.filter(test => test.name.includes(process.argv[2] ?? '')));
