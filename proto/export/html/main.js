'use strict';
/*
 * The page: the controls above the graph select which rows the graph has. Text of a profile gets into
 * the page only by textContent, title and fillText, so it cannot be markup.
 */

const LEGEND_MAX = 8; /* modules in the legend; other modules have colours, too */
const PLACES_MAX = 8; /* addresses that are shown for a selected function */
const CHANGES = 20; /* shades for growth, and as many for shrinkage */
const KINDS = ['running', 'ready', 'waiting', 'wall']; /* values of the switch, by kind of time */
const NAMES = ['Running', 'Ready', 'Waiting']; /* by state */

/* Formats microseconds with three digits; if step is given, with as many as its multiples need. */
function formatTime(us, step) {
	const [unit, name] = us >= 1e6 || us === 0 ? [1e6, ' s'] : us >= 1e3 ? [1e3, ' ms'] : [1, ' \u00b5s'];
	const value = us / unit;
	const digits = us === 0 ? 0 : step !== undefined ? Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)) :
		value >= 100 ? 0 : value >= 10 ? 1 : 2;

	return value.toFixed(digits) + name;
}

function formatShare(part, whole) {
	return (whole > 0 ? 100 * part / whole : 0).toFixed(1) + ' %';
}

/* For comparisons: mean is the mean of both sides, a is side A; each side is one second. */
function changeOf(mean, a) {
	return 2 * (mean - a);
}

/* Formats the change in percentage points. */
function formatChange(mean, a) {
	const points = (changeOf(mean, a) / 1e4).toFixed(1);

	return points > 0 ? '+' + points : points < 0 ? '\u2212' + points.slice(1) : '0.0';
}

/* Formats both sides in percent. */
function formatSides(mean, a, arrow = ' \u2192 ') {
	return [a, 2 * mean - a].map(side => (Math.max(side, 0) / 1e4).toFixed(1)).join(arrow);
}

/* Formats a time with the name of its state. */
function amountOf(us, state) {
	return formatTime(us) + ' ' + KINDS[state];
}

/* Returns the time of all these threads in a state. */
function sumOf(threads, state) {
	return threads.reduce((sum, thread) => sum + thread.times[state], 0);
}

/* Returns the number and the noun, "500 processes". */
function count(n, what) {
	return n + ' ' + what + (n === 1 ? '' : n > 1 && what.endsWith('s') ? 'es' : 's');
}

/* The most characters of a command line that a label shows. */
const COMMAND_LINE_MAX = 120;

/* Returns how a process was started, without the program's directory. It differs from others of its program in this. */
function describe({commandLine = ''}) {
	const text = commandLine.replace(/^\S*\//, '');
	const shown = text.length > COMMAND_LINE_MAX ? text.slice(0, COMMAND_LINE_MAX) + '\u2026' : text;

	return shown && ' \u00b7 ' + shown;
}

/*
 * Names the program of each process: the release, which is made of the program's name and build.
 * NAME@unknown, of a process that ended before its build was read, is the only known build of NAME.
 */
function namePrograms(processes) {
	const releases = new Set(processes.map(p => p.release));

	for (const process of processes) {
		const release = process.release || process.id;
		const name = release.replace(/@unknown$/, '');
		const builds = [...releases].filter(r => name !== release && r !== release && r.startsWith(name + '@'));

		process.program = builds.length === 1 ? builds[0] : name === 'unknown' ? name : release;
	}
}

/* Lists the programs: name, threads, and number of processes; the one that ran longest first. */
function findPrograms({threads, processes}) {
	namePrograms(processes);
	const found = new Map(processes.map(p => [p.program, []]));

	for (const thread of threads)
		found.get(processes[thread.process].program).push(thread);
	return [...found].map(([name, own]) => ({name, threads: own, processes: new Set(own.map(t => t.process)).size, time: sumOf(own, RUNNING)}))
		.sort((a, b) => b.time - a.time);
}

function byId(id) {
	return document.getElementById(id);
}

function element(tag, text, ...children) {
	const result = document.createElement(tag);

	result.textContent = text;
	result.append(...children);
	return result;
}

class Page {
	constructor(profile) {
		this.profile = profile;
		this.functions = findFunctions(profile);
		this.functions.forEach((f, id) => Object.assign(f, {id, self: 0, total: 0, selfA: 0, totalA: 0}));
		this.isComparison = profile.sides !== null;
		this.times = [RUNNING, READY, WAITING].map(state => sumOf(profile.threads, state));
		this.tree = mergeStacks(profile);
		this.outer = outermost(this.tree, this.functions.length);
		/* The kind of time that the page shows: at first running time, unless --state has left it out. */
		this.kind = Math.max(this.times.findIndex(time => time > 0), RUNNING);
		document.querySelector(`[value=${KINDS[this.kind]}]`).checked = true;
		this.order = 'merged';
		this.thread = null; /* null: all threads of the program */
		this.program = null; /* null: all programs */
		this.sandwich = -1; /* the function whose callers and callees are shown; -1: none */
		this.matches = null;
		this.table = new FunctionTable(byId('functions'), this.functions, func => this.selectFunction(func));
		this.graph = new Graph(byId('canvas'), byId('scroller'), byId('spacer'), {
			hover: (box, x, y) => this.hover(box, x, y),
			select: box => this.select(box),
			open: ({row, i}) => this.openSandwich(this.funcOf(row, i)),
			zoom: () => this.offerBack(),
		});
		profile.threads.sort((a, b) => a.process - b.process || b.times[RUNNING] - a.times[RUNNING] || b.times[WAITING] - a.times[WAITING]);
		profile.threads.forEach((thread, i) => { thread.index = i; });
		this.programs = findPrograms(profile);
		this.fillThreads();
		this.listen();
		this.weigh();
		this.colourModules();
		this.refresh();
		if (this.isComparison)
			this.describeSides();
		else
			this.describe();
		this.describeStates();
		this.describeLines();
	}

	describeSides() {
		const {sides, threads, processes} = this.profile;
		const times = [0, 1].map(side => {
			const shown = [RUNNING, READY].map(state => amountOf(sumOf(threads.filter(t => processes[t.process].side === side), state), state));

			return `${'AB'[side]}: ${sides[side].name}, ${shown[0] + (this.times[READY] > 0 ? ', ' + shown[1] : '')} within ${formatTime(sides[side].lasts)}`;
		});

		byId('title').textContent = document.title = sides[0].name + ' \u2192 ' + sides[1].name;
		byId('facts').textContent = times.join(' \u00b7 ');
		this.note('Red grew from A to B, blue shrank. Each side is 100 % of its time: 1 % is 10 ms of each second of it. ' +
			'A box is as wide as the mean of both sides.');
		byId('colours').textContent = 'Red: more of the time in B than in A. Blue: less. The stronger the colour, the larger the part of the box that changed.';
		byId('functions').classList.add('sides');
		/* In a comparison each thread belongs to one side, so there is no choice. */
		byId('thread').parentElement.hidden = true;
		document.querySelector('[value=time]').parentElement.hidden = true;
		for (const name of ['self', 'total'])
			document.querySelector(`th [value=${name}]`).textContent += ' \u00b1';
	}

	note(text) {
		byId('note').textContent += (byId('note').hidden ? '' : ' ') + text;
		byId('note').hidden = false;
	}

	/* Sets the title, with the program that ran longest first, and the line of facts. */
	describe() {
		const {profile} = this;
		const names = this.programs.map(p => p.name);

		byId('title').textContent = document.title = names.slice(0, 3).join(', ') + (names.length > 3 ? ' and ' + (names.length - 3) + ' more' : '');
		byId('facts').textContent = [
			...[RUNNING, READY, WAITING].filter(state => this.hasKind(state)).map(state => amountOf(this.times[state], state)),
			count(profile.threads.length, 'thread'), count(new Set(profile.processes.map(p => p.id)).size, 'process'),
			'within ' + formatTime(profile.duration), 'from ' + new Date(profile.begin / 1000).toLocaleString(),
		].join(' \u00b7 ');
	}

	/* Ready time is shown if there is some, waiting time if the profile has states. */
	hasKind(kind) {
		return kind === RUNNING || (kind === READY ? this.times[READY] > 0 : this.profile.hasState);
	}

	describeStates() {
		document.querySelector('[value=ready]').parentElement.hidden = !this.hasKind(READY);
		for (const kind of [WAITING, WALL])
			document.querySelector(`[value=${KINDS[kind]}]`).disabled = !this.hasKind(kind);
		if (!this.profile.hasState)
			this.note('No sample of this profile says that its thread waited: all time counts as running.');
		/* The page lacks this note if --state has left out all time but running time. */
		if (this.profile.hidesReady && this.times[READY] + this.times[WAITING] > 0)
			this.note('Waiting means waiting or ready (without a processor): an older sentry-profd, which did not tell them apart, recorded some of this profile.');
	}

	describeLines() {
		if (this.profile.lacksLines)
			this.note('Without source lines and inlined functions: sentry-profd was not to look for them. In a service symbols = lines in [profiler] has it look, else --symbols lines.');
	}

	/* Explains the patterns that the graph has now. */
	describeSigns() {
		const signs = [...byId('signs').children];

		for (const kind of [READY, WAITING])
			signs[kind - READY].hidden = !this.hasKind(kind) || (this.kind !== WALL && this.kind !== kind);
		byId('signs').hidden = signs.every(sign => sign.hidden);
	}

	/*
	 * Lists what can be selected: of a profile of several processes the programs, and of the
	 * selected program its threads. Hundreds of processes of a program are one entry that opens.
	 */
	fillThreads() {
		const select = byId('thread');
		const {program, programs} = this;
		const sums = threads => [RUNNING, READY].filter(state => state === RUNNING || sumOf(threads, state) > 0)
			.map(state => amountOf(sumOf(threads, state), state)).join(', ');

		select.replaceChildren(new Option('All threads', ''));
		if (this.profile.processes.length > 1)
			programs.forEach((p, i) => {
				if (p.threads.length > 0 && (program === null || p === program))
					select.append(new Option(p.name + ' \u00b7 ' + count(p.processes, 'process') + ' \u00b7 ' + sums(p.threads), 'program ' + i));
			});
		if (this.profile.processes.length === 1 || program !== null)
			this.addThreads(select, program, sums);
	}

	/* Adds the threads of a program, in a group for each process if there are several. */
	addThreads(select, program, sums) {
		const own = program === null ? this.profile.threads : program.threads;
		let group = select;

		own.forEach((thread, i) => {
			/* The id is shown, since several threads may have the same name. */
			const id = thread.name.includes(thread.id) ? '' : ' (' + thread.id + ')';

			if (program !== null && program.processes > 1 && own[i - 1]?.process !== thread.process) {
				let end = i + 1;

				while (own[end]?.process === thread.process)
					end++;
				const mine = own.slice(i, end);
				const main = mine.find(t => t.name === 'main');
				/* Without a thread of this name the number of the process is not known. */
				const first = mine.reduce((a, b) => Number(b.id) < Number(a.id) ? b : a);

				group = document.createElement('optgroup');
				group.label = (main ? 'process ' + main.id : 'process of thread ' + first.id) +
					describe(this.profile.processes[thread.process]);
				select.append(group);
			}
			group.append(new Option((thread.name || 'thread') + id + ' \u00b7 ' + sums([thread]), thread.index));
		});
	}

	/* Selects a program and a thread of it; null: all. */
	selectThreads(program, thread, value) {
		Object.assign(this, {program, thread});
		this.fillThreads();
		byId('thread').value = value;
		this.weigh();
	}

	listen() {
		for (const input of document.querySelectorAll('fieldset input'))
			input.addEventListener('change', () => this.choose(input.name, input.value));
		byId('thread').addEventListener('change', event => {
			const {value} = event.target;
			const thread = this.profile.threads[value] ?? null;

			this.selectThreads(value === '' ? null : this.programs[value.split(' ')[1]] ?? this.program, thread, value);
			if (this.thread === null && this.order === 'time')
				this.order = document.querySelector('[value=merged]').checked = 'merged';
			this.refresh();
		});
		byId('search').addEventListener('input', event => this.search(event.target.value));
		byId('leave').addEventListener('click', () => this.openSandwich(-1));
		byId('back').addEventListener('click', () => this.back());
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
			this.colourModules();
			this.graph.recolour();
		});
		document.addEventListener('keydown', event => this.key(event));
	}

	key(event) {
		const isField = event.target.matches('input[type=search], select');

		if (event.key === '/' && !isField) {
			event.preventDefault();
			byId('search').focus();
		} else if (event.key === 'Escape' && event.target === byId('search') && byId('search').value !== '') {
			byId('search').value = '';
			this.search('');
		} else if (event.key === 'Escape') {
			this.back();
		}
	}

	back() {
		if (!this.graph.back() && this.sandwich >= 0)
			this.openSandwich(-1);
		this.offerBack();
	}

	offerBack() {
		byId('back').disabled = this.graph.history.length === 0 && this.sandwich < 0;
	}

	choose(name, value) {
		if (name === 'kind') {
			this.kind = KINDS.indexOf(value);
		} else {
			this.order = value;
			this.sandwich = -1;
		}
		/* The time order is for one thread: the one that ran longest, unless the user selects one. */
		if (this.order === 'time' && this.thread === null && this.profile.threads.length > 0) {
			const thread = this.shownThreads().reduce((a, b) => b.times[RUNNING] > a.times[RUNNING] ? b : a);

			this.selectThreads(this.programs.find(p => p.name === this.profile.processes[thread.process].program), thread, thread.index);
		}
		if (this.isComparison && name === 'kind')
			this.weigh();
		this.refresh();
	}

	shownThreads() {
		return this.thread !== null ? [this.thread] : this.program?.threads ?? this.profile.threads;
	}

	/* Updates what depends on the thread, and in a comparison on the kind of time. */
	weigh() {
		if (this.isComparison)
			weighSides(this.profile, this.tree, this.kind);
		else
			weigh(this.profile, this.tree, this.shownThreads());
	}

	/* Updates what depends on the thread, the kind of time and the order. */
	refresh() {
		const {tree, functions} = this;
		const [self, sum] = [tree.self[this.kind], tree.sum[this.kind]];

		this.total = sum[0];
		for (const f of functions)
			f.self = f.total = f.selfA = f.totalA = 0;
		for (let i = 1; i < tree.n; i++) {
			const f = functions[tree.func[i]];

			f.self += self[i];
			f.selfA += tree.self[SIDE_A][i];
			if (this.outer[i] === 1) {
				f.total += sum[i];
				f.totalA += tree.sum[SIDE_A][i];
			}
		}
		this.showGraph();
		this.search(byId('search').value);
		this.clearBox();
	}

	showGraph() {
		let rows;
		let total = this.total;

		if (this.sandwich >= 0) {
			rows = layOutSandwich(sandwich(this.tree, this.sandwich, this.outer), this.kind);
			total = this.functions[this.sandwich].total;
		} else if (this.order === 'time' && this.thread !== null) {
			rows = chartRows(this.tree, this.profile.nodes.merged, this.thread, this.kind);
			total = this.profile.duration;
		} else {
			rows = layOut(this.order === 'callers' ? inverted(this.tree) : this.tree, this.kind);
		}
		this.graph.show(rows, total, this.functions, this.order === 'time' && this.sandwich < 0);
		byId('sandwich').hidden = this.sandwich < 0;
		this.describeSigns();
		this.offerBack();
		if (this.sandwich >= 0)
			byId('sandwich').firstElementChild.textContent = 'Callers above, callees below ' + this.functions[this.sandwich].label;
		byId('canvas').setAttribute('aria-label', 'Flame graph, ' + (this.isComparison ? 'both sides' : formatTime(total)) + ', ' + rows.length +
			' rows. The table of functions has the same as text.');
	}

	/* Shows callers and callees of a function; -1: all functions again. */
	openSandwich(func) {
		if (func === ALL && this.sandwich === -1)
			return;
		this.sandwich = func;
		this.showGraph();
		const row = this.graph.rows.findIndex((_, r) => this.funcOf(r, 0) === func && this.graph.rows[r].to[0] === this.graph.total);

		if (func >= 0 && row >= 0)
			this.graph.reveal({row, i: 0}, true);
		byId('canvas').focus({preventScroll: true});
	}

	colourModules() {
		const style = getComputedStyle(document.documentElement);
		const times = new Map();

		if (this.isComparison) {
			this.colourChanges(style);
			return;
		}

		for (const f of this.functions)
			times.set(f.module, 0);
		for (let i = 1; i < this.tree.n; i++) {
			const {module} = this.functions[this.tree.func[i]];

			times.set(module, times.get(module) + this.tree.self[WALL][i]);
		}

		/* The golden angle gives the modules with the most time hues that are far apart. */
		const modules = [...times].sort((a, b) => b[1] - a[1]).map(([module], i) => [module, (210 + i * 137.508) % 360]);
		const hues = new Map(modules);
		const colour = (hue, kind) => `hsl(${hue.toFixed()} ${style.getPropertyValue(`--${kind}-saturation`)} ${style.getPropertyValue(`--${kind}-lightness`)})`;

		for (const f of this.functions)
			f.fill = colour(hues.get(f.module), f.inApp ? 'app' : 'other');
		byId('legend').replaceChildren(...modules.slice(0, LEGEND_MAX).map(([module, hue]) => {
			const item = document.createElement('li');
			const sample = document.createElement('i');

			sample.style.background = this.functions.find(f => f.module === module && f.inApp)?.fill ?? colour(hue, 'other');
			item.append(sample, baseName(module) || 'no module');
			item.title = module;
			return item;
		}));
		this.graph.recolour();
	}

	colourChanges(style) {
		const value = name => parseFloat(style.getPropertyValue('--' + name));
		const fills = [];

		for (let i = -CHANGES; i <= CHANGES; i++) {
			/* If a function grew by half, its change is 0.2: the user should see this change, too. */
			const part = Math.sqrt(Math.abs(i) / CHANGES);
			const lightness = value('same-lightness') + part * (value('change-lightness') - value('same-lightness'));

			fills.push(`hsl(${i < 0 ? 215 : 4} ${(part * value('change-saturation')).toFixed()}% ${lightness.toFixed(1)}%)`);
		}
		this.graph.changeFills = fills;
		byId('legend').setAttribute('aria-label', 'Colours: changes');
		byId('legend').replaceChildren(...[['only in A', -1], ['shrank', -0.5], ['as before', 0], ['grew', 0.5], ['only in B', 1]].map(([text, change]) => {
			const item = document.createElement('li');
			const sample = document.createElement('i');

			sample.style.background = fills[CHANGES + change * CHANGES];
			item.append(sample, text);
			return item;
		}));
		this.graph.recolour();
	}

	search(text) {
		const wanted = text.trim().toLowerCase();
		const {tree, functions} = this;
		let time = 0;
		let a = 0;
		let n = 0;

		this.matches = wanted === '' ? null : Uint8Array.from(functions, f => f.search.includes(wanted) ? 1 : 0);
		byId('found').textContent = '';
		if (this.matches !== null) {
			const isBelow = new Uint8Array(tree.n);

			for (let i = 1; i < tree.n; i++) {
				const isMatch = this.matches[tree.func[i]];

				if (isMatch && !isBelow[tree.parent[i]]) {
					time += tree.sum[this.kind][i];
					a += tree.sum[SIDE_A][i];
				}
				isBelow[i] = isBelow[tree.parent[i]] | isMatch;
			}
			n = functions.filter(f => f.total > 0 && this.matches[f.id]).length;
			byId('found').textContent = n === 0 ? 'Nothing found' : `${n} found, ${this.isComparison ? formatSides(time, a) + ' %' : formatShare(time, this.total)} of the time`;
		}
		this.graph.matches = this.matches;
		this.graph.redraw();
		this.table.show(this.total, this.matches, this.isComparison);
	}

	funcOf(row, i) {
		return this.graph.rows[row].tree.func[this.graph.rows[row].node[i]];
	}

	/* Shows the tip for the box at the pointer; null hides it. */
	hover(box, x, y) {
		const tip = byId('tip');

		tip.hidden = box === null;
		if (box === null)
			return;
		const func = this.funcOf(box.row, box.i);
		/* Figures first: a long name leaves no room for what stands below it. */
		const lines = this.boxLines(box).map(text => element('div', text));

		if (func !== ALL) {
			const f = this.functions[func];
			const place = this.places(func)[0];

			lines.push(element('div', this.isComparison ?
				`self ${formatSides(f.self, f.selfA)} %, total ${formatSides(f.total, f.totalA)} %` :
				`self ${formatTime(f.self)} ${formatShare(f.self, this.total)}, total ${formatTime(f.total)} ${formatShare(f.total, this.total)}`));
			lines.push(element('b', f.label), element('div', f.module || 'no module'));
			if (place !== undefined)
				lines.push(element('div', place.text));
		} else {
			lines.push(element('b', 'all'));
		}
		tip.replaceChildren(...lines);
		tip.style.left = Math.max(Math.min(x + 14, innerWidth - tip.offsetWidth - 8), 4) + 'px';
		tip.style.top = (y + 18 + tip.offsetHeight > innerHeight ? Math.max(y - tip.offsetHeight - 10, 4) : y + 18) + 'px';
	}

	/* Formats a sum of time; in a comparison, of both sides. */
	amount(time, a) {
		if (!this.isComparison)
			return formatTime(time) + ', ' + formatShare(time, this.total);
		return `A ${formatTime(a)}, B ${formatTime(Math.max(2 * time - a, 0))} of each second, ${formatSides(time, a)} % (${formatChange(time, a)})`;
	}

	boxLines({row, i}) {
		const {from, to, ready, waiting, node, tree} = this.graph.rows[row];
		const time = to[i] - from[i];
		const parts = this.kind !== WALL || this.isComparison ? '' : [['ready', ready[i]], ['waiting', waiting[i]]]
			.filter(([, part]) => part > 0.001).map(([name, part]) => `, ${name} ${formatTime(time * part)}`).join('');

		if (this.graph.hasAxis)
			return [formatTime(time) + ' from ' + formatTime(from[i]) + parts];
		return [this.amount(time, tree.sum[SIDE_A][node[i]]) + parts];
	}

	/* Returns the addresses of a function with their self time, most first. */
	places(func) {
		const {nodes, frames, strings} = this.profile;
		const times = new Map();

		if (this.placesOf?.func === func && this.placesOf.self === nodes.self[this.kind])
			return this.placesOf.places;
		for (let i = 0; i < nodes.frame.length; i++)
			if (frames.func[nodes.frame[i]] === func)
				times.set(nodes.frame[i], (times.get(nodes.frame[i]) ?? 0) + nodes.self[this.kind][i]);

		/* Several processes may have the same address and line. */
		const byText = new Map();

		for (const [f, self] of times) {
			const file = strings[frames.file[f]];
			const line = frames.line[f] > 0 ? ':' + frames.line[f] : '';
			const text = [frames.address[f] > 0n ? hex(frames.address[f]) : '', file !== '' ? file + line : ''].filter(s => s !== '').join('  ');

			if (text !== '')
				byText.set(text, (byText.get(text) ?? 0) + self);
		}

		const places = [...byText].map(([text, self]) => ({text, self})).sort((a, b) => b.self - a.self);

		this.placesOf = {func, self: nodes.self[this.kind], places};
		return places;
	}

	clearBox() {
		this.graph.marked = ALL;
		byId('box').replaceChildren(element('h2', 'Nothing selected'),
			Object.assign(element('p', 'Click a box to zoom to it, press Esc to go back. Arrow keys move from box to box.'), {className: 'hint'}));
		this.table.mark(-1);
	}

	select(box) {
		const func = this.funcOf(box.row, box.i);

		if (func === ALL) {
			this.clearBox();
			byId('box').firstElementChild.textContent = 'all, ' + this.boxLines(box).join('');
		} else {
			this.showFunction(func, this.boxLines(box));
		}
	}

	/* In the box of a function, its time in a state that the graph does not show alone. */
	entryOfState(state, func, entry) {
		const {tree, outer} = this;
		let self = 0;
		let total = 0;

		for (let i = 1; i < tree.n; i++)
			if (tree.func[i] === func) {
				self += tree.self[state][i];
				total += outer[i] * tree.sum[state][i];
			}
		if (total > 0 && this.kind !== state && !this.isComparison)
			entry(NAMES[state], `self ${formatTime(self)}, total ${formatTime(total)}`);
	}

	selectFunction(func) {
		this.graph.selected = null;
		this.showFunction(func, []);
	}

	/* Makes the heading of a function: a short name is a button that shows the whole name. */
	heading(f) {
		if (f.label === f.name)
			return element('h2', f.name);
		const button = element('button', f.label);
		const unfold = isOpen => {
			button.textContent = isOpen ? f.name : f.label;
			button.setAttribute('aria-expanded', isOpen);
			button.title = isOpen ? 'Show the short name' : 'Show the whole name';
		};

		button.type = 'button';
		button.addEventListener('click', () => unfold(button.getAttribute('aria-expanded') === 'false'));
		unfold(false);
		return element('h2', '', button);
	}

	showFunction(func, boxLines) {
		const f = this.functions[func];
		const list = document.createElement('dl');
		const button = element('button', 'Callers and callees');
		const places = this.places(func);
		const entry = (name, text) => list.append(element('dt', name), element('dd', text));

		for (const line of boxLines)
			entry('This box', line);
		entry('Self', this.amount(f.self, f.selfA));
		entry('Total', this.amount(f.total, f.totalA));
		for (const state of [RUNNING, READY, WAITING])
			this.entryOfState(state, func, entry);
		entry('Module', f.module || 'not known');
		entry('in_app', f.inApp ? 'yes' : 'no');
		places.slice(0, PLACES_MAX).forEach((place, i) => entry(i === 0 ? 'Address' : '', place.text + (place.self > 0 && places.length > 1 && !this.isComparison ? '  ' + formatTime(place.self) : '')));
		if (places.length > PLACES_MAX)
			entry('', 'and ' + (places.length - PLACES_MAX) + ' more');
		button.type = 'button';
		button.addEventListener('click', () => this.openSandwich(func));
		byId('box').replaceChildren(this.heading(f), list, ...(this.sandwich === func ? [] : [button]));
		this.table.mark(func);
		this.graph.marked = func;
		this.graph.redraw();
	}
}

async function start() {
	try {
		const begin = performance.now();
		const data = byId('data');
		const profile = await readProfile(data.textContent);

		data.remove();
		document.querySelector('main').hidden = false;
		new Page(profile);
		performance.measure('load', {start: begin});
	} catch (error) {
		byId('facts').textContent = 'The profile cannot be shown. ' + error.message;
		console.error(error);
	}
}

start();
