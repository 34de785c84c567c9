'use strict';
/*
 * The flame chart of one thread: what it did, in the order of time, as rows like those of tree.js.
 * A box is a time during which the thread did not leave the function. The boxes of a row are in the
 * order of time, so what is visible is found by binary search.
 */

class ChartRow {
	constructor() {
		this.from = new Column(Float64Array);
		this.to = new Column(Float64Array);
		this.node = new Column(Int32Array);
		this.share = new Column(Float32Array); /* how much of it waits, from 0 to 1 */
		this.waited = 0; /* microseconds of the open box */
		this.open = -1; /* its node */
	}

	start(node, time) {
		this.open = node;
		this.waited = 0;
		this.from.push(time);
		this.node.push(node);
	}

	end(time) {
		const length = time - this.from.array[this.from.length - 1];

		this.to.push(time);
		this.share.push(Math.min(this.waited / length, 1));
		this.open = -1;
	}
}

/* merged leads from thread.stack to the nodes of tree. */
function chartRows(tree, merged, thread, state) {
	const rows = [];
	let depth = 0; /* rows with an open box */
	let waits = -1; /* state of the sample before */
	let end = 0; /* of the sample before */

	function close(to) {
		while (depth > to)
			rows[--depth].end(end);
	}

	for (let i = 0; i < thread.from.length; i++) {
		const from = thread.from[i];
		const length = thread.to[i] - from;
		let node = merged[thread.stack[i]];
		const leaf = tree.depth[node];
		let shared = leaf;

		if (weightOf(1 - thread.waits[i], thread.waits[i], state) === 0)
			continue;
		/* A node stands below one path only: where the open box is the same node, all above it are. */
		while (shared > 0 && !(shared <= depth && rows[shared - 1].open === node)) {
			node = tree.parent[node];
			shared--;
		}
		if (from > end)
			shared = 0;
		else if (waits !== thread.waits[i])
			shared = Math.min(shared, leaf - 1); /* the function that waits, and nothing else of it */
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
		waits = thread.waits[i];
		for (let d = 0; waits && d < depth; d++)
			rows[d].waited += length;
	}
	close(0);
	return rows.map(row => ({
		tree, isExact: true, from: row.from.get(), to: row.to.get(), node: row.node.get(), share: row.share.get(),
		change: new Float32Array(row.node.length), /* not of a comparison */
	}));
}
