'use strict';
/*
 * Reads the data of the page, the stream that proto/export/html/html.h defines, into typed arrays.
 * All times are in microseconds. Throws an Error with a sentence for the user.
 */

const NO_STACK = -1;

/* The kinds of time: a thread is in one of three states, and wall is the sum of these. */
const RUNNING = 0;
const READY = 1;
const WAITING = 2;
const WALL = 3;
const STATES = 3;

/* Characters that would change the text around a name: control characters and bidi marks. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

class Bytes {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
		this.text = new TextDecoder();
	}

	need(n) {
		if (n > this.bytes.length - this.at)
			throw new Error('The data of this page end early: the file is not complete.');
	}

	byte() {
		this.need(1);
		return this.bytes[this.at++];
	}

	/* Reads LEB128. Only times are above 2^31, so the slow path for them is rare. */
	number() {
		let byte = this.byte();
		let value = byte & 127;
		let unit = 128;

		while (byte > 127) {
			byte = this.byte();
			value += (byte & 127) * unit;
			unit *= 128;
		}
		return value;
	}

	string(n) {
		this.need(n);
		this.at += n;
		return this.text.decode(this.bytes.subarray(this.at - n, this.at)).replace(UNSEEN, '\ufffd');
	}

	/* Reads a count or an index, which has to be below limit. */
	index(limit) {
		const value = this.number();

		if (value >= limit)
			throw new Error('The data of this page are damaged.');
		return value;
	}
}

/* A typed array that grows. */
class Column {
	constructor(Type) {
		this.array = new Type(1024);
		this.length = 0;
	}

	push(value) {
		if (this.length === this.array.length) {
			const wider = new this.array.constructor(2 * this.length);

			wider.set(this.array);
			this.array = wider;
		}
		this.array[this.length++] = value;
	}

	get() {
		return this.array.subarray(0, this.length);
	}
}

async function inflate(base64) {
	/* graph.js calls findLast(), which is the newer one in Chrome. */
	if (typeof DecompressionStream === 'undefined' || Array.prototype.findLast === undefined)
		throw new Error('This browser is too old: the page needs Chrome 97, Firefox 113 or Safari 16.4.');
	const text = atob(base64);
	const packed = new Uint8Array(text.length);

	for (let i = 0; i < packed.length; i++)
		packed[i] = text.charCodeAt(i);

	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));

	return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readFrames(from, end, profile) {
	const n = profile.strings.length;
	const frames = profile.frames;

	while (from.at < end) {
		frames.name.push(from.index(n));
		frames.module.push(from.index(n));
		frames.file.push(from.index(n));
		frames.line.push(from.number());
		frames.inApp.push(from.byte() & 1);
		from.need(8);
		frames.address.push(new DataView(from.bytes.buffer, from.at, 8).getBigUint64(0, true));
		from.at += 8;
	}
}

function readNodes(from, end, profile) {
	const nodes = profile.nodes;

	while (from.at < end) {
		const back = from.index(nodes.frame.length + 1);

		nodes.parent.push(back === 0 ? NO_STACK : nodes.frame.length - back);
		nodes.frame.push(from.index(profile.frames.name.length));
	}
}

/* Reads the samples of one thread: the start of each, and the end of the last one. */
function readRuns(from, profile) {
	const thread = profile.threads[from.index(profile.threads.length)];
	const start = from.number();
	const n = from.index(from.bytes.length);
	const runs = {start, time: new Float64Array(n + 1), stack: new Int32Array(n), state: new Uint8Array(n)};
	let node = 0;

	runs.time[0] = start;
	for (let i = 0; i < n; i++)
		runs.time[i + 1] = runs.time[i] + from.number();
	for (let i = 0; i < n; i++) {
		const value = from.number();
		const step = Math.floor(value / STATES);

		runs.state[i] = value % STATES;
		node += step & 1 ? -(step + 1) / 2 : step / 2;
		if (node < 0 || node > profile.nodes.frame.length)
			throw new Error('The data of this page are damaged.');
		runs.stack[i] = node - 1;
	}
	thread.parts.push(runs);
}

function readBlock(kind, from, end, profile) {
	const n = profile.strings.length;

	switch (kind) {
	case 'S':
		while (from.at < end)
			profile.strings.push(from.string(from.number()));
		break;
	case 'P':
		while (from.at < end) {
			const [id, platform, release, environment] = [0, 1, 2, 3].map(() => profile.strings[from.index(n)]);

			profile.processes.push({id, platform, release, environment});
		}
		break;
	case 'A':
		for (const process of profile.processes)
			process.commandLine = profile.strings[from.index(n)];
		break;
	case 'T':
		while (from.at < end) {
			const process = from.index(profile.processes.length);
			const [id, name] = [0, 1].map(() => profile.strings[from.index(n)]);

			profile.threads.push({process, id, name, parts: []});
		}
		break;
	case 'F':
		readFrames(from, end, profile);
		break;
	case 'L':
		while (from.at < end) {
			const name = from.index(n);

			profile.shortNames.set(name, profile.strings[from.index(n)]);
		}
		break;
	case 'N':
		readNodes(from, end, profile);
		break;
	case 'R':
		readRuns(from, profile);
		break;
	case 'C':
		profile.sides = [0, 1].map(() => ({name: profile.strings[from.index(n)], lasts: from.number()}));
		for (const process of profile.processes)
			process.side = from.index(2);
		break;
	case 'W':
		profile.lacksLines = true;
		break;
	case 'E':
		profile.samples = from.number();
		profile.hasState = from.byte() === 1;
		profile.hidesReady = from.byte() === 1;
		break;
	default: /* a block of a later version */
		from.at = end;
	}
}

/* Joins the parts of each thread to one array of samples, sorted by time. */
function joinParts(thread, begin) {
	const time = new Column(Float64Array);
	const until = new Column(Float64Array);
	const stack = new Column(Int32Array);
	const state = new Column(Uint8Array);
	let last = 0;

	thread.parts.sort((a, b) => a.start - b.start);
	for (const part of thread.parts)
		for (let i = 0; i < part.stack.length; i++) {
			const from = Math.max(part.time[i] - begin, last);
			const to = part.time[i + 1] - begin;

			if (part.stack[i] === NO_STACK || to <= from)
				continue;
			time.push(from);
			until.push(to);
			stack.push(part.stack[i]);
			state.push(part.state[i]);
			last = to;
		}
	delete thread.parts;
	Object.assign(thread, {from: time.get(), to: until.get(), stack: stack.get(), state: state.get()});
	thread.times = [0, 0, 0]; /* by state */
	for (let i = 0; i < thread.from.length; i++)
		thread.times[thread.state[i]] += thread.to[i] - thread.from[i];
}

async function readProfile(base64) {
	const from = new Bytes(await inflate(base64));
	const profile = {
		strings: [], processes: [], threads: [], samples: -1, hasState: false, hidesReady: false,
		lacksLines: false,
		shortNames: new Map(), /* by string: of names that have a short form */
		sides: null, /* of a comparison: name and duration (lasts) of A and of B */
		frames: {
			name: new Column(Uint32Array), module: new Column(Uint32Array), file: new Column(Uint32Array),
			line: new Column(Uint32Array), inApp: new Column(Uint8Array), address: new Column(BigUint64Array),
		},
		nodes: {parent: new Column(Int32Array), frame: new Column(Uint32Array)},
	};

	if (from.string(4) !== 'SPH2')
		throw new Error('The data of this page are of another version.');
	while (from.at < from.bytes.length) {
		const kind = String.fromCharCode(from.byte());

		from.need(4);
		const size = new DataView(from.bytes.buffer, from.at, 4).getUint32(0, true);

		from.at += 4;
		from.need(size);
		const end = from.at + size;

		readBlock(kind, from, end, profile);
		if (from.at !== end)
			throw new Error('The data of this page are damaged.');
	}
	if (profile.samples < 0)
		throw new Error('The data of this page end early: the file is not complete.');
	for (const columns of [profile.frames, profile.nodes])
		for (const key of Object.keys(columns))
			columns[key] = columns[key].get();

	let begin = Infinity;
	let end = 0;

	for (const thread of profile.threads)
		for (const part of thread.parts) {
			begin = Math.min(begin, part.start);
			end = Math.max(end, part.time[part.stack.length]);
		}
	profile.begin = begin === Infinity ? 0 : begin;
	profile.duration = Math.max(end - profile.begin, 0);
	for (const thread of profile.threads)
		joinParts(thread, profile.begin);
	profile.threads = profile.threads.filter(t => t.from.length > 0);
	return profile;
}
