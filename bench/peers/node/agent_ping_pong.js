// SPDX-License-Identifier: MIT
'use strict';

const { Agent } = require('./agent.js');
const { sizeArgument, nanosecondsEach, report } = require('./measure.js');

function pong(state, { from, value }) { from.cast(ping, value + 1); }

function ping(state, value) {
  if (--state.left > 0) state.other.cast(pong, { from: state.self, value }); else state.done();
}

async function main() {
  const size = sizeArgument();
  const other = new Agent({});
  const first = new Agent({ left: 0, other, self: null, done: null });
  first.state.self = first;
  const each = await nanosecondsEach(5, size, () => new Promise((resolve) => {
    first.state.left = size;
    first.state.done = resolve;
    other.cast(pong, { from: first, value: 0 });
  }));
  report('agent_ping_pong', size, each, 'ns');
}

main();
