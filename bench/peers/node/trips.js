// SPDX-License-Identifier: MIT
//
// A message to a worker over a MessageChannel and the answer back, one after the other.
'use strict';

const { MessageChannel, isMainThread, parentPort } = require('node:worker_threads');
const { sizeArgument, nanosecondsEach, report, startThread } = require('./measure.js');

function answer() {
  parentPort.once('message', (port) => {
    port.on('message', (value) => port.postMessage(value + 1));
  });
}

// Calls back instead of awaiting, which is the cheaper of the two.
function travel(port, size) {
  return new Promise((resolve) => {
    let left = size;
    const arrived = (value) => {
      if (--left > 0) return port.postMessage(value);
      port.off('message', arrived);
      resolve(value);
    };
    port.on('message', arrived);
    port.postMessage(0);
  });
}

async function measureTrips(row, file) {
  const size = sizeArgument();
  const thread = await startThread(file);
  const { port1, port2 } = new MessageChannel();
  thread.postMessage(port2, [port2]);
  report(row, size, await nanosecondsEach(3, size, () => travel(port1, size)), 'ns');
  await thread.terminate();
  port1.close();
}

module.exports = { answer, isMainThread, measureTrips };
