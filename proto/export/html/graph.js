'use strict';
/*
 * The canvas: draws rows of boxes (tree.js, chart.js), and lets the user zoom and pan.
 *
 * The cost of a redraw depends on the number of pixels, not on the number of boxes: for each visible
 * row it finds the first visible box by binary search, and skips boxes that fall into a pixel that is
 * painted already. Long rows have coarser copies, in which a pixel has at most a few boxes. Boxes as
 * wide as a pixel are not drawn one by one but set in an image (the strip: a line for each visible
 * row), which is drawn at the end.
 */

const ROW_PX = 20;
const AXIS_PX = 22;
const DIM = 0.35; /* opacity of boxes that do not match the search */
const CHAR_PX_MIN = 24; /* boxes that are narrower have no text */
const DRAG_PX = 4; /* a shorter move of the pointer is a click */
const ZOOM_MAX = 1e7; /* the largest zoom */
const CELLS_MIN = 1 << 10; /* cells of the coarsest copy of a row: about the pixels of a screen */
const CELLS_MAX = 1 << 20; /* cells of the finest copy: few rows have more boxes */

/* Returns the first index of a sorted array whose value is above limit. */
function firstAbove(array, limit) {
	let low = 0;
	let high = array.length;

	while (low < high) {
		const middle = (low + high) >>> 1;

		if (array[middle] > limit)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Makes copies of a row for zooms at which a pixel is wider than a cell, finest first. Of the boxes
 * that end in one cell a copy has only the longest: all others are narrower than the cell.
 */
function coarserRows(row, total) {
	const levels = [];
	let finer = row;

	for (let cells = CELLS_MAX; cells >= CELLS_MIN && finer.to.length > 2 * CELLS_MIN; cells /= 4) {
		const cell = total / cells;
		const kept = [];
		let last = -1;

		for (let i = 0; i < finer.to.length; i++) {
			const at = Math.floor(finer.to[i] / cell);
			const other = kept[kept.length - 1];

			if (at !== last)
				kept.push(i);
			else if (finer.to[i] - finer.from[i] > finer.to[other] - finer.from[other])
				kept[kept.length - 1] = i;
			last = at;
		}
		if (2 * kept.length > finer.to.length)
			continue;

		const coarser = {...finer, cell};

		for (const key of ['from', 'to', 'node', 'ready', 'waiting', 'change'])
			coarser[key] = finer[key].constructor.from(kept, i => finer[key][i]);
		levels.push(coarser);
		finer = coarser;
	}
	return levels;
}

/* Returns the distance of ticks on the axis: 1, 2 or 5 times a power of ten, at least `least`. */
function tickStep(least) {
	const power = 10 ** Math.floor(Math.log10(least));

	return power * ([1, 2, 5].find(factor => factor * power >= least) ?? 10);
}

class Graph {
	/* on: {hover(box, x, y), select(box), open(box), zoom()}; a box is {row, i}, or null. */
	constructor(canvas, scroller, spacer, on) {
		Object.assign(this, {canvas, scroller, spacer, on});
		this.context = canvas.getContext('2d');
		this.rows = [];
		this.total = 1;
		this.left = 0;
		this.right = 1;
		this.history = [];
		this.isWheeling = false;
		this.selected = null;
		this.marked = ALL; /* the marked function */
		this.matches = null;
		this.changeFills = null; /* for a comparison: colours for changes from -1 to 1; else each function has a colour */
		this.pointers = new Map();
		new ResizeObserver(() => this.resize()).observe(scroller);
		scroller.addEventListener('scroll', () => this.redraw());
		canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
		canvas.addEventListener('pointerdown', event => this.pointerDown(event));
		canvas.addEventListener('pointermove', event => this.pointerMove(event));
		for (const name of ['pointerup', 'pointercancel'])
			canvas.addEventListener(name, event => this.pointerUp(event));
		canvas.addEventListener('pointerleave', () => this.on.hover(null));
		canvas.addEventListener('keydown', event => this.key(event));
	}

	/* functions: label, fill (colour), inApp. hasAxis: x is the time since the start, else a sum of time. */
	show(rows, total, functions, hasAxis) {
		Object.assign(this, {rows, functions, hasAxis, selected: null, history: [], isWheeling: false});
		this.total = Math.max(total, 1e-9);
		this.levels = rows.map(row => coarserRows(row, this.total));
		this.left = 0;
		this.right = this.total;
		this.top = hasAxis ? AXIS_PX : 0;
		this.scroller.scrollTop = 0;
		this.resize();
	}

	resize() {
		const ratio = window.devicePixelRatio || 1;

		this.scroller.style.setProperty('--rows-height', this.top + this.rows.length * ROW_PX + 24 + 'px');
		this.width = this.scroller.clientWidth;
		this.height = this.scroller.clientHeight;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.width = this.width + 'px';
		this.canvas.style.height = this.height + 'px';
		this.spacer.style.height = Math.max(this.top + this.rows.length * ROW_PX - this.height, 0) + 'px';
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.strip = new OffscreenCanvas(Math.max(this.width, 1), Math.ceil(this.height / ROW_PX) + 2);
		this.stripImage = new ImageData(this.strip.width, this.strip.height);
		this.stripPixels = new Uint32Array(this.stripImage.data.buffer);
		this.redraw();
	}

	recolour() {
		const style = getComputedStyle(this.canvas);

		this.colours = {};
		for (const name of ['text', 'muted', 'back', 'accent', 'found', 'found-text', 'hatch', 'dot', 'line'])
			this.colours[name] = style.getPropertyValue('--' + name).trim();
		this.hatch = this.pattern(pen => {
			pen.strokeStyle = this.colours.hatch;
			pen.lineWidth = 1.5;
			for (const shift of [-6, 0, 6]) {
				pen.moveTo(shift - 1, 7);
				pen.lineTo(shift + 7, -1);
			}
			pen.stroke();
		});
		this.dots = this.pattern(pen => {
			pen.fillStyle = this.colours.dot;
			for (const at of [1.5, 4.5]) {
				pen.moveTo(at, at);
				pen.arc(at, at, 1.1, 0, 2 * Math.PI);
			}
			pen.fill();
		});
		this.pixelOf = new Map(); /* from a colour to its pixel for the strip */
		this.redraw();
	}

	/* Makes a pattern of a tile of 6 by 6 pixels. */
	pattern(draw) {
		const tile = new OffscreenCanvas(6, 6);

		draw(tile.getContext('2d'));
		return this.context.createPattern(tile, 'repeat');
	}

	/* Converts a CSS colour to a pixel: the bytes red, green, blue and alpha. */
	pixel(colour, alpha) {
		const key = alpha === 1 ? colour : colour + ' dim';
		let pixel = this.pixelOf.get(key);

		if (pixel === undefined) {
			const pen = new OffscreenCanvas(1, 1).getContext('2d');

			pen.globalAlpha = alpha;
			pen.fillStyle = colour;
			pen.fillRect(0, 0, 1, 1);
			pixel = new Uint32Array(pen.getImageData(0, 0, 1, 1).data.buffer)[0];
			this.pixelOf.set(key, pixel);
		}
		return pixel;
	}

	redraw() {
		this.isDue ||= requestAnimationFrame(() => {
			this.isDue = 0;
			this.draw();
		});
	}

	draw() {
		const begin = performance.now();
		const pen = this.context;
		const scroll = this.scroller.scrollTop;
		const first = Math.max(Math.floor((scroll - this.top) / ROW_PX), 0);
		const last = Math.min(Math.ceil((scroll + this.height - this.top) / ROW_PX), this.rows.length);

		pen.fillStyle = this.colours.back;
		pen.fillRect(0, 0, this.width, this.height);
		pen.textBaseline = 'middle';
		pen.font = '12px ' + getComputedStyle(this.canvas).fontFamily;
		this.charPx = pen.measureText('0').width;
		this.stripPixels.fill(0);
		for (let r = first; r < last; r++)
			this.drawRow(r, this.top + r * ROW_PX - scroll, (r - first) * this.strip.width);
		this.strip.getContext('2d').putImageData(this.stripImage, 0, 0);
		pen.imageSmoothingEnabled = false;
		for (let r = first; r < last; r++)
			pen.drawImage(this.strip, 0, r - first, this.width, 1, 0, this.top + r * ROW_PX - scroll, this.width, ROW_PX - 1);
		if (this.selected !== null)
			this.outline(this.selected, scroll);
		if (this.hasAxis)
			this.drawAxis();
		/* For developer tools and tests. Only the last measurement is kept. */
		performance.clearMeasures('draw');
		performance.measure('draw', {start: begin});
	}

	/* line: the index at which the line of the row begins in the strip. */
	drawRow(r, y, line) {
		const scale = this.width / (this.right - this.left);
		const row = this.levels[r].findLast(level => level.cell * scale <= 1) ?? this.rows[r];
		const {from, to} = row;

		for (let i = firstAbove(to, this.left); i < to.length && from[i] < this.right;) {
			const x = (from[i] - this.left) * scale;
			const end = (to[i] - this.left) * scale;

			if (end - x < 1.5) {
				const pixel = Math.floor(x);

				const painted = this.left + (pixel + 1) / scale;

				if (pixel >= 0 && pixel < this.strip.width)
					this.stripPixels[line + pixel] = this.pixel(this.fill(row, i), this.isDim(row, i) ? DIM : 1);
				do
					i++;
				while (i < to.length && to[i] <= painted);
			} else {
				this.drawBox(row, i, x, end, y);
				i++;
			}
		}
	}

	isFound(row, i) {
		const func = row.tree.func[row.node[i]];

		return this.matches !== null && func !== ALL && this.matches[func] === 1;
	}

	isDim(row, i) {
		return this.matches !== null && !this.isFound(row, i);
	}

	fill(row, i) {
		const func = row.tree.func[row.node[i]];

		if (this.isFound(row, i))
			return this.colours.found;
		if (func === ALL)
			return this.colours.line;
		if (this.changeFills === null)
			return this.functions[func].fill;
		const middle = (this.changeFills.length - 1) / 2;

		return this.changeFills[Math.round(middle + Math.min(Math.max(row.change[i], -1), 1) * middle)];
	}

	drawBox(row, i, x, end, y) {
		const pen = this.context;
		const func = row.tree.func[row.node[i]];
		const left = Math.max(x, 0);
		const gap = end - x > 3 ? 1 : 0;
		const width = Math.min(end, this.width) - left - gap;

		if (this.isDim(row, i))
			pen.globalAlpha = DIM;
		pen.fillStyle = this.fill(row, i);
		pen.fillRect(left, y, width, ROW_PX - 1);
		/* From the right: the waiting part, then the ready part. */
		for (const [share, pattern, before] of [[row.waiting[i], this.hatch, 0], [row.ready[i], this.dots, row.waiting[i]]]) {
			const start = Math.max(end - (end - x) * (before + share), left);
			const stop = Math.min(end - (end - x) * before, left + width);

			if (share > (row.isExact ? 0.999 : 0.001) && stop > start) {
				pen.fillStyle = pattern;
				pen.fillRect(start, y, stop - start, ROW_PX - 1);
			}
		}
		if (func !== ALL && this.functions[func].inApp) {
			pen.fillStyle = this.colours.muted;
			pen.fillRect(left, y + ROW_PX - 3, width, 2);
		}
		pen.globalAlpha = 1;
		if (func === this.marked && func !== ALL) {
			pen.fillStyle = this.colours.accent;
			pen.fillRect(left, y, width, 2);
		}
		if (width >= CHAR_PX_MIN)
			this.drawText(this.label(row, i), left, y, width, this.isFound(row, i));
	}

	label(row, i) {
		const func = row.tree.func[row.node[i]];

		return func === ALL ? 'all' : this.functions[func].label;
	}

	drawText(text, x, y, width, isFound) {
		const room = Math.floor((width - 6) / this.charPx);

		this.context.fillStyle = isFound ? this.colours['found-text'] : this.colours.text;
		this.context.fillText(text.length <= room ? text : text.slice(0, Math.max(room - 1, 1)) + '\u2026',
			x + 3, y + ROW_PX / 2, width - 4);
	}

	outline({row, i}, scroll) {
		const scale = this.width / (this.right - this.left);
		const box = this.rows[row];
		const x = Math.max((box.from[i] - this.left) * scale, 0);
		const end = Math.min((box.to[i] - this.left) * scale, this.width);

		if (end < 0 || x > this.width)
			return;
		this.context.strokeStyle = this.colours.accent;
		this.context.lineWidth = 2;
		this.context.strokeRect(x + 1, this.top + row * ROW_PX - scroll + 1, Math.max(end - x - 3, 1), ROW_PX - 3);
	}

	drawAxis() {
		const pen = this.context;
		const range = this.right - this.left;
		const step = tickStep(range * 90 / this.width);

		pen.fillStyle = this.colours.back;
		pen.fillRect(0, 0, this.width, AXIS_PX);
		pen.fillStyle = this.colours.muted;
		for (let tick = Math.ceil(this.left / step); tick * step < this.right; tick++) {
			const x = (tick * step - this.left) * this.width / range;

			pen.fillRect(Math.round(x), 0, 1, AXIS_PX - 2);
			pen.fillText(formatTime(tick * step, step), x + 4, AXIS_PX / 2);
		}
	}

	/* Returns the box at a point of the canvas. */
	boxAt(x, y) {
		const row = Math.floor((y + this.scroller.scrollTop - this.top) / ROW_PX);
		const at = this.left + x * (this.right - this.left) / this.width;

		if (y < this.top || row < 0 || row >= this.rows.length)
			return null;
		const i = firstAbove(this.rows[row].to, at);

		return i < this.rows[row].to.length && this.rows[row].from[i] <= at ? {row, i} : null;
	}

	/* Moves the visible range, but not beyond the ends of the graph. */
	setRange(left, right) {
		const range = Math.min(Math.max(right - left, this.total / ZOOM_MAX), this.total);

		this.left = Math.min(Math.max(left, 0), this.total - range);
		this.right = this.left + range;
		this.redraw();
		this.on.zoom();
	}

	remember() {
		this.history.push([this.left, this.right]);
	}

	/* Undoes the last zoom. Returns false if there is none. */
	back() {
		this.isWheeling = false;
		if (this.history.length === 0)
			return false;
		this.setRange(...this.history.pop());
		return true;
	}

	zoomTo({row, i}) {
		const from = this.rows[row].from[i];
		const to = this.rows[row].to[i];

		this.isWheeling = false;
		if (from === this.left && to === this.right)
			return;
		this.remember();
		this.setRange(from, to);
	}

	/* Zooms by a factor, below 1 to zoom in. The point x keeps its place on the screen. */
	zoomAt(x, factor) {
		const at = this.left + x * (this.right - this.left) / this.width;

		if (!this.isWheeling)
			this.remember();
		this.isWheeling = true; /* Esc undoes all steps of the wheel at once */
		this.setRange(at - (at - this.left) * factor, at + (this.right - at) * factor);
	}

	pan(px) {
		const by = px * (this.right - this.left) / this.width;

		this.setRange(this.left + by, this.left + by + (this.right - this.left));
	}

	wheel(event) {
		const lines = event.deltaMode === 1 ? ROW_PX : 1;

		event.preventDefault();
		if (event.shiftKey)
			this.scroller.scrollTop += (event.deltaY || event.deltaX) * lines;
		else if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
			this.pan(event.deltaX * lines);
		else
			this.zoomAt(event.offsetX, Math.exp(Math.min(Math.max(event.deltaY * lines, -200), 200) / 400));
	}

	pointerDown(event) {
		this.pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
		this.isDrag = this.pointers.size > 1;
		this.downAt = {x: event.offsetX, y: event.offsetY};
		this.canvas.setPointerCapture(event.pointerId);
	}

	pointerMove(event) {
		const before = this.pointers.get(event.pointerId);
		const now = {x: event.offsetX, y: event.offsetY};

		if (before === undefined) {
			this.on.hover(this.boxAt(now.x, now.y), event.clientX, event.clientY);
			return;
		}
		if (!this.isDrag && Math.hypot(now.x - this.downAt.x, now.y - this.downAt.y) < DRAG_PX)
			return;
		this.isDrag = true;
		this.on.hover(null);
		if (this.pointers.size === 2) {
			const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];

			this.zoomAt((now.x + other.x) / 2,
				Math.max(Math.abs(before.x - other.x), 8) / Math.max(Math.abs(now.x - other.x), 8));
		} else {
			this.pan(before.x - now.x);
			if (event.pointerType === 'mouse')
				this.scroller.scrollTop += before.y - now.y;
		}
		this.pointers.set(event.pointerId, now);
	}

	pointerUp(event) {
		const isClick = event.type === 'pointerup' && !this.isDrag && this.pointers.size === 1;

		this.pointers.delete(event.pointerId);
		if (!isClick)
			return;
		const box = this.boxAt(event.offsetX, event.offsetY);

		if (box === null)
			return;
		this.select(box);
		this.zoomTo(box);
	}

	select(box) {
		this.selected = box;
		this.redraw();
		this.on.select(box);
	}

	/* Selects a neighbour of the selected box: in the next row, or beside it. */
	step(rows, boxes) {
		if (this.rows.length === 0)
			return;
		if (this.selected === null) {
			const i = firstAbove(this.rows[0].to, this.left);

			this.reveal({row: 0, i: Math.min(i, this.rows[0].to.length - 1)});
			return;
		}
		const old = this.rows[this.selected.row];
		const row = this.selected.row + rows;
		let i = this.selected.i + boxes;

		if (row < 0 || row >= this.rows.length)
			return;
		if (rows !== 0) {
			i = firstAbove(this.rows[row].to, Math.max(old.from[i], Math.min(this.left, old.to[i] - 1e-9)));
			if (i < this.rows[row].to.length && this.rows[row].from[i] >= old.to[this.selected.i])
				return;
		}
		if (i >= 0 && i < this.rows[row].to.length)
			this.reveal({row, i});
	}

	/* Selects box, and scrolls and pans to it: to the middle, or only as far as needed. */
	reveal(box, isMiddle = false) {
		const {from, to} = this.rows[box.row];
		const range = this.right - this.left;
		const y = this.top + box.row * ROW_PX;

		if (to[box.i] <= this.left || from[box.i] >= this.right)
			this.setRange((from[box.i] + to[box.i] - range) / 2, (from[box.i] + to[box.i] + range) / 2);
		if (isMiddle)
			this.scroller.scrollTop = y - this.height / 2;
		else if (y - this.top < this.scroller.scrollTop)
			this.scroller.scrollTop = y - this.top;
		else if (y + ROW_PX > this.scroller.scrollTop + this.height)
			this.scroller.scrollTop = y + ROW_PX - this.height;
		this.select(box);
	}

	key(event) {
		const step = this.width / 8;
		const keys = {
			ArrowUp: () => this.step(-1, 0),
			ArrowDown: () => this.step(1, 0),
			ArrowLeft: () => event.shiftKey ? this.pan(-step) : this.step(0, -1),
			ArrowRight: () => event.shiftKey ? this.pan(step) : this.step(0, 1),
			Enter: () => this.selected !== null && this.zoomTo(this.selected),
			' ': () => this.selected !== null && this.zoomTo(this.selected),
			'+': () => this.zoomAt(this.width / 2, 0.7),
			'=': () => this.zoomAt(this.width / 2, 0.7),
			'-': () => this.zoomAt(this.width / 2, 1 / 0.7),
			Home: () => (this.remember(), this.setRange(0, this.total)),
			s: () => this.selected !== null && this.on.open(this.selected),
		};

		if (event.ctrlKey || event.altKey || event.metaKey || keys[event.key] === undefined)
			return;
		event.preventDefault();
		keys[event.key]();
	}
}
