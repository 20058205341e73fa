// SPDX-License-Identifier: MIT
'use strict';

const { answer, isMainThread, measureTrips } = require('./trips.js');

if (isMainThread) measureTrips('agent_two_loops', __filename); else answer();
