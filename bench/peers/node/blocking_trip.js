// SPDX-License-Identifier: MIT
//
// What blocks goes to a worker, by message: the same trip as on_trip.js.
'use strict';

const { answer, isMainThread, measureTrips } = require('./trips.js');

if (isMainThread) measureTrips('blocking_trip', 'blocking_64', __filename); else answer();
