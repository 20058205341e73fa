// SPDX-License-Identifier: MIT
//
// A message to a worker over a MessageChannel and the answer back: one after the other, and with 64
// on their way at any time.
'use strict';

const { MessageChannel, isMainThread, parentPort } = require('node:worker_threads');
const { sizeArgument, nanosecondsEach, report, startThread } = require('./measure.js');

function answer() {
  parentPort.once('message', (port) => {
    port.on('message', (value) => port.postMessage(value + 1));
  });
}

// Calls back instead of awaiting, which is the cheaper of the two.
function travel(port, size, inFlight) {
  return new Promise((resolve) => {
    let toSend = size;
    let left = size;
    const send = (value) => {
      if (toSend-- > 0) port.postMessage(value);
    };
    const arrived = (value) => {
      if (--left > 0) return send(value);
      port.off('message', arrived);
      resolve(value);
    };
    port.on('message', arrived);
    for (let i = 0; i < inFlight; ++i) send(0);
  });
}

async function measureTrips(row, row64, file) {
  const size = sizeArgument();
  const thread = await startThread(file);
  const { port1, port2 } = new MessageChannel();
  thread.postMessage(port2, [port2]);
  report(row, size, await nanosecondsEach(5, size, () => travel(port1, size, 1)), 'ns');
  report(row64, size, await nanosecondsEach(5, size, () => travel(port1, size, 64)), 'ns');
  await thread.terminate();
  port1.close();
}

module.exports = { answer, isMainThread, measureTrips };
