// SPDX-License-Identifier: MIT
// Simulation: the production scheduler on virtual time, under a seeded, replayable adversary.
#pragma once

#include <weir/sim/disk.hpp>
#include <weir/sim/explore.hpp>
#include <weir/sim/network.hpp>
#include <weir/sim/sim_disk.hpp>
#include <weir/sim/trace.hpp>
#include <weir/sim/world.hpp>
#include <weir/test_clock.hpp>
