#!/usr/bin/env node
'use strict';
/* The page of sentry-profctl convert (proto/export/html/) in Chromium; what it shows is made by make_page.c. */
const assert = require('node:assert');
const {execFileSync} = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const {BUILD, User, near, newPage, run} = require('./page.js');

const SCRIPT = '<script>alert(1)</script>';

async function it_draws() {
	const user = await User.open('known.html');

	assert.ok((await user.pixels()).colours > 5);
	assert.strictEqual(await user.page.title(), 'shop@1.4.2');
	assert.match(await user.text('#facts'), /^10\.0 s running · 20\.0 s waiting · 3 threads · 1 process · within 10\.0 s/);
	await user.close();
}

async function widths_are_shares() {
	const user = await User.open('known.html');

	near(await user.share('all', 0), 1, 'all');
	near(await user.share('main', 1), 0.6, 'main');
	near(await user.share('parse_json', 3), 0.3, 'parse_json');
	near(await user.share(SCRIPT, 3), 0.2, SCRIPT);
	near(await user.share('[libz.so.1]', 4), 0.4, 'libz');
	await user.choose('Wall clock');
	near(await user.share('parse_json', 3), 0.1, 'parse_json of wall clock');
	await user.choose('Waiting');
	near(await user.share('main', 1), 0.2, 'main waiting');
	assert.strictEqual(await user.at(5, 2), '__poll');
	assert.strictEqual(await user.at(5, 3), null);
	await user.close();
}

async function a_click_zooms_and_esc_goes_back() {
	const user = await User.open('known.html');
	const before = await user.pixels();

	await user.click(20, 3);
	near(await user.share('parse_json', 3), 1, 'parse_json');
	near(await user.share('main', 1), 1, 'main');
	assert.strictEqual(await user.text('#box h2'), 'parse_json');
	assert.match(await user.text('#box'), /Self3\.00 s, 30\.0 %Total3\.00 s, 30\.0 %Module\/opt\/shop\/lib\/libjson\.so\.1in_appyes/);
	assert.match(await user.text('#box'), /0x401460 {2}\/src\/json\/parse\.c:301 {2}2\.00 s/);
	await user.page.keyboard.press('Escape');
	near(await user.share('parse_json', 3), 0.3, 'parse_json');

	/* Four turns of the wheel are one step back. */
	const box = await user.canvas();

	await user.page.mouse.move(box.x + 10, box.y + 70);
	for (let i = 0; i < 4; i++)
		await user.page.mouse.wheel(0, -100);
	await user.pixels();
	assert.ok(await user.share('parse_json', 3) > 0.5);
	await user.page.keyboard.press('Escape');
	near(await user.share('parse_json', 3), 0.3, 'parse_json');
	assert.notStrictEqual((await user.pixels()).hash, before.hash); /* it is selected */
	await user.close();
}

async function search_says_what_share_it_finds() {
	const user = await User.open('known.html');
	const before = await user.pixels();

	await user.page.getByRole('searchbox', {name: 'Search'}).fill('PARSE');
	assert.strictEqual(await user.text('#found'), '1 found, 30.0 % of the time');
	assert.notStrictEqual((await user.pixels()).hash, before.hash);
	assert.strictEqual(await user.page.locator('#functions tbody tr').count(), 1);
	await user.page.fill('#search', 'bin/shop');
	assert.strictEqual(await user.text('#found'), '4 found, 100.0 % of the time');
	await user.page.fill('#search', 'no such thing');
	assert.strictEqual(await user.text('#found'), 'Nothing found');
	await user.page.keyboard.press('Escape');
	assert.strictEqual((await user.pixels()).hash, before.hash);
	await user.close();
}

async function threads_have_names_and_times_and_change_the_graph() {
	const user = await User.open('known.html');
	const before = await user.pixels();
	const thread = user.page.getByRole('combobox', {name: 'Thread'});

	assert.deepStrictEqual(await thread.locator('option').allTextContents(), [
		'All threads', 'main (4242) · 6.00 s running', '<img src=x onerror=alert(1)> (4244) · 3.00 s running',
		'worker (4243) · 1.00 s running',
	]);
	await thread.selectOption({label: 'worker (4243) · 1.00 s running'});
	assert.notStrictEqual((await user.pixels()).hash, before.hash);
	near(await user.share('start_thread', 1), 1, 'start_thread');
	await user.choose('Time order');
	assert.strictEqual(await user.at(2, 3, 22), '[libz.so.1]');
	await thread.selectOption({label: 'main (4242) · 6.00 s running'});
	assert.strictEqual(await user.at(2, 2, 22), 'parse_json');
	await user.close();
}

async function names_are_short_and_unfold() {
	const user = await User.open('names.html');
	const [long, double] = ['long', 'double'].map(key => `shop::Index<..., std::set<${key}, ...>>::find(int) const`);
	const heading = user.page.locator('#box h2 button');

	near(await user.share(long, 3), 0.3, long);
	near(await user.share(double, 3), 0.2, double);
	await user.picture('names-tip');
	/* Figures first, and at most a third of the page, also for a whole name. */
	assert.match(await user.text('#tip'), /^\d/);
	await user.page.getByRole('button', {name: long}).click();
	assert.strictEqual(await heading.getAttribute('aria-expanded'), 'false');
	await heading.click();
	assert.match(await heading.textContent(), /^shop::Index<std::pair<shop::Customer const, .*std::set<long, std::less<long> > >::find/);
	await user.picture('names-unfolded');
	await heading.click();
	assert.strictEqual(await heading.textContent(), long);
	/* The rows of the table show what tells the two apart. */
	assert.deepStrictEqual(await user.page.$$eval('td button', buttons => buttons
		.filter(b => b.textContent.startsWith('shop::') && b.scrollHeight > b.clientHeight + 1).map(b => b.textContent)), []);
	/* Both forms are found. */
	for (const [text, n] of [['set<long, ...>>', 1], ['less<double>', 1], ['Customer', 2]]) {
		await user.page.fill('#search', text);
		assert.match(await user.text('#found'), new RegExp(`^${n} found`), text);
	}
	await user.close();
}

async function the_tip_takes_a_third_of_the_page() {
	for (const viewport of [{width: 1280, height: 800}, {width: 390, height: 500}]) {
		const user = await User.open('names.html', {viewport});

		/* A name without brackets is not short. */
		assert.match(await user.at(20, 2), /^long_name_of_c_/);
		const tip = await user.page.locator('#tip').boundingBox();

		assert.ok(tip.height <= viewport.height / 3, `${tip.height} of ${viewport.height}`);
		await user.close();
	}
}

async function programs_open() {
	const user = await User.open('programs.html');
	const thread = user.page.getByRole('combobox', {name: 'Thread'});
	const options = () => thread.locator('option').allTextContents();

	/* The process that executed make is one, with two programs. */
	assert.match(await user.text('#facts'), / 1515 threads · 504 processes /);
	assert.deepStrictEqual(await options(), ['All threads', 'cc1@3 · 501 processes · 150 s running',
		'make@2 · 1 process · 2.00 s running', 'sh@1 · 1 process · 1.00 s running',
		'unknown · 2 processes · 600 ms running']);
	await thread.selectOption({label: 'sh@1 · 1 process · 1.00 s running'});
	assert.strictEqual((await options()).length, 2 + 3);
	near(await user.share('main', 1), 0.6, 'main of sh');
	await thread.selectOption('');
	assert.strictEqual((await options()).length, 5, 'closed again');
	await thread.selectOption({label: 'cc1@3 · 501 processes · 150 s running'});
	assert.strictEqual(await user.page.locator('#thread optgroup').count(), 501);
	/* What distinguishes the processes: how they were started, cut at 120 characters. */
	assert.strictEqual(await user.page.locator('#thread optgroup').nth(8).getAttribute('label'),
		'process 4242 \u00b7 ' + ('cc1 -o 7.s ' + '0'.repeat(150)).slice(0, 120) + '\u2026');
	assert.strictEqual(await user.page.$eval('#thread', s => s.value), 'program 0');
	await user.close();
}

/* Two processes of a program whose main threads have other names, and whose pools run for longer. */
async function an_unknown_pid_is_not_made_up() {
	const chunk = (id, tids) => ({
		version: '2', profiler_id: id.repeat(32), chunk_id: id.repeat(32), platform: 'native', release: 'ui@1',
		profile: {
			frames: [{function: 'f'}], stacks: [[0]],
			samples: [[1, tids[0]], [1, tids[1]], [2, tids[0]], [9, tids[1]]].map(([timestamp, tid]) =>
				({timestamp, thread_id: String(tid), stack_id: 0, state: 'running'})),
			thread_metadata: {[tids[0]]: {name: 'ui'}, [tids[1]]: {name: 'pool'}},
		},
	});
	const file = path.join(BUILD, 'ui');

	fs.writeFileSync(file + '.json', JSON.stringify(chunk('a', [100, 105])) + JSON.stringify(chunk('b', [200, 205])));
	execFileSync(path.join(BUILD, '../sentry-profctl'), ['convert', file + '.json', '-o', file + '.html']);
	const user = await User.open('ui.html');

	await user.page.locator('#thread').selectOption({index: 1});
	assert.deepStrictEqual(await user.page.locator('#thread optgroup').evaluateAll(list => list.map(g => g.label)),
		['process of thread 100', 'process of thread 200']);
	await user.close();
}

async function processes_are_programs() {
	const user = await User.open('two.html');
	const thread = user.page.locator('#thread');

	assert.strictEqual(await user.page.title(), 'batch@7, shop@1.4.2', 'the longer one first');
	assert.match(await user.text('#facts'), /^21\.0 s running · 42\.0 s waiting · 6 threads · 2 processes/);
	near(await user.share('parse_json', 3), 0.3, 'parse_json');
	/* The thread that ran longest, of all programs. */
	await user.choose('Time order');
	assert.match(await thread.evaluate(s => s.selectedOptions[0].textContent), /^main \(4242\) · 6\.60 s/);
	assert.match(await thread.locator('option').nth(1).textContent(), /^batch@7 · 1 process/);
	await user.close();
}

async function time_order_shows_when() {
	const user = await User.open('known.html');
	const at = async (seconds, row) => user.at(seconds / 10 * (await user.canvas()).width, row, 22);

	await user.choose('Wall clock');
	await user.choose('Time order');
	/* The thread that ran most, as none was chosen. */
	assert.match(await user.page.$eval('#thread', s => s.selectedOptions[0].textContent), /^main/);
	for (const second of [0, 4, 9]) {
		assert.strictEqual(await at(second + 0.15, 2), 'parse_json');
		assert.strictEqual(await at(second + 0.4, 2), SCRIPT);
		assert.strictEqual(await at(second + 0.55, 2), null);
		assert.strictEqual(await at(second + 0.55, 1), 'handle_request');
		assert.strictEqual(await at(second + 0.8, 1), '__poll');
	}
	assert.match(await user.text('#tip'), /400 ms from 9\.60 s, waiting 400 ms/);
	assert.strictEqual(await at(5, 0), 'main');
	await user.choose('Running');
	assert.strictEqual(await at(4.8, 0), null);
	await user.choose('Waiting');
	assert.strictEqual(await at(4.8, 1), '__poll');
	assert.strictEqual(await at(4.15, 1), null);
	await user.close();
}

async function ready_time_has_a_switch_and_sums() {
	const user = await User.open('ready.html');
	const labels = () => user.page.$$eval('[name=kind] + span', spans => spans.filter(s => s.offsetWidth > 0).map(s => s.textContent));
	const first = () => user.page.$eval('#functions tbody tr', row => row.innerText.split(/\s/).filter(s => s !== '').join(' '));
	const signs = () => user.page.$$eval('#signs li', items => items.filter(li => li.offsetWidth > 0).map(li => li.textContent));

	assert.deepStrictEqual(await labels(), ['Running', 'Ready', 'Waiting', 'Wall clock']);
	assert.match(await user.text('#facts'), /^7\.00 s running · 3\.00 s ready · 20\.0 s waiting · 3 threads/);
	assert.deepStrictEqual(await user.page.locator('#thread option').allTextContents(), [
		'All threads', 'main (4242) · 4.00 s running, 2.00 s ready',
		'<img src=x onerror=alert(1)> (4244) · 2.00 s running, 1.00 s ready', 'worker (4243) · 1.00 s running',
	]);
	near(await user.share('parse_json', 3), 2 / 7, 'parse_json running');
	assert.deepStrictEqual(await signs(), []);
	await user.choose('Ready');
	near(await user.share('main', 1), 2 / 3, 'main ready');
	near(await user.share('parse_json', 3), 1 / 3, 'parse_json ready');
	near(await user.share('[libz.so.1]', 4), 1 / 3, 'libz ready');
	assert.match(await first(), /^1\.00 s 33\.3 % /);
	assert.deepStrictEqual(await signs(), ['ready']);
	await user.choose('Waiting');
	near(await user.share('main', 1), 0.2, 'main waiting');
	assert.deepStrictEqual(await signs(), ['waiting']);
	await user.choose('Wall clock');
	near(await user.share('handle_request', 2), 1 / 3, 'handle_request of wall clock');
	assert.deepStrictEqual(await signs(), ['ready', 'waiting']);
	await user.at(15, 1);
	assert.match(await user.text('#tip'), /^20\.0 s, 66\.7 %, ready 1\.00 s, waiting 16\.0 s.*start_thread/);
	await user.page.getByRole('button', {name: 'handle_request'}).click();
	assert.match(await user.text('#box'), /Total10\.0 s, 33\.3 %Runningself 0 s, total 7\.00 sReadyself 1\.00 s, total 3\.00 sModule/);
	await user.page.getByRole('button', {name: 'Callers and callees'}).click();
	await user.choose('Ready');
	near(await user.share('main', 0), 2 / 3, 'main as a caller, ready');
	await user.choose('Callers');
	near(await user.share('handle_request', 1), 1 / 3, 'handle_request as a leaf, ready');
	await user.close();
}

async function the_first_kind_of_time_is_one_that_the_profile_has() {
	const user = await User.open('only_ready.html');

	assert.ok(await user.page.isChecked('[value=ready]'));
	assert.match(await user.text('#facts'), /^0 s running · 3\.00 s ready · 0 s waiting · 2 threads/);
	near(await user.share('parse_json', 3), 1 / 3, 'parse_json');
	assert.strictEqual(await user.text('caption'), '6 functions');
	await user.close();
}

async function time_order_shows_when_a_thread_was_ready() {
	const user = await User.open('ready.html');
	const at = async (seconds, row) => {
		await user.at((4 + seconds) / 10 * (await user.canvas()).width, row, 22);
		return user.text('#tip div');
	};

	await user.choose('Wall clock');
	await user.choose('Time order');
	assert.strictEqual(await at(0.15, 2), '200 ms from 4.00 s');
	assert.strictEqual(await at(0.25, 2), '100 ms from 4.20 s, ready 100 ms');
	assert.strictEqual(await at(0.25, 1), '400 ms from 4.00 s, ready 100 ms');
	/* The ready leaf is a box of its own, before and after calls. */
	assert.strictEqual(await at(0.45, 1), '100 ms from 4.40 s, ready 100 ms');
	assert.strictEqual(await at(0.55, 1), '100 ms from 4.50 s');
	assert.strictEqual(await at(0.75, 1), '400 ms from 4.60 s, waiting 400 ms');
	assert.strictEqual(await at(0.75, 0), '10.0 s from 0 s, ready 2.00 s, waiting 4.00 s');
	await user.choose('Ready');
	assert.strictEqual(await at(0.25, 2), '100 ms from 4.20 s');
	assert.strictEqual(await user.at(4.15 / 10 * (await user.canvas()).width, 1, 22), null);
	await user.close();
}

/*
 * 18 by 3 pixels of row 1 from x, above its text: '.' those of the most frequent colour, '#' all others.
 * A pattern repeats after 6 pixels, so two places with one pattern have the same text.
 */
async function pattern(user, x, top = 0) {
	await user.page.mouse.move(0, 0);
	await user.redrawn();
	return user.page.evaluate(([left, y]) => {
		const {data} = document.getElementById('canvas').getContext('2d').getImageData(left, y, 18, 3);
		const pixels = Array.from({length: data.length / 4}, (_, i) => data.slice(4 * i, 4 * i + 3).join(' '));
		const counts = pixels.map(pixel => pixels.filter(other => other === pixel).length);
		const most = pixels[counts.indexOf(Math.max(...counts))];

		return pixels.map(pixel => pixel === most ? '.' : '#').join('');
	}, [Math.ceil(x / 6) * 6, top + 20]);
}

async function ready_and_waiting_have_patterns_of_their_own() {
	for (const colorScheme of ['light', 'dark']) {
		const user = await User.open('ready.html', {colorScheme});
		const {width} = await user.canvas();

		await user.choose('Wall clock');
		/* Of start_thread, 20 of 30 s wide, 3 s run, then 1 s is ready, then 16 s wait. */
		assert.ok(!(await pattern(user, 8)).includes('#'), 'running has no pattern');
		const ready = await pattern(user, 3.05 / 30 * width);
		const waiting = await pattern(user, 0.4 * width);

		assert.ok(ready.includes('#') && waiting.includes('#') && ready !== waiting, `${ready}\n${waiting}`);
		/* In time order six steps closer to the middle, 5 s, where handle_request runs, is ready and runs again. */
		const range = 10 * 0.7 ** 6;
		const at = second => pattern(user, (second - 5 + range / 2) / range * width, 22);

		await user.choose('Time order');
		await user.page.focus('#canvas');
		for (const key of '++++++')
			await user.page.keyboard.press(key);
		assert.ok((await at(4.7)).includes('#'), '__poll');
		for (const second of [5.05, 5.3, 5.52])
			assert.ok(!(await at(second)).includes('#'), `handle_request runs at ${second}`);
		assert.ok((await at(5.41)).includes('#'), 'handle_request is ready');
		await user.close();
	}
}

async function without_ready_time_nothing_tells_of_it() {
	const user = await User.open('known.html');

	assert.ok(await user.page.isHidden('[value=ready]'));
	await user.choose('Wall clock');
	assert.ok(await user.page.isHidden('#signs li:first-child') && await user.page.isVisible('#signs li:last-child'));
	assert.ok(await user.page.isHidden('#note'));
	assert.ok(!/ ready/.test(await user.text('#thread')));
	await user.close();
}

async function old_files_have_a_note() {
	for (const [file, note] of [
		['old.html', /^Waiting means waiting or ready \(without a processor\): an older sentry-profd/],
		['stateless.html', /^No sample of this profile says that its thread waited: all time counts as running\.$/],
	]) {
		const user = await User.open(file);

		assert.ok(await user.page.isVisible('#note'));
		assert.match(await user.text('#note'), note);
		assert.ok(await user.page.isHidden('[value=ready]'));
		assert.strictEqual(await user.page.isDisabled('[value=waiting]'), file === 'stateless.html');
		await user.close();
	}
}

async function callers_and_sandwich() {
	const user = await User.open('known.html');

	await user.choose('Callers');
	near(await user.share('[libz.so.1]', 1), 0.4, 'libz');
	near(await user.share('parse_json', 1), 0.3, 'parse_json');
	assert.strictEqual(await user.at(5, 2), 'std::vector<...>::_M_realloc_insert(...)');
	await user.choose('Left heavy');
	await user.page.getByRole('button', {name: 'handle_request'}).click();
	await user.page.getByRole('button', {name: 'Callers and callees'}).click();
	/* main, 6 s, and start_thread, 4 s, call it; it calls parse_json and others. */
	near(await user.share('main', 0), 0.6, 'main');
	near(await user.share('start_thread', 0), 0.4, 'start_thread');
	near(await user.share('handle_request', 1), 1, 'handle_request');
	near(await user.share('parse_json', 2), 0.3, 'parse_json');
	await user.page.keyboard.press('Escape');
	near(await user.share('main', 1), 0.6, 'main');
	await user.close();
}

async function the_table_sorts() {
	const user = await User.open('known.html');
	const first = () => user.page.$eval('#functions tbody tr', row => row.innerText.split(/\s/).filter(s => s !== '').join(' '));
	const sort = name => user.page.getByRole('columnheader', {name}).getByRole('button').click();

	assert.strictEqual(await first(), '4.00 s 40.0 % 4.00 s 40.0 % [libz.so.1] libz.so.1');
	await sort('Total');
	assert.strictEqual(await first(), '1.00 s 10.0 % 10.0 s 100.0 % handle_request shop');
	assert.strictEqual(await user.page.getAttribute('th:nth-child(2)', 'aria-sort'), 'descending');
	await sort('Total');
	assert.match(await first(), /^2\.00 s 20\.0 % 2\.00 s/);
	await sort('Module');
	assert.match(await first(), /start_thread libc\.so\.6$/);
	await user.close();
}

async function the_keyboard_reaches_everything() {
	const user = await User.open('known.html');
	const {keyboard} = user.page;
	const focused = () => user.page.evaluate(() => document.activeElement.name || document.activeElement.id || document.activeElement.value || document.activeElement.textContent);
	const reached = [];

	for (let i = 0; i < 40; i++) {
		await keyboard.press('Tab');
		reached.push(await focused());
	}
	for (const wanted of ['Skip to the table of functions', 'kind', 'order', 'thread', 'search', 'canvas', 'self', 'total', 'name', 'base', 'parse_json', SCRIPT, 'Keys and signs'])
		assert.ok(reached.includes(wanted), `${wanted} is not reached: ${reached}`);

	await keyboard.press('/');
	assert.strictEqual(await focused(), 'search');
	await keyboard.type('libz');
	assert.match(await user.text('#found'), /40\.0 %/);
	await keyboard.press('Escape');
	await keyboard.press('Tab');
	assert.strictEqual(await focused(), 'canvas');
	for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown'])
		await keyboard.press(key);
	assert.strictEqual(await user.text('#box h2'), 'parse_json');
	await keyboard.press('ArrowRight');
	assert.strictEqual(await user.text('#box h2'), SCRIPT);
	await keyboard.press('Enter');
	near(await user.share(SCRIPT, 3), 1, SCRIPT);
	await keyboard.press('Escape');
	near(await user.share(SCRIPT, 3), 0.2, SCRIPT);
	await keyboard.press('+');
	assert.ok(await user.share('parse_json', 3) > 0 && (await user.share('main', 1)) > 0.6);
	await keyboard.press('Home');
	near(await user.share('main', 1), 0.6, 'main');
	await keyboard.press('s');
	assert.match(await user.text('#sandwich'), /callees below <script>/);
	await keyboard.press('Escape');
	await keyboard.press('Escape');
	assert.ok(await user.page.isHidden('#sandwich'));
	/* Radio buttons by their own keys. */
	await user.page.focus('[value=running]');
	await keyboard.press('ArrowLeft');
	near(await user.share('parse_json', 3), 0.1, 'parse_json of wall clock');
	await user.close();
}

async function text_of_a_target_is_text() {
	const user = await User.open('known.html');

	await user.page.getByRole('button', {name: SCRIPT}).click();
	assert.strictEqual(await user.text('#box h2'), SCRIPT);
	assert.match(await user.text('#box'), /\/src\/<b>shop<\/b>\.c:5/);
	assert.deepStrictEqual(await user.page.evaluate(() => ['script', 'img', 'b'].map(tag => document.querySelectorAll(tag).length)), [1, 0, 0]);
	await user.close();
}

async function a_screen_reader_finds_names() {
	const user = await User.open('known.html');
	const {page} = user;

	for (const [role, name] of [
		['group', 'Time'], ['group', 'Order'], ['radio', 'Running'], ['radio', 'Callers'], ['combobox', 'Thread'],
		['searchbox', 'Search'], ['table', '7 functions'], ['columnheader', 'Self'], ['region', 'Selected function'],
		['application', /^Flame graph, 10\.0 s/], ['heading', 'shop@1.4.2'],
	])
		assert.strictEqual(await page.getByRole(role, {name}).count(), 1, role + ' ' + name);
	await user.close();
}

async function nothing_leaves_the_file() {
	const user = await User.open('known.html');

	assert.deepStrictEqual(await user.page.evaluate(async () => {
		const blocked = [];

		document.addEventListener('securitypolicyviolation', event => blocked.push(event.effectiveDirective));
		await fetch('https://example.invalid/').catch(() => {});
		new Image().src = 'https://example.invalid/i.png';
		document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}));
		/* Turns of the browser: a violation comes in one of the next. */
		for (let turn = 0; turn < 100 && blocked.length < 3; turn++)
			await new Promise(requestAnimationFrame);
		return [...blocked.sort(), window.ran];
	}), ['connect-src', 'img-src', 'script-src-elem', undefined]);
	/* What was blocked: the console names it, and the attempt counts as a request. */
	user.faults = [];
	user.requests = user.requests.filter(url => url !== 'https://example.invalid/i.png');
	await user.close();
}

async function damaged_data_are_said() {
	const whole = fs.readFileSync(path.join(BUILD, 'known.html'), 'utf8');
	const [, head, data, tail] = whole.match(/^([^]*id="data">)([^<]*)(<[^]*)$/);

	for (const [name, bad] of [['cut', data.slice(0, data.length / 2 & ~3)], ['none', ''], ['other', 'eJwDAAAAAAE=']]) {
		const file = path.join(BUILD, name + '.html');

		fs.writeFileSync(file, head + bad + tail);
		const user = await User.open(file, {isDamaged: true});

		await user.page.waitForFunction(() => document.getElementById('facts').textContent.startsWith('The profile cannot be shown. '));
		user.faults = [];
		await user.close();
	}
}

/* Each comparison has some turns, as the machine may have other things to do. */
async function in_turns(turn) {
	let seen;

	for (let i = 0; i < 5; i++) {
		seen = await turn();
		if (seen.ok)
			break;
	}
	console.log('   ' + seen.what);
	assert.ok(seen.ok, seen.what);
}

async function a_redraw_costs_the_same_for_many_samples() {
	/* Of some zooms the one that costs most. */
	const cost = async file => {
		const user = await User.open(file);
		let most = 0;

		await user.choose('Time order');
		await user.page.focus('#canvas');
		for (let zoom = 0; zoom < 5; zoom++) {
			let least = Infinity;

			for (let i = 0; i < 4; i++) {
				await user.page.keyboard.press('Shift+ArrowRight');
				await user.redrawn();
				least = Math.min(least, await user.measure('draw'));
			}
			most = Math.max(most, least);
			await user.page.keyboard.press('+');
			await user.page.keyboard.press('+');
		}
		await user.close();
		return most;
	};

	await in_turns(async () => {
		const [few, many] = [await cost('few.html'), await cost('long.html')];

		return {ok: many <= 1.5 * few, what: `a redraw: ${few.toFixed(2)} ms of 10,000 samples, ${many.toFixed(2)} ms of 1,000,000`};
	});
}

async function drawing_takes_at_most_three_times_as_long_as_parsing() {
	await in_turns(async () => {
		const user = await User.open('many.html');
		const load = await user.measure('load');
		const other = await newPage();

		await other.setContent('<input type="file">');
		await other.setInputFiles('input', path.join(BUILD, 'many.json'));
		const parse = await other.evaluate(async () => {
			const text = await document.querySelector('input').files[0].text();
			const begin = performance.now();

			JSON.parse(text);
			return performance.now() - begin;
		});

		await other.close();
		await user.close();
		return {ok: load <= 3 * parse, what: `${load.toFixed()} ms from file to graph, JSON.parse ${parse.toFixed()} ms`};
	});
}

async function a_million_samples_are_less_than_10_mb() {
	for (const file of ['many.html', 'long.html'])
		assert.ok(fs.statSync(path.join(BUILD, file)).size < 10e6);
}

async function pictures() {
	for (const colorScheme of ['light', 'dark']) {
		let user = await User.open('known.html', {colorScheme});

		await user.choose('Wall clock');
		await user.page.getByRole('button', {name: 'parse_json'}).click();
		await user.picture('known-' + colorScheme);
		await user.choose('Time order');
		await user.at(500, 1, 22);
		await user.picture('time-' + colorScheme);
		await user.close();

		user = await User.open('ready.html', {colorScheme});
		await user.choose('Wall clock');
		await user.at(15, 1);
		await user.picture('ready-' + colorScheme);
		await user.choose('Time order');
		await user.page.focus('#canvas');
		for (const key of '++++++')
			await user.page.keyboard.press(key);
		await user.at(600, 1, 22);
		await user.picture('ready-time-' + colorScheme);
		await user.close();

		user = await User.open('many.html', {colorScheme});
		await user.picture('many-' + colorScheme);
		await user.page.fill('#search', 'function_25');
		await user.page.getByRole('button', {name: 'function_25'}).first().click();
		await user.page.getByRole('button', {name: 'Callers and callees'}).click();
		await user.picture('sandwich-' + colorScheme);
		await user.close();

		user = await User.open('known.html', {colorScheme, viewport: {width: 390, height: 844}, deviceScaleFactor: 2, hasTouch: true, isMobile: true});
		await user.page.tap('#canvas', {position: {x: 30, y: 70}});
		assert.strictEqual(await user.text('#box h2'), 'parse_json');
		await user.picture('phone-zoomed-' + colorScheme);
		await user.page.tap('#back');
		assert.ok(await user.page.isDisabled('#back'));
		assert.ok(await user.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await user.picture('phone-' + colorScheme);
		await user.page.evaluate(() => scrollTo(0, 1e6));
		await user.picture('phone-below-' + colorScheme);
		await user.close();

		user = await User.open('ready.html', {colorScheme, viewport: {width: 390, height: 844}, deviceScaleFactor: 2, hasTouch: true, isMobile: true});
		await user.choose('Wall clock');
		assert.ok(await user.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await user.picture('ready-phone-' + colorScheme);
		await user.close();
	}
}

const tests = [
	it_draws, widths_are_shares, a_click_zooms_and_esc_goes_back, search_says_what_share_it_finds,
	threads_have_names_and_times_and_change_the_graph, programs_open, an_unknown_pid_is_not_made_up, processes_are_programs, time_order_shows_when,
	ready_time_has_a_switch_and_sums, the_first_kind_of_time_is_one_that_the_profile_has,
	time_order_shows_when_a_thread_was_ready,
	ready_and_waiting_have_patterns_of_their_own, without_ready_time_nothing_tells_of_it, old_files_have_a_note,
	callers_and_sandwich, names_are_short_and_unfold, the_tip_takes_a_third_of_the_page, the_table_sorts, the_keyboard_reaches_everything, text_of_a_target_is_text,
	a_screen_reader_finds_names, nothing_leaves_the_file, damaged_data_are_said,
	a_redraw_costs_the_same_for_many_samples, drawing_takes_at_most_three_times_as_long_as_parsing,
	a_million_samples_are_less_than_10_mb, pictures,
];

/* test_page.js NAME: those whose name contains it. */
run(tests.filter(test => test.name.includes(process.argv[2] ?? '')));
