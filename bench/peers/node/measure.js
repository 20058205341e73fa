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

// Of all threads of the process.
function processorNanoseconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

// The median cost per item over some rounds, after one warm-up round: by the clock, and of the
// processors.
async function nanosecondsEach(rounds, size, work) {
  await work();
  const wall = [];
  const cpu = [];
  for (let round = 0; round < rounds; ++round) {
    const before = processorNanoseconds();
    const start = nanoseconds();
    await work();
    wall.push((nanoseconds() - start) / size);
    cpu.push((processorNanoseconds() - before) / size);
  }
  return { wall: median(wall), cpu: median(cpu) };
}

// A cost has a fifth field, a mere number has not.
function report(row, size, value, unit) {
  const cost = typeof value === 'number' ? { wall: value } : value;
  const fields = [row, size, cost.wall.toFixed(3), unit];
  if (cost.cpu !== undefined) fields.push(cost.cpu.toFixed(3));
  console.log(fields.join('\t'));
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
