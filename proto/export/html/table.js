'use strict';
/*
 * The table of functions: sorts them, shows only those that match the search, and selects one. A
 * screen reader reads it in place of the canvas.
 */

const PORTION = 100; /* rows that are added at a time: thousands would make the page slow */

class FunctionTable {
	/* functions as in main.js: name, label, module, base (last component of module), inApp, self, total. select(func) is called when the user selects a row. */
	constructor(section, functions, select) {
		Object.assign(this, {section, functions, select, key: 'self', sign: -1, selected: -1});
		this.body = section.querySelector('tbody');
		this.more = section.querySelector('#more');
		this.more.addEventListener('click', () => this.add());
		for (const button of section.querySelectorAll('th button'))
			button.addEventListener('click', () => this.sortBy(button.value));
	}

	sortBy(key) {
		this.sign = this.key === key ? -this.sign : key === 'self' || key === 'total' ? -1 : 1;
		this.key = key;
		this.fill();
	}

	/* total: the time that is 100 %. matches: by function, null without a search. isComparison: shows changes. */
	show(total, matches, isComparison) {
		Object.assign(this, {total, matches, isComparison});
		this.fill();
	}

	/* Returns the sort key of a number. For changes it is the magnitude: growth and shrinkage count the same. */
	number(f) {
		return this.isComparison ? Math.abs(changeOf(f[this.key], f[this.key + 'A'])) : f[this.key];
	}

	fill() {
		const compare = typeof this.functions[0]?.[this.key] === 'string' ?
			(a, b) => a[this.key].localeCompare(b[this.key]) : (a, b) => this.number(a) - this.number(b);

		this.order = this.functions.filter(f => f.total > 0 && (this.matches === null || this.matches[f.id] === 1));
		this.order.sort((a, b) => this.sign * compare(a, b) || b.total - a.total || a.id - b.id);
		for (const button of this.section.querySelectorAll('th button')) {
			if (button.value === this.key)
				button.parentElement.setAttribute('aria-sort', this.sign < 0 ? 'descending' : 'ascending');
			else
				button.parentElement.removeAttribute('aria-sort');
		}
		this.section.querySelector('caption').textContent = this.order.length + (this.order.length === 1 ? ' function' : ' functions');
		this.body.replaceChildren();
		this.add();
	}

	add() {
		const from = this.body.childElementCount;

		for (const f of this.order.slice(from, from + PORTION))
			this.body.append(this.row(f));
		this.more.hidden = this.body.childElementCount === this.order.length;
	}

	row(f) {
		const row = document.createElement('tr');
		const button = document.createElement('button');

		for (const [time, a] of [[f.self, f.selfA], [f.total, f.totalA]])
			row.insertCell().append(...(this.isComparison ?
				[element('span', formatChange(time, a)), ' ', element('span', formatSides(time, a, '\u2192'))] :
				[element('span', formatTime(time)), ' ', element('span', formatShare(time, this.total))]));
		button.type = 'button';
		button.textContent = f.label;
		button.title = f.name;
		button.className = f.inApp ? 'app' : '';
		button.addEventListener('click', () => this.select(f.id));
		row.insertCell().append(button);
		row.insertCell().append(element('div', f.base));
		row.cells[3].title = f.module;
		row.classList.toggle('selected', f.id === this.selected);
		return row;
	}

	mark(func) {
		this.selected = func;
		for (let i = 0; i < this.body.rows.length; i++)
			this.body.rows[i].classList.toggle('selected', this.order[i].id === func);
	}
}
