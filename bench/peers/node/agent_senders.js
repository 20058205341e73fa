// SPDX-License-Identifier: MIT
//
// A sender is an async function. It gives way after each hundred, as otherwise one would send all
// of its messages before the next one begins.
'use strict';

const { Agent } = require('./agent.js');
const { sizeArgument, nanosecondsEach, report } = require('./measure.js');

const add = (state, n) => { state.count += n; };
const take = (state) => { const all = state.count; state.count = 0; return all; };

async function sendMany(counter, messages) {
  for (let i = 1; i <= messages; ++i) {
    counter.cast(add, 1);
    if (i % 100 === 0) await null;
  }
}

async function measure(senders, size, row) {
  const counter = new Agent({ count: 0 });
  const each = await nanosecondsEach(5, size, async () => {
    const all = [];
    for (let i = 0; i < senders; ++i) all.push(sendMany(counter, size / senders));
    await Promise.all(all);
    if (await counter.call(take) !== size) throw new Error('a message is missing');
  });
  report(row, size, each, 'ns');
}

async function main() {
  const size = sizeArgument();
  await measure(1, size, 'senders_1');
  await measure(4, size, 'senders_4');
  await measure(100, size, 'senders_100');
}

main();
