// SPDX-License-Identifier: MIT
//
// A loop of attempts asleep in timers/promises, ended by its AbortController. A turn of Node's loop
// is counted by setImmediate, which runs once in each.
'use strict';

const { setImmediate: nextTurn, setTimeout: sleep } = require('node:timers/promises');
const { sizeArgument, nanoseconds, median, report } = require('./measure.js');

const repetitions = 1000;

const fails = async () => { throw new Error('down'); };

async function retryAfter(pause, signal) {
  for (let attempt = 1; ; ++attempt) {
    try {
      return await fails();
    } catch (error) {
      if (attempt === 2) throw error;
    }
    await sleep(pause, undefined, { signal });
  }
}

// Resolves when it was aborted.
const asleep = (pause, signal) => retryAfter(pause, signal).catch((error) => {
  if (error.name !== 'AbortError') throw error;
});

let turns = 0;
let counting = false;
function countTurn() {
  ++turns;
  if (counting) setImmediate(countTurn);
}

async function cancelOne() {
  const controller = new AbortController();
  const joined = asleep(5000, controller.signal);
  await nextTurn();
  const turn = turns;
  const asked = nanoseconds();
  controller.abort();
  await joined;
  return { took: nanoseconds() - asked, turns: turns - turn + 1 };
}

async function main() {
  const size = sizeArgument();
  const others = new AbortController();
  require('node:events').setMaxListeners(0, others.signal);
  const all = [];
  for (let i = 0; i < size; ++i) all.push(asleep(3600 * 1000, others.signal));
  await nextTurn();
  const each = [];
  for (let i = 0; i < 2 * repetitions; ++i) {
    const { took } = await cancelOne();
    if (i >= repetitions) each.push(took);  // the first half is a warm-up
  }
  report('cancel_retry', size, median(each), 'ns');
  counting = true;
  countTurn();
  let most = 0;
  for (let i = 0; i < repetitions; ++i) most = Math.max(most, (await cancelOne()).turns);
  counting = false;
  report('cancel_turns', size, most, 'turns');
  others.abort();
  await Promise.all(all);
}

main();
