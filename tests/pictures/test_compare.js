#!/usr/bin/env node
'use strict';
/*
 * The page of sentry-profctl compare in Chromium. Of the running time of A, 10 s, parse_json has 30 %
 * and <script> 20 %, of B, 20 s, 10 % and 40 %; all else is the same (make_page.c).
 */
const assert = require('node:assert');
const {User, near, run} = require('./page.js');

const SCRIPT = '<script>alert(1)</script>';

/* Red, green and blue of a box: its upper edge, above the text. */
async function colour(user, name, r) {
	const [from, to] = await user.edges(name, r);

	await user.page.mouse.move(0, 0);
	await user.redrawn();
	return user.page.evaluate(([x, y]) => {
		const canvas = document.getElementById('canvas');

		return [...canvas.getContext('2d').getImageData(x * canvas.width, y * devicePixelRatio, 1, 1).data.slice(0, 3)];
	}, [(from + to) / 2, r * 20 + 3]);
}

async function both_profiles_are_named() {
	const user = await User.open('compare.html');

	assert.strictEqual(await user.page.title(), 'before → after <b>');
	assert.strictEqual(await user.text('#facts'), 'A: before, 10.0 s running within 10.0 s · B: after <b>, 20.0 s running within 20.0 s');
	assert.match(await user.text('#note'), /Each side is 100 % of its time: 1 % is 10 ms of each second of it\./);
	assert.ok(await user.page.isHidden('#thread'));
	assert.ok(await user.page.isHidden('[value=time]'));
	await user.close();
}

async function widths_are_the_mean() {
	const user = await User.open('compare.html');

	near(await user.share('main', 1), 0.6, 'main');
	near(await user.share('parse_json', 3), 0.2, 'parse_json');
	near(await user.share(SCRIPT, 3), 0.3, SCRIPT);
	near(await user.share('[libz.so.1]', 4), 0.4, 'libz');
	await user.choose('Wall clock'); /* Of A's 30 s 3, of B's 60 s 2. */
	near(await user.share('parse_json', 3), 0.2 / 3, 'parse_json of wall clock');
	await user.close();
}

async function ready_time_is_compared_alone() {
	const user = await User.open('compare_ready.html');

	assert.strictEqual(await user.text('#facts'), 'A: before, 7.00 s running, 3.00 s ready within 10.0 s · B: after <b>, 14.0 s running, 6.00 s ready within 20.0 s');
	near(await user.share('parse_json', 3), (2 / 7 + 1 / 7) / 2, 'parse_json running');
	await user.choose('Ready'); /* Of A's 3 s 1 in parse_json, 1 in handle_request itself; of B's 6 s 4 in <script>; 1 and 2 in libz. */
	near(await user.share('main', 1), 2 / 3, 'main');
	near(await user.share('parse_json', 3), 1 / 6, 'parse_json');
	near(await user.share(SCRIPT, 3), 1 / 3, SCRIPT);
	assert.strictEqual((await user.page.$eval('#functions tbody tr', row => row.innerText)).replace(/\s+/g, ' ').trim(),
		`+66.7 0.0→66.7 +66.7 0.0→66.7 ${SCRIPT} shop`);
	await user.choose('Waiting');
	near(await user.share('__poll', 2), 1, '__poll');
	await user.choose('Wall clock');
	near(await user.share('parse_json', 3), (3 / 30 + 2 / 60) / 2, 'parse_json of wall clock');
	await user.close();
}

async function growth_is_red_and_shrinking_blue() {
	for (const colorScheme of ['light', 'dark']) {
		const user = await User.open('compare.html', {colorScheme});
		const [r, g, b] = await colour(user, SCRIPT, 3);

		assert.ok(r > g + 20 && r > b + 20, `${SCRIPT}: ${[r, g, b]}`);
		const [r2, g2, b2] = await colour(user, 'parse_json', 3);

		assert.ok(b2 > r2 + 20 && b2 > g2, `parse_json: ${[r2, g2, b2]}`);
		const same = await colour(user, 'main', 1);

		assert.ok(Math.max(...same) - Math.min(...same) < 4, `main: ${same}`);
		/* As much waited as before. */
		await user.choose('Waiting');
		const waits = await colour(user, '__poll', 2);

		assert.ok(Math.max(...waits) - Math.min(...waits) < 4, `__poll: ${waits}`);
		await user.close();
	}
}

async function boxes_tell_both_values() {
	const user = await User.open('compare.html');

	await user.at(20, 3); /* the widest stands left */
	assert.strictEqual(await user.text('#tip b'), SCRIPT);
	assert.match(await user.text('#tip'), /A 200 ms, B 400 ms of each second, 20\.0 → 40\.0 % \(\+20\.0\)/);
	assert.match(await user.text('#tip'), /self 20\.0 → 40\.0 %, total 20\.0 → 40\.0 %/);
	await user.click(20, 3);
	assert.match(await user.text('#box'), /SelfA 200 ms, B 400 ms of each second, 20\.0 → 40\.0 % \(\+20\.0\)Total/);
	await user.page.keyboard.press('Escape');
	await user.page.getByRole('searchbox', {name: 'Search'}).fill('parse');
	assert.strictEqual(await user.text('#found'), '1 found, 30.0 → 10.0 % of the time');
	await user.close();
}

async function the_table_has_the_largest_changes_first() {
	const user = await User.open('compare.html');
	const rows = await user.page.$$eval('#functions tbody tr', list => list.map(row => row.innerText.split(/\s/).filter(s => s !== '').join(' ')));

	assert.strictEqual(rows[0], `+20.0 20.0→40.0 +20.0 20.0→40.0 ${SCRIPT} shop`);
	assert.strictEqual(rows[1], '−20.0 30.0→10.0 −20.0 30.0→10.0 parse_json libjson.so.1');
	assert.match(rows[2], /^0\.0 10\.0→10\.0 0\.0 100\.0→100\.0 handle_request/);
	await user.close();
}

async function callers_and_sandwich_have_changes() {
	const user = await User.open('compare.html');

	await user.choose('Callers');
	let [r, g, b] = await colour(user, SCRIPT, 1);

	assert.ok(r > g + 20 && r > b + 20, `callers: ${[r, g, b]}`);
	await user.page.getByRole('button', {name: 'handle_request'}).click();
	await user.page.getByRole('button', {name: 'Callers and callees'}).click();
	[r, g, b] = await colour(user, SCRIPT, 2);
	assert.ok(r > g + 20 && r > b + 20, `sandwich: ${[r, g, b]}`);
	near(await user.share('parse_json', 2), 0.2, 'parse_json');
	await user.close();
}

async function pictures() {
	for (const colorScheme of ['light', 'dark']) {
		let user = await User.open('compare.html', {colorScheme});

		await user.page.getByRole('button', {name: 'parse_json'}).click();
		await user.picture('compare-' + colorScheme);
		await user.close();

		user = await User.open('compare.html', {colorScheme, viewport: {width: 390, height: 844}, deviceScaleFactor: 2, hasTouch: true, isMobile: true});
		assert.ok(await user.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
		await user.picture('compare-phone-' + colorScheme);
		await user.close();
	}
}

const tests = [
	both_profiles_are_named, widths_are_the_mean, ready_time_is_compared_alone, growth_is_red_and_shrinking_blue, boxes_tell_both_values,
	the_table_has_the_largest_changes_first, callers_and_sandwich_have_changes, pictures,
];

/* test_compare.js NAME: those whose name contains it. */
run(tests.filter(test => test.name.includes(process.argv[2] ?? '')));
