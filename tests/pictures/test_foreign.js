#!/usr/bin/env node
'use strict';
/*
 * Chunks that sentry-profctl convert has written in the formats of others, read by programs of these:
 * flamegraph.pl, speedscope, go tool pprof, pprof-format, Firefox Profiler. Each has to come to the
 * same total for each function and thread as the chunks.
 */
const assert = require('node:assert');
const {execFileSync, spawn} = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const {pathToFileURL} = require('node:url');
const zlib = require('node:zlib');
const Ajv = require('ajv');
const {Profile} = require('pprof-format');
const {BUILD, PATIENCE_MS, newPage, run} = require('./page.js');

const OUT = path.join(BUILD, 'foreign');
const PROFCTL = path.resolve(process.env.BUILD || 'build', 'sentry-profctl');
const FLAMEGRAPH = '/usr/share/perl5/Devel/NYTProf/flamegraph.pl'; /* of libdevel-nytprof-perl */
const SPEEDSCOPE = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release');
const FIREFOX = require.resolve('@firefox-devtools/profiler-cli');

/* The chunks. */

const FRAMES = [
	{function: 'main', package: '/opt/shop/bin/shop', filename: 'main.c', lineno: 12},
	{function: 'handle(request const&)', package: '/opt/shop/bin/shop', filename: 'http.cc', lineno: 88},
	{function: 'std::map<int, char const*>::operator[](int&&)', package: '/opt/shop/bin/shop'},
	{function: 'walk', package: '/opt/shop/lib/libtree.so'}, /* calls itself */
	{function: 'größe', package: '/opt/shop/lib/libtree.so'},
	{function: 'free', package: '/usr/lib/libc.so.6'},
	{function: 'free', package: '/usr/lib/libjemalloc.so.2'},
	{function: '<T as core::fmt::Display>::fmt', package: '/opt/shop/bin/shop'},
	{package: '/usr/lib/libz.so.1'},
	{function: '__poll', package: '/usr/lib/libc.so.6'},
].map((frame, i) => ({instruction_addr: '0x' + (0x401000 + 64 * i).toString(16), in_app: true, ...frame}));
/* Leaf first. */
const STACKS = [
	[0], [1, 0], [2, 1, 0], [3, 0], [3, 3, 0], [4, 3, 3, 3, 0], [5, 1, 0], [6, 4, 3, 0], [7, 1, 0],
	[8, 7, 1, 0], [9, 0], [9], [],
];
/* Of two processes: the first has two chunks and two threads of one name. */
const PROCESSES = [
	{id: 'a'.repeat(32), threads: {10: 'main', 11: 'worker', 12: 'worker', 13: undefined}, chunks: 2},
	{id: 'b'.repeat(32), threads: {20: 'main', 21: 'i/o <1>'}, chunks: 1},
];
const LABELS = {10: 'main (10)', 11: 'worker (11)', 12: 'worker (12)', 13: '13', 20: 'main (20)', 21: 'i/o <1>'};
const SAMPLES = 40; /* of a thread and chunk */

/* The same numbers in every run. */
let seed = 27;

function random(n) {
	seed = Math.imul(seed, 1103515245) + 12345 & 0x7fffffff;
	return (seed >>> 8) % n;
}

function makeChunk(process, number) {
	const samples = [];

	for (let i = 0; i < SAMPLES; i++)
		for (const thread of Object.keys(process.threads)) {
			const stack = random(STACKS.length);
			const us = 1000000 * number + 9901 * i + random(4000);

			samples.push({timestamp: (1790000000000000 + us) / 1e6, thread_id: thread, stack_id: stack,
				...STACKS[stack][0] === 9 && {state: 'waiting'}});
		}
	samples.sort((a, b) => a.timestamp - b.timestamp);
	return {
		version: '2', profiler_id: process.id, chunk_id: String(number).repeat(32), platform: 'native', release: 'shop@1',
		profile: {
			frames: FRAMES, stacks: STACKS, samples,
			thread_metadata: Object.fromEntries(Object.entries(process.threads).map(([id, name]) => [id, name ? {name} : {}])),
		},
	};
}

/* {thread: {function: [microseconds in itself, and with what it called]}} */
class Totals {
	add(thread, name, self, total) {
		const functions = this[thread] ??= {};
		const of = functions[name] ??= [0, 0];

		of[0] += self;
		of[1] += total;
	}

	/* names: leaf first */
	addStack(thread, names, us) {
		if (us === 0 || names.length === 0)
			return;
		for (const name of new Set(names))
			this.add(thread, name, name === names[0] ? us : 0, us);
	}
}

/* A sample stands until the next one of its thread and chunk. Calls add(thread, names, us). */
function eachStack(chunks, add) {
	for (const {profile} of chunks) {
		const last = {};

		for (const sample of profile.samples) {
			const {thread_id: thread, timestamp} = sample;
			const before = last[thread];

			last[thread] = sample;
			if (before !== undefined)
				add(LABELS[thread], profile.stacks[before.stack_id].map(f => profile.frames[f].function ?? '[libz.so.1]'),
					Math.round(timestamp * 1e6) - Math.round(before.timestamp * 1e6));
		}
	}
}

const chunks = PROCESSES.flatMap(p => Array.from({length: p.chunks}, (_, i) => makeChunk(p, i)));
const wanted = new Totals();
const input = path.join(OUT, 'chunks.json');

function convert(name, ...options) {
	const file = path.join(OUT, name);

	execFileSync(PROFCTL, ['convert', input, '-o', file, ...options]);
	return file;
}

/* Readers. */

async function flamegraph_has_all_totals() {
	const found = new Totals(), boxes = new Totals();

	/* A box tells neither its thread nor the time of a function in itself. */
	const lines = fs.readFileSync(convert('p.folded', '--threads')).toString().split('\n');

	for (const thread of Object.keys(wanted)) {
		const stacks = lines.filter(line => line.startsWith(thread + ';')).map(line => line.slice(thread.length + 1));
		const svg = execFileSync('perl', [FLAMEGRAPH, '--minwidth', '0', '--countname', 'us'], {input: stacks.join('\n')}).toString();

		for (const [, name, us] of svg.matchAll(/<title>(.*) \(([\d,]+) us, [\d.]+%\)/g))
			if (name !== 'all')
				found.add(thread, name.replaceAll('&amp;', '&'), 0, Number(us.replaceAll(',', '')));
	}
	/* Each call has a box, so that what calls itself counts again; < and > become brackets. */
	eachStack(chunks, (thread, names, us) => {
		for (const name of names)
			boxes.add(thread, name.replaceAll('<', '(').replaceAll('>', ')'), 0, us);
	});
	assert.deepStrictEqual(found, boxes);
}

async function speedscope_takes_the_file_by_its_schema() {
	const validate = new Ajv({strict: false}).compile(
		JSON.parse(fs.readFileSync(path.join(SPEEDSCOPE, 'file-format-schema.json'))));

	validate(JSON.parse(fs.readFileSync(convert('p.speedscope.json'))));
	assert.deepStrictEqual(validate.errors, null);
}

/* "1.50s (75%)": microseconds, and half of its last digit. */
function shown(text) {
	const [, number, unit] = text.match(/^([\d.]+)(s|ms|µs|ns) \(/);
	const us = {s: 1e6, ms: 1e3, 'µs': 1, ns: 1e-3}[unit];

	return [Number(number) * us, us * 0.005];
}

function checkShown(rows, functions) {
	const left = structuredClone(functions), rounded = {};

	/* What has one name in two modules has two rows. */
	for (const [total, self, name] of rows)
		for (const [i, text] of [self, total].entries()) {
			const [us, half] = shown(text);

			left[name][i] -= us;
			(rounded[name] ??= [1e-6, 1e-6])[i] += half;
		}
	for (const name of Object.keys(left))
		for (const i of [0, 1])
			assert.ok(Math.abs(left[name][i]) <= rounded[name]?.[i], `${name}: ${functions[name]}`);
}

/* The cells of each row of a table that is not its head. */
function cells(page) {
	return page.locator('tr:has(td)').evaluateAll(list => list.map(row => [...row.cells].map(cell => cell.innerText.trim())));
}

async function speedscope_shows_all_totals() {
	const page = await newPage({viewport: {width: 1280, height: 1000}});
	const data = fs.readFileSync(convert('p.speedscope.json')).toString('base64');
	const script = path.join(OUT, 'speedscope.js');
	const faults = [], n = Object.keys(wanted).length;

	page.on('pageerror', error => faults.push(error.stack));
	page.on('dialog', dialog => faults.push('dialog: ' + dialog.message()));
	/* As speedscope's own command opens a file. */
	fs.writeFileSync(script, `speedscope.loadFileFromBase64('p.speedscope.json', '${data}')`);
	await page.goto(pathToFileURL(path.join(SPEEDSCOPE, 'index.html')).href + '#localProfilePath=' + script);
	await page.getByText('Sandwich').click();

	/* The list of threads, each with its number, and below it the functions of one. */
	const threads = (await cells(page)).slice(0, n).map(row => row[1]);

	assert.deepStrictEqual(threads.slice().sort(), Object.keys(wanted).sort());
	for (const [i, thread] of threads.entries()) {
		await page.getByText(`${thread} (${i + 1}/${n})`).waitFor();
		checkShown((await cells(page)).slice(n), wanted[thread]);
		await page.keyboard.press('n');
	}
	assert.deepStrictEqual(faults, []);
	await page.close();
}

async function pprof_format_has_all_totals() {
	const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(convert('p.pb.gz'))));
	const text = i => p.stringTable.strings[Number(i)];
	const functions = new Map(p.function.map(f => [Number(f.id), text(f.name)]));
	const locations = new Map(p.location.map(l => [Number(l.id), l.line.map(line => functions.get(Number(line.functionId)))]));
	const wall = p.sampleType.findIndex(t => text(t.type) === 'wall');
	const found = new Totals();

	assert.strictEqual(text(p.sampleType[wall].unit), 'nanoseconds');
	for (const sample of p.sample)
		found.addStack(text(sample.label.find(l => text(l.key) === 'thread').str),
			sample.locationId.flatMap(id => locations.get(Number(id))), Number(sample.value[wall]) / 1000);
	assert.deepStrictEqual(found, wanted);
}

async function go_tool_pprof_has_all_totals() {
	const file = convert('p.pb.gz');
	const found = new Totals();

	for (const thread of Object.keys(wanted)) {
		const pattern = '^' + thread.replace(/[()]/g, '\\$&') + '$';
		const table = execFileSync('go', ['tool', 'pprof', '-top', '-unit=us', '-nodefraction=0', '-nodecount=1000',
			'-sample_index=wall', '-tagfocus=thread=' + pattern, file], {stdio: ['ignore', 'pipe', 'ignore']}).toString();

		for (const [, self, total, name] of table.matchAll(/^ *(\d+)(?:us)? +[\d.]+% +[\d.]+% +(\d+)us +[\d.]+%  (.*)$/gm))
			found.add(thread, name, Number(self), Number(total));
	}
	assert.deepStrictEqual(found, wanted);
}

/*
 * Mozilla's reader of its format, without a network. Its command for loading gives up after half a
 * second, so its server is started here.
 */
async function firefox_has_all_totals() {
	const env = {...process.env, PROFILER_CLI_SESSION_DIR: path.join(OUT, 'firefox'), PROFILER_CLI_NO_SYMBOLICATE: '1'};
	const session = ['--session', 'foreign'];
	const server = spawn(process.execPath, [FIREFOX, '--daemon', convert('p.json', '--to', 'firefox'), ...session], {env, stdio: 'ignore'});
	const ask = (...words) => JSON.parse(execFileSync(process.execPath,
		[FIREFOX, 'thread', ...words, '--json', '--limit', '0', ...session], {env, stdio: ['ignore', 'pipe', 'pipe']}));
	const end = Date.now() + PATIENCE_MS;
	const found = new Totals();
	let list;

	try {
		while (list === undefined)
			try {
				list = ask('list');
			} catch (error) { /* it starts, or loads */
				await new Promise(done => setTimeout(done, 100));
				if (server.exitCode !== null || Date.now() > end)
					throw error;
			}
		for (const {threadHandle, name} of list.threads)
			for (const f of ask('functions', '--include-idle', '--thread', threadHandle).functions)
				found.add(name, f.name, Math.round(f.selfSamples * 1000), Math.round(f.totalSamples * 1000));
	} finally {
		server.kill();
	}
	assert.deepStrictEqual(found, wanted);
}

const tests = [
	flamegraph_has_all_totals, speedscope_takes_the_file_by_its_schema, speedscope_shows_all_totals,
	pprof_format_has_all_totals, go_tool_pprof_has_all_totals, firefox_has_all_totals,
];

eachStack(chunks, (...stack) => wanted.addStack(...stack));
fs.mkdirSync(OUT, {recursive: true});
fs.writeFileSync(input, chunks.map(chunk => JSON.stringify(chunk)).join('\n'));
/* test_foreign.js NAME: those whose name contains it. */
run(tests.filter(test => test.name.includes(process.argv[2] ?? '')));
