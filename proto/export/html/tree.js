'use strict';
/*
 * Trees of functions and their layout as rows of boxes.
 *
 * A function is a name in a module; a frame without a name is its own function. A tree is
 * {n, parent, func, run, wait, sumRun, sumWait}: node 0 is the root ("all") and belongs to no
 * function, parents stand before their children, run and wait are microseconds in the node itself,
 * sumRun and sumWait those below it too.
 *
 * In a comparison run and wait are the mean of both sides, each of which is one second; a and sumA are
 * side A's part, of the kind of time that is shown. Neither the cost of a tree nor that of a layout depends on
 * the number of samples, only on that of different stacks.
 */

const ALL = -1;

function baseName(path) {
	return path.slice(path.lastIndexOf('/') + 1);
}

function hex(address) {
	return '0x' + address.toString(16);
}

/* Makes the list of functions, and sets profile.frames.func: the function of each frame. */
function findFunctions(profile) {
	const {frames, strings} = profile;
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
			functions.push({name: own, module, base: baseName(module), search: (own + '\n' + module).toLowerCase(), inApp: false});
		}
		functions[id].inApp ||= frames.inApp[f] === 1;
		frames.func[f] = id;
	}
	return functions;
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

		return {
			n, parent: this.parent.get(), func: this.func.get(),
			run: new Float64Array(n), wait: new Float64Array(n), a: new Float64Array(n),
		};
	}
}

function addUp(tree) {
	tree.sumRun = tree.run.slice();
	tree.sumWait = tree.wait.slice();
	tree.sumA = tree.a.slice();
	for (let i = tree.n - 1; i > 0; i--) {
		tree.sumRun[tree.parent[i]] += tree.sumRun[i];
		tree.sumWait[tree.parent[i]] += tree.sumWait[i];
		tree.sumA[tree.parent[i]] += tree.sumA[i];
	}
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

	nodes.run = new Float64Array(nodes.frame.length);
	nodes.wait = new Float64Array(nodes.frame.length);
	for (const thread of threads)
		for (let i = 0; i < thread.stack.length; i++)
			(thread.waits[i] ? nodes.wait : nodes.run)[thread.stack[i]] += thread.to[i] - thread.from[i];
	tree.run.fill(0);
	tree.wait.fill(0);
	for (let i = 0; i < nodes.merged.length; i++) {
		tree.run[nodes.merged[i]] += nodes.run[i];
		tree.wait[nodes.merged[i]] += nodes.wait[i];
	}
	return addUp(tree);
}

/*
 * Sets the times of a comparison: all threads, each side as one second of the kind of time that state
 * names. A side without such time stays 0.
 */
function weighSides(profile, tree, state) {
	const {nodes, threads, processes} = profile;
	const sides = [0, 1].map(side => {
		weigh(profile, tree, threads.filter(t => processes[t.process].side === side));
		const total = weightOf(tree.sumRun[0], tree.sumWait[0], state);

		return {scale: total > 0 ? 1e6 / total : 0, ...tree, runOf: nodes.run, waitOf: nodes.wait, run: tree.run.slice(), wait: tree.wait.slice()};
	});
	const mean = kind => sides[0][kind].map((time, i) => (time * sides[0].scale + sides[1][kind][i] * sides[1].scale) / 2);

	[nodes.run, nodes.wait, tree.run, tree.wait] = ['runOf', 'waitOf', 'run', 'wait'].map(mean);
	for (let i = 0; i < tree.n; i++)
		tree.a[i] = weightOf(sides[0].run[i], sides[0].wait[i], state) * sides[0].scale;
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
		if (tree.run[i] + tree.wait[i] > 0)
			end[i] = addCallers(trie, tree, i);

	const result = trie.tree();

	for (let i = 1; i < tree.n; i++) {
		result.run[end[i]] += tree.run[i];
		result.wait[end[i]] += tree.wait[i];
		result.a[end[i]] += tree.a[i];
	}
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
		if (upEnd[i] > 0) {
			callers.run[upEnd[i]] += tree.sumRun[i];
			callers.wait[upEnd[i]] += tree.sumWait[i];
			callers.a[upEnd[i]] += tree.sumA[i];
		}
		if (downAt[i] > 0) {
			callees.run[downAt[i]] += tree.run[i];
			callees.wait[downAt[i]] += tree.wait[i];
			callees.a[downAt[i]] += tree.a[i];
		}
	}
	return {callers: addUp(callers), callees: addUp(callees)};
}

/* Returns the time that counts in this state: 'running', 'waiting', or both ('wall'). */
function weightOf(run, wait, state) {
	return (state === 'waiting' ? 0 : run) + (state === 'running' ? 0 : wait);
}

/*
 * Lays out a tree as rows, the root first. A row has boxes sorted by x: from and to (microseconds),
 * node, share (the part of the box that is waiting, 0 to 1), and, for a comparison, change: from -1
 * (in A only) to 1 (in B only). The child with the most time is on the left.
 */
function layOut(tree, state) {
	const weight = new Float64Array(tree.n);
	const {first, list} = childrenOf(tree);
	const left = new Float64Array(tree.n);
	const rows = [];
	let row = [0];

	for (let i = 0; i < tree.n; i++)
		weight[i] = weightOf(tree.sumRun[i], tree.sumWait[i], state);
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
			share: Float32Array.from(row, node => state === 'running' ? 0 : weightOf(0, tree.sumWait[node], state) / weight[node]),
			change: Float32Array.from(row, node => 1 - tree.sumA[node] / weight[node]),
		});
		row = below;
	}
	return rows;
}

/* Lays out callers above, from the outermost down to the function, and callees below it. */
function layOutSandwich({callers, callees}, state) {
	return layOut(callers, state).slice(2).reverse().concat(layOut(callees, state).slice(1));
}
