'use strict';
// The script of the format "svg" (svg.c): zoom by click, search by a regular expression.
// Each g.f has the bar of one function in one stack: its rect has x and width of the whole graph in
// data-x and data-w, of which zoom makes what is shown.
const svg = document.documentElement;
const WIDTH = +svg.getAttribute('width');
const CHAR = 7, PADDING = 3;
const bars = [...document.querySelectorAll('g.f')].map(g => {
	const rect = g.querySelector('rect');
	return {
		g, rect,
		text: g.querySelector('text'),
		title: g.querySelector('title').textContent,
		x: +rect.getAttribute('data-x'),
		w: +rect.getAttribute('data-w'),
		y: +rect.getAttribute('y'),
	};
});
for (const bar of bars) {
	bar.name = bar.title.replace(/ \([^(]*\)$/, '');
	bar.label = bar.text.dataset.label ?? bar.name;
}
const unzoom = document.getElementById('unzoom');
const searching = document.getElementById('search');
const matched = document.getElementById('matched');

function draw(bar, x, w) {
	const room = Math.floor((w - 2 * PADDING) / CHAR);
	const chars = [...bar.label];
	bar.rect.setAttribute('x', x);
	bar.rect.setAttribute('width', Math.max(w - 0.5, 0.1));
	bar.text.setAttribute('x', x + PADDING);
	bar.text.textContent = room < 3 ? '' :
		chars.length <= room ? bar.label : chars.slice(0, room - 2).join('') + '..';
}

function zoom(to) {
	const scale = to ? WIDTH / to.w : 1;
	for (const bar of bars) {
		// Rounding moves an edge by less than this.
		const slack = 0.01;
		const holds = to && bar.x <= to.x + slack && bar.x + bar.w >= to.x + to.w - slack;
		const is_below = holds && bar.y > to.y;
		const is_above = to && bar.y <= to.y && bar.x >= to.x - slack &&
			bar.x + bar.w <= to.x + to.w + slack;
		bar.g.style.display = !to || is_below || is_above ? '' : 'none';
		bar.g.style.opacity = is_below ? 0.5 : '';
		if (is_below)
			draw(bar, 0, WIDTH);
		else if (!to || is_above)
			draw(bar, (bar.x - (to ? to.x : 0)) * scale, bar.w * scale);
	}
	unzoom.style.display = to ? '' : 'none';
}

// Of a stack with several bars that match, the lowest one counts.
function share(found) {
	let sum = 0, end = 0;
	for (const bar of found.sort((a, b) => a.x - b.x || b.w - a.w)) {
		if (bar.x < end - 0.01)
			continue;
		sum += bar.w;
		end = bar.x + bar.w;
	}
	return 100 * sum / WIDTH;
}

function search(pattern) {
	let wanted = null;
	try {
		wanted = pattern ? new RegExp(pattern) : null;
	} catch (e) {
		matched.textContent = e.message;
		return;
	}
	const found = bars.filter(bar => wanted && wanted.test(bar.name));
	for (const bar of bars)
		bar.rect.classList.toggle('found', found.includes(bar));
	matched.textContent = wanted ? `Matched: ${share(found).toFixed(1)}%` : '';
}

for (const bar of bars) {
	bar.g.addEventListener('click', () => zoom(bar));
	draw(bar, bar.x, bar.w);
}
unzoom.addEventListener('click', () => zoom(null));
searching.addEventListener('click', () => search(prompt('Function (regular expression); empty: none')));
zoom(null);
