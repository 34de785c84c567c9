// Two threads of Node.js that send numbers to each other.
const { Worker, isMainThread, parentPort } = require('worker_threads');

function work(n) {
	let sum = 0;

	for (let i = 0; i < 2000; i++)
		sum += i * n;
	return n + (sum < 0 ? 2 : 1);
}

if (isMainThread) {
	const worker = new Worker(__filename);

	worker.on('message', (n) => worker.postMessage(work(n)));
	worker.postMessage(0);
	console.log('ready', process.pid);
} else {
	parentPort.on('message', (n) => parentPort.postMessage(work(n)));
}
