// SPDX-License-Identifier: MIT
// What the tests of the toolkit share beside scope/scope_support.hpp.
#pragma once

#include <weir/interop/gtest.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <source_location>

#include "scope/scope_support.hpp"

namespace weir_test {

using weir::errc;
using weir::task;
using callable = std::function<task<>()>;
using function_pointer = task<> (*)();

/// Runs a program, a callable that makes a task, in the order of production and in orders that an
/// adversary chooses. What must hold in each of them is checked inside.
template <class F>
void in_every_order(F&& program, std::source_location site = std::source_location::current()) {
  const weir::sim::explore_options all[] = {{.runs = 1, .strategy = weir::sim::fifo},
                                            {.runs = 100, .strategy = weir::sim::random},
                                            {.runs = 100, .strategy = weir::sim::pct(3)},
                                            {.runs = 200, .strategy = weir::sim::dfs(1)}};
  for (const weir::sim::explore_options& options : all)
    if (!weir::testing::explore(options, program, site).ok()) return;
}

/// In the order of production only, for what does not depend on the order.
template <class F>
void in_order(F&& program) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, program);
}

inline task<> fail_after(weir::duration d, int number) {
  co_await weir::sleep(d);
  throw boom(number);
}

inline task<> forever() { co_await weir::sleep(1000h); }

inline void raise_to(std::atomic<int>& most, int now) {
  int seen = most;
  while (now > seen && !most.compare_exchange_weak(seen, now)) {
  }
}

}  // namespace weir_test
