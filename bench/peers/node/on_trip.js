// SPDX-License-Identifier: MIT
'use strict';

const { answer, isMainThread, measureTrips } = require('./trips.js');

if (isMainThread) measureTrips('on_trip', 'on_64', __filename); else answer();
