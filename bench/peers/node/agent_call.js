// SPDX-License-Identifier: MIT
'use strict';

const { Agent } = require('./agent.js');
const { sizeArgument, nanosecondsEach, report } = require('./measure.js');

const plus = (state, n) => state.count + n;

async function callMany(counter, calls) {
  for (let i = 0; i < calls; ++i) {
    if (await counter.call(plus, i) !== i) throw new Error('a wrong answer');
  }
}

async function measure(callers, size, row) {
  const counter = new Agent({ count: 0 });
  const each = await nanosecondsEach(5, size, () => {
    const all = [];
    for (let i = 0; i < callers; ++i) all.push(callMany(counter, size / callers));
    return Promise.all(all);
  });
  report(row, size, each, 'ns');
}

async function main() {
  const size = sizeArgument();
  await measure(1, size, 'call_1');
  await measure(100, size, 'call_100');
}

main();
