#!/usr/bin/env node
'use strict';
/* The real Spotlight, from npm: it takes what sentry-profd sends, and its page shows the functions. */
const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {spawn} = require('node:child_process');
const {chromium} = require('playwright-core');

const BUILD = path.resolve(process.env.BUILD || 'build');
const RUN = path.join(BUILD, 'pictures/node_modules/@spotlightjs/spotlight/dist/run.js');
const PORT = 18971;
const NODE_MIN = 20; /* Spotlight's; Debian 12 has 18. */
const started = [];

/* Its first line on either output that matches. */
function start(argv, pattern) {
	const child = spawn(argv[0], argv.slice(1), {stdio: ['ignore', 'pipe', 'pipe']});

	started.push(child);
	return new Promise((resolve, reject) => {
		child.on('exit', status => reject(new Error(argv[0] + ' has ended: ' + status)));
		for (const out of [child.stdout, child.stderr])
			out.on('data', text => pattern.test(text) && resolve(child));
	});
}

function ended(argv) {
	const child = spawn(argv[0], argv.slice(1), {stdio: 'inherit'});

	started.push(child);
	return new Promise(resolve => child.on('exit', resolve));
}

async function main() {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'spotlight.'));
	const stats = path.join(dir, 'stats.json'), output = path.join(dir, 'output');
	let browser;

	try {
		await start([process.execPath, RUN, 'server', '-p', String(PORT)], /listening/);
		const target = await start([path.join(BUILD, 'targets/shares')], /ready/);
		assert.strictEqual(await ended([path.join(BUILD, 'sentry-profd'), '--pid', String(target.pid),
			'--duration', '3', '--quiet', '--spool', 'none', '--release', 'r@1', '--output', output, '--stats', stats,
			`--spotlight=http://localhost:${PORT}/stream`]), 0);
		/* Sent: answered by 200. */
		assert.deepStrictEqual(JSON.parse(fs.readFileSync(stats)).spotlight, {sent: 1, discarded: {}});
		const [file] = fs.readdirSync(output);
		const [, id] = /"profiler_id":"([0-9a-f]{32})"/.exec(fs.readFileSync(path.join(output, file)));

		browser = await chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox']});
		const page = await browser.newPage();
		await page.goto(`http://localhost:${PORT}/telemetry/traces/${id}`);
		for (const text of [`shares ${target.pid}`, 'busy_seventy', 'busy_thirty'])
			await page.getByText(text).first().waitFor({timeout: 120000});
		await page.screenshot({path: path.join(BUILD, 'pictures/spotlight.png')});
		console.log('ok    spotlight');
	} finally {
		if (browser)
			await browser.close();
		started.forEach(child => child.removeAllListeners('exit').kill());
		fs.rmSync(dir, {recursive: true, force: true});
	}
}

if (parseInt(process.versions.node, 10) < NODE_MIN)
	console.log(`skip  spotlight: it needs Node.js ${NODE_MIN}, this is ${process.versions.node}`);
else
	main().catch(error => {
		console.error('FAIL  spotlight: ' + error.stack);
		process.exit(1);
	});
