// SPDX-License-Identifier: MIT
//
// Threads that get their jobs as messages in turn. A job is a number, because functions cannot be
// sent; who has done all of its share says so once, as nothing else is needed.
'use strict';

const { isMainThread, parentPort } = require('node:worker_threads');
const { sizeArgument, nanosecondsEach, report, startThread } = require('./measure.js');

function work() {
  let left = 0;
  parentPort.on('message', (message) => {
    if (message < 0) left = -message;  // how many will come
    else if (--left === 0) parentPort.postMessage(0);
  });
}

async function measure(workers, size, row) {
  const threads = [];
  for (let i = 0; i < workers; ++i) threads.push(await startThread(__filename));
  const share = (i) => Math.floor(size / workers) + (i < size % workers ? 1 : 0);
  const each = await nanosecondsEach(5, size, () => {
    const done = threads.map((t) => new Promise((resolve) => { t.once('message', resolve); }));
    threads.forEach((t, i) => t.postMessage(-share(i)));
    for (let i = 0; i < size; ++i) threads[i % workers].postMessage(i);
    return Promise.all(done);
  });
  report(row, size, each, 'ns');
  for (const thread of threads) await thread.terminate();
}

async function main() {
  const size = sizeArgument();
  await measure(1, size, 'pool_1');
  await measure(2, size, 'pool_2');
}

if (isMainThread) main(); else work();
