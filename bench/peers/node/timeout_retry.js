// SPDX-License-Identifier: MIT
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');
const { sizeArgument, nanosecondsEach, report } = require('./measure.js');

const attempts = 3;
const hour = 3600 * 1000;

const ready = async (value) => value;

async function withTimeout(limit, operation) {
  let timer;
  const expired = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('timed out')), limit);
  });
  try {
    return await Promise.race([operation(), expired]);
  } finally {
    clearTimeout(timer);
  }
}

async function withRetry(operation) {
  for (let attempt = 1; ; ++attempt) {
    try {
      return await operation();
    } catch (error) {
      if (attempt === attempts) throw error;
    }
    await sleep(100 * 2 ** (attempt - 1));
  }
}

async function main() {
  const size = sizeArgument();
  const each = await nanosecondsEach(3, size, async () => {
    let sum = 0;
    for (let i = 0; i < size; ++i) {
      sum += await withRetry(() => withTimeout(hour, () => ready(i)));
    }
    if (sum !== size * (size - 1) / 2) throw new Error('a call is missing');
  });
  report('timeout_retry', size, each, 'ns');
}

main();
