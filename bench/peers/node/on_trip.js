// SPDX-License-Identifier: MIT
'use strict';

const { answer, isMainThread, measureTrips } = require('./trips.js');

if (isMainThread) measureTrips('on_trip', __filename); else answer();
