// SPDX-License-Identifier: MIT
// A random program over one container, as data: fibers that put items into it and take items out of
// it, each through a composite of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stress/order.hpp"

namespace fuzz {

enum class container : std::uint8_t { queue, channel, remote_channel, broadcast, count };

/// How one item is put or taken.
enum class way : std::uint8_t {
  plain,
  timeout,
  settled,
  in_cancelled_child,
  race_number,  // against next() of a queue of numbers
  any_number,
  race_permit,  // against acquire() of a governor that is held now and then
  race_sleep,
  any_sleep,
  all_sleep,
  all_permit,
  race_twice,  // both arms on the same container
  all_twice,
  count
};

enum class role : std::uint8_t {
  producer,
  consumer,
  both,  // all(put, take) on the container, then, of a broadcast, a consumer
  count
};

struct act {
  way by = way::plain;
  int ms = 0;  // patience
  int pause = 0;
};

struct actor {
  role as = role::producer;
  int items = 0;          // that a producer puts
  std::vector<act> acts;  // used in turn
};

struct exchange_plan {
  std::uint64_t seed = 0;
  container what = container::queue;
  int capacity = 0;
  std::vector<actor> actors;
  order in = order::fifo;
};

exchange_plan make_exchange_plan(std::uint64_t seed);
std::string to_text(const exchange_plan& plan);
/// Runs the program of a plan; what went wrong, or nothing.
std::string run_exchange(const exchange_plan& plan);

}  // namespace fuzz
