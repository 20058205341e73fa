// SPDX-License-Identifier: MIT
// One async generator for each stage, as one writes it without a library.
'use strict';

const { sizeArgument, nanosecondsEach, report } = require('./measure.js');

async function* naturals() {
  for (let i = 0; ; ++i) yield i;
}

async function* map(source, fn) {
  for await (const item of source) yield fn(item);
}

async function* filter(source, holds) {
  for await (const item of source) if (holds(item)) yield item;
}

async function* take(source, count) {
  if (count === 0) return;
  for await (const item of source) {
    yield item;
    if (--count === 0) return;
  }
}

async function main() {
  const size = sizeArgument();
  const each = await nanosecondsEach(3, size, async () => {
    const items = take(filter(map(naturals(), (i) => 3 * i), (i) => i % 2 === 0), size / 2);
    let sum = 0;
    for await (const item of items) sum += item;
    if (sum !== 6 * (size / 2) * (size / 2 - 1) / 2) throw new Error('an item is missing');
  });
  // There is but one way to pull, and but one kind of source.
  report('next_generator', size, each, 'ns');
}

main();
