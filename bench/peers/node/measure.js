// SPDX-License-Identifier: MIT
//
// What the Node peers share: their size argument, the median, a thread, and the line per result.
'use strict';

const { Worker } = require('node:worker_threads');

function sizeArgument() {
  const size = Number(process.argv[2]);
  if (Number.isInteger(size) && size > 0) return size;
  console.error(`usage: node ${process.argv[1]} SIZE (a positive number of items)`);
  process.exit(2);
}

const nanoseconds = () => Number(process.hrtime.bigint());

function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

// The median cost per item over some rounds, after one warm-up round.
async function nanosecondsEach(rounds, size, work) {
  await work();
  const each = [];
  for (let round = 0; round < rounds; ++round) {
    const start = nanoseconds();
    await work();
    each.push((nanoseconds() - start) / size);
  }
  return median(each);
}

function report(row, size, value, unit) {
  console.log(`${row}\t${size}\t${value.toFixed(3)}\t${unit}`);
}

// A thread that runs `file` again, where isMainThread is false.
function startThread(file) {
  return new Promise((resolve, reject) => {
    const thread = new Worker(file);
    thread.once('online', () => resolve(thread));
    thread.once('error', reject);
  });
}

module.exports = { sizeArgument, nanoseconds, median, nanosecondsEach, report, startThread };
