'use strict';
/*
 * The flame chart of one thread: its stacks in the order of time, as rows like those of tree.js. A
 * box is a period in which the thread did not leave the function; a leaf in which the thread was ready
 * or waiting has a box for that state alone. The boxes of a row are sorted by time, so the visible ones
 * are found by binary search.
 */

class ChartRow {
	constructor() {
		this.from = new Column(Float64Array);
		this.to = new Column(Float64Array);
		this.node = new Column(Int32Array);
		this.ready = new Column(Float32Array); /* the part of the box that is ready, 0 to 1 */
		this.waiting = new Column(Float32Array);
		this.times = [0, 0, 0]; /* microseconds of the open box by state, but for running */
		this.open = -1; /* node of the open box; -1: none */
	}

	start(node, time) {
		this.open = node;
		this.times.fill(0);
		this.from.push(time);
		this.node.push(node);
	}

	end(time) {
		const length = time - this.from.array[this.from.length - 1];

		this.to.push(time);
		this.ready.push(Math.min(this.times[READY] / length, 1));
		this.waiting.push(Math.min(this.times[WAITING] / length, 1));
		this.open = -1;
	}
}

/* merged maps thread.stack to nodes of tree. */
function chartRows(tree, merged, thread, kind) {
	const rows = [];
	let depth = 0; /* rows with an open box */
	let before = RUNNING; /* state of the previous sample */
	let end = 0; /* end of the previous sample */

	function close(to) {
		while (depth > to)
			rows[--depth].end(end);
	}

	for (let i = 0; i < thread.from.length; i++) {
		const from = thread.from[i];
		const state = thread.state[i];
		let node = merged[thread.stack[i]];
		const leaf = tree.depth[node];
		let shared = leaf;

		if (kind !== WALL && kind !== state)
			continue;
		/* A node has one path to the root: if the open box is the same node, so are all boxes above it. */
		while (shared > 0 && !(shared <= depth && rows[shared - 1].open === node)) {
			node = tree.parent[node];
			shared--;
		}
		if (from > end) {
			shared = 0;
		} else if (shared < leaf || depth > leaf || before !== state) { /* another stack or state */
			if (state !== RUNNING)
				shared = Math.min(shared, leaf - 1);
			if (before !== RUNNING)
				shared = Math.min(shared, depth - 1);
		}
		close(shared);
		while (rows.length < leaf)
			rows.push(new ChartRow());
		node = merged[thread.stack[i]];
		for (let d = leaf; d > shared; d--) {
			rows[d - 1].start(node, from);
			node = tree.parent[node];
		}
		depth = leaf;
		end = thread.to[i];
		before = state;
		for (let d = 0; state !== RUNNING && d < depth; d++)
			rows[d].times[state] += end - from;
	}
	close(0);
	return rows.map(row => ({
		tree, isExact: true, from: row.from.get(), to: row.to.get(), node: row.node.get(),
		ready: row.ready.get(), waiting: row.waiting.get(), change: new Float32Array(row.node.length), /* used for comparisons only */
	}));
}
