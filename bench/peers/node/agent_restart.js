// SPDX-License-Identifier: MIT
//
// Node has no supervisors either: a loop that makes the agent anew whenever a call to it has
// failed.
'use strict';

const { Agent } = require('./agent.js');
const { sizeArgument, nanosecondsEach, report } = require('./measure.js');

const boom = () => { throw new Error('boom'); };

async function main() {
  const size = sizeArgument();
  const each = await nanosecondsEach(1, size, async () => {
    let child = new Agent({ count: 0 });
    for (let restarts = 0; restarts < size; ++restarts) {
      await child.call(boom).catch(() => { child = new Agent({ count: 0 }); });
    }
  });
  report('restart_all', size, each, 'ns');
}

main();
