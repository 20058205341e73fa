// SPDX-License-Identifier: MIT
// A random program over one container whose items call back into it when they are destroyed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stress/order.hpp"

namespace fuzz {

enum class victim : std::uint8_t {
  queue,
  channel,
  broadcast,
  replay,
  state,
  oneshot,
  mailbox,
  pool,
  callback,
  count
};

struct hostile_plan {
  std::uint64_t seed = 0;
  victim what = victim::queue;
  int capacity = 1;
  int every = 1;                // so many destructions for each that calls back
  int times = 1;                // that it does at most
  int fuse = 0;                 // the move that throws; 0: none
  std::vector<int> acts;        // of the program, used in turn by two fibers
  std::vector<int> call_backs;  // of the destructors, used in turn
  order in = order::fifo;
};

hostile_plan make_hostile_plan(std::uint64_t seed);
std::string to_text(const hostile_plan& plan);
/// Runs the program of a plan; what went wrong, or nothing.
std::string run_hostile(const hostile_plan& plan);

}  // namespace fuzz
