// SPDX-License-Identifier: MIT
'use strict';

const fs = require('node:fs');
const { Agent } = require('./agent.js');
const { sizeArgument, nanoseconds, report } = require('./measure.js');

// Bytes of private memory that this process has touched, counted as by the programs in C++.
function bytesInUse() {
  return Number(/Anonymous: +(\d+) kB/.exec(fs.readFileSync('/proc/self/smaps_rollup'))[1]) * 1024;
}

const size = sizeArgument();
const all = new Array(size).fill(null);
const before = bytesInUse();
const start = nanoseconds();
for (let i = 0; i < size; ++i) all[i] = new Agent({ count: i });
report('agent_spawn', size, (nanoseconds() - start) / size, 'ns');
report('agent_bytes', size, (bytesInUse() - before) / size, 'B');
if (all[size - 1].state.count !== size - 1) throw new Error('an agent is missing');
