'use strict';
/*
 * Trees of functions and their layout as rows of boxes.
 *
 * A function is a name in a module, and is shown by its label, the short form of the name; a frame
 * without a name is its own function. A tree is
 * {n, parent, func, self, sum}: node 0 is the root ("all") and belongs to no function, and parents
 * stand before their children. self has a column for each kind of time (data.js), with the
 * microseconds in each node itself; sum has those below it too.
 *
 * In a comparison these columns are the mean of both sides, each of which is one second, and the
 * column SIDE_A is side A's part, of the kind of time that is shown. Neither the cost of a tree nor
 * that of a layout depends on the number of samples, only on that of different stacks.
 */

const ALL = -1;
const SIDE_A = WALL + 1;

function baseName(path) {
	return path.slice(path.lastIndexOf('/') + 1);
}

function hex(address) {
	return '0x' + address.toString(16);
}

/* Makes the list of functions, and sets profile.frames.func: the function of each frame. */
function findFunctions(profile) {
	const {frames, strings, shortNames} = profile;
	const found = new Map();
	const functions = [];

	frames.func = new Int32Array(frames.name.length);
	for (let f = 0; f < frames.func.length; f++) {
		const name = strings[frames.name[f]];
		const module = strings[frames.module[f]];
		const own = name !== '' ? name : hex(frames.address[f]);
		const key = frames.module[f] + ' ' + own;
		let id = found.get(key);

		if (id === undefined) {
			id = functions.length;
			found.set(key, id);
			const label = shortNames.get(frames.name[f]) ?? own;

			functions.push({name: own, label, module, base: baseName(module), search: (own + '\n' + label + '\n' + module).toLowerCase(), inApp: false});
		}
		functions[id].inApp ||= frames.inApp[f] === 1;
		frames.func[f] = id;
	}
	return functions;
}

/* Makes the columns of times for n nodes, all 0. */
function noTimes(n) {
	return [RUNNING, READY, WAITING, WALL, SIDE_A].map(() => new Float64Array(n));
}

/* Adds the times of a node to those of another node. */
function addTimes(to, node, times, i) {
	for (let kind = 0; kind < times.length; kind++)
		to[kind][node] += times[kind][i];
}

/* A hash table of nodes by parent and function: open addressing, linear probing. */
class Trie {
	constructor() {
		this.parent = new Column(Int32Array);
		this.func = new Column(Int32Array);
		this.slots = new Int32Array(4096).fill(-1);
		this.parent.push(-1);
		this.func.push(ALL);
	}

	slot(parent, func) {
		const mask = this.slots.length - 1;
		let at = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(func, 0x85ebca6b)) >>> 0;

		for (at = (at ^ (at >>> 15)) & mask; ; at = (at + 1) & mask) {
			const node = this.slots[at];

			if (node < 0 || (this.parent.array[node] === parent && this.func.array[node] === func))
				return at;
		}
	}

	child(parent, func) {
		let at = this.slot(parent, func);

		if (this.slots[at] >= 0)
			return this.slots[at];
		const node = this.parent.length;

		this.parent.push(parent);
		this.func.push(func);
		this.slots[at] = node;
		if (2 * node > this.slots.length) {
			this.slots = new Int32Array(2 * this.slots.length).fill(-1);
			for (let i = 1; i <= node; i++)
				this.slots[this.slot(this.parent.array[i], this.func.array[i])] = i;
		}
		return node;
	}

	/* Returns the tree, with all times 0. */
	tree() {
		const n = this.parent.length;

		return {n, parent: this.parent.get(), func: this.func.get(), self: noTimes(n)};
	}
}

function addUp(tree) {
	tree.sum = tree.self.map(column => column.slice());
	for (let i = tree.n - 1; i > 0; i--)
		addTimes(tree.sum, tree.parent[i], tree.sum, i);
	return tree;
}

/* Lists the children of each node: those of i are list[first[i]] to list[first[i + 1] - 1]. */
function childrenOf(tree) {
	const first = new Int32Array(tree.n + 2);
	const list = new Int32Array(Math.max(tree.n - 1, 0));

	for (let i = 1; i < tree.n; i++)
		first[tree.parent[i] + 2]++;
	for (let i = 2; i < first.length; i++)
		first[i] += first[i - 1];
	for (let i = 1; i < tree.n; i++)
		list[first[tree.parent[i] + 1]++] = i;
	return {first, list};
}

/* Returns 1 for each node without a node of the same function above it: these count for totals. */
function outermost(tree, nFunctions) {
	const {first, list} = childrenOf(tree);
	const open = new Int32Array(nFunctions);
	const next = first.slice();
	const outer = new Uint8Array(tree.n);
	let node = 0;

	while (node >= 0) {
		const func = tree.func[node];

		if (next[node] === first[node] && func !== ALL)
			outer[node] = open[func]++ === 0 ? 1 : 0;
		if (next[node] < first[node + 1]) {
			node = list[next[node]++];
		} else {
			if (func !== ALL)
				open[func]--;
			node = tree.parent[node];
		}
	}
	return outer;
}

/* Makes the merged tree of the profile. profile.nodes.merged maps stacks to nodes of the tree. */
function mergeStacks(profile) {
	const {nodes, frames} = profile;
	const trie = new Trie();

	nodes.merged = new Int32Array(nodes.frame.length);
	for (let i = 0; i < nodes.merged.length; i++)
		nodes.merged[i] = trie.child(nodes.parent[i] < 0 ? 0 : nodes.merged[nodes.parent[i]],
			frames.func[nodes.frame[i]]);

	const tree = trie.tree();

	tree.depth = new Int32Array(tree.n);
	for (let i = 1; i < tree.n; i++)
		tree.depth[i] = tree.depth[tree.parent[i]] + 1;
	return tree;
}

/* Sets the times of the tree, and of the stacks in profile.nodes, to those of these threads. */
function weigh(profile, tree, threads) {
	const {nodes} = profile;

	nodes.self = noTimes(nodes.frame.length);
	for (const thread of threads)
		for (let i = 0; i < thread.stack.length; i++) {
			const time = thread.to[i] - thread.from[i];

			nodes.self[thread.state[i]][thread.stack[i]] += time;
			nodes.self[WALL][thread.stack[i]] += time;
		}
	tree.self = noTimes(tree.n);
	for (let i = 0; i < nodes.merged.length; i++)
		addTimes(tree.self, nodes.merged[i], nodes.self, i);
	return addUp(tree);
}

/*
 * Sets the times of a comparison: all threads, each side as one second of this kind of time. A side
 * without such time stays 0.
 */
function weighSides(profile, tree, kind) {
	const {nodes, threads, processes} = profile;
	const sides = [0, 1].map(side => {
		weigh(profile, tree, threads.filter(t => processes[t.process].side === side));
		const total = tree.sum[kind][0];
		const scaled = times => times.map(column => column.map(time => total > 0 ? time * 1e6 / total : 0));

		return {nodes: scaled(nodes.self), tree: scaled(tree.self)};
	});
	const mean = what => sides[0][what].map((column, c) => column.map((time, i) => (time + sides[1][what][c][i]) / 2));

	nodes.self = mean('nodes');
	tree.self = mean('tree');
	tree.self[SIDE_A] = sides[0].tree[kind];
	return addUp(tree);
}

/* Adds the path from node up to the root to trie, from its root down. Returns the last node. */
function addCallers(trie, tree, node) {
	let at = 0;

	for (; node > 0; node = tree.parent[node])
		at = trie.child(at, tree.func[node]);
	return at;
}

/* Makes the inverted tree: leaf functions at the root, below each its callers. */
function inverted(tree) {
	const trie = new Trie();
	const end = new Int32Array(tree.n);

	for (let i = 1; i < tree.n; i++)
		if (tree.self[WALL][i] > 0)
			end[i] = addCallers(trie, tree, i);

	const result = trie.tree();

	for (let i = 1; i < tree.n; i++)
		addTimes(result.self, end[i], tree.self, i);
	return addUp(result);
}

/* Makes two trees for one function: its callers, inverted, and everything that it calls. */
function sandwich(tree, func, outer) {
	const up = new Trie();
	const down = new Trie();
	const upEnd = new Int32Array(tree.n);
	const downAt = new Int32Array(tree.n);

	for (let i = 1; i < tree.n; i++) {
		if (tree.func[i] === func && outer[i])
			upEnd[i] = addCallers(up, tree, i);
		if (upEnd[i] > 0 || downAt[tree.parent[i]] > 0)
			downAt[i] = down.child(downAt[tree.parent[i]], tree.func[i]);
	}

	const callers = up.tree();
	const callees = down.tree();

	for (let i = 1; i < tree.n; i++) {
		if (upEnd[i] > 0)
			addTimes(callers.self, upEnd[i], tree.sum, i);
		if (downAt[i] > 0)
			addTimes(callees.self, downAt[i], tree.self, i);
	}
	return {callers: addUp(callers), callees: addUp(callees)};
}

/*
 * Lays out a tree as rows, the root first. A row has boxes sorted by x: from and to (microseconds),
 * node, ready and waiting (the parts of the box that are, 0 to 1), and, for a comparison, change: from
 * -1 (in A only) to 1 (in B only). The child with the most time is on the left.
 */
function layOut(tree, kind) {
	const weight = tree.sum[kind];
	const part = of => node => kind === of || kind === WALL ? tree.sum[of][node] / weight[node] : 0;
	const {first, list} = childrenOf(tree);
	const left = new Float64Array(tree.n);
	const rows = [];
	let row = [0];

	for (; row.length > 0 && weight[row[0]] > 0;) {
		const below = [];

		for (const node of row) {
			let x = left[node];
			const children = list.subarray(first[node], first[node + 1]);

			children.sort((a, b) => weight[b] - weight[a] || a - b);
			for (const child of children) {
				if (weight[child] <= 0)
					break;
				left[child] = x;
				x += weight[child];
				below.push(child);
			}
		}
		rows.push({
			tree,
			from: Float64Array.from(row, node => left[node]),
			to: Float64Array.from(row, node => left[node] + weight[node]),
			node: Int32Array.from(row),
			ready: Float32Array.from(row, part(READY)),
			waiting: Float32Array.from(row, part(WAITING)),
			change: Float32Array.from(row, node => 1 - tree.sum[SIDE_A][node] / weight[node]),
		});
		row = below;
	}
	return rows;
}

/* Lays out callers above, from the outermost down to the function, and callees below it. */
function layOutSandwich({callers, callees}, kind) {
	return layOut(callers, kind).slice(2).reverse().concat(layOut(callees, kind).slice(1));
}
