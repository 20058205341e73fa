// SPDX-License-Identifier: MIT
// A random tree of combinators over pools, loops and blocking calls, as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <weir/duration.hpp>

#include "stress/order.hpp"

namespace fuzz {

enum class branch : std::uint8_t {
  // leaves
  value,
  sleeps,
  yields,
  fails,
  flaky,  // fails a few times, then has a value
  blocks,
  answered_by_a_job,  // a job of a pool completes a suspended wait
  submits,            // waits for room in a pool only
  // with one child
  on,
  run,
  timeout,
  retry,
  settle,
  shield,
  local,
  cancelled_child,
  token,
  deferred,
  agent,
  // with several
  all,
  all_range,
  parallel_map,
  race,
  any,
  hedge,
  scope,
  group,
  map_async,
  count
};

struct tree {
  branch what = branch::value;
  int id = 0;
  int last = 0;  // the ids of what is below are id + 1 to last
  int micros = 0;
  int number = 0;      // of yields, failures, attempts, a limit
  int place = 0;       // which pool or loop
  bool prompt = true;  // a cancellation ends it in its instant
  std::vector<tree> of;
};

/// What happens to the whole while it runs.
enum class blow : std::uint8_t { none, cancel, cancel_pool, close_pool, crash_loop, crash_worker };

inline constexpr int pools = 2;
inline constexpr int loops = 2;

struct tree_plan {
  std::uint64_t seed = 0;
  order in = order::fifo;
  int workers[pools] = {};
  int queue[pools] = {};
  blow what = blow::none;
  int when = 0;   // microseconds
  int where = 0;  // which pool or loop
  int size = 0;
  tree root;
};

/// `threads`: for real threads, where nothing crashes.
tree_plan make_tree_plan(std::uint64_t seed, bool threads);
std::string to_text(const tree_plan& plan);

/// What went wrong, or nothing. `threads`: on real ones.
std::string run_tree(const tree_plan& plan, bool threads);

}  // namespace fuzz
