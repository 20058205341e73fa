// SPDX-License-Identifier: MIT
// Runs a test once in FIFO order and once for each of 200 seeded random schedules.
#pragma once

#include <weir/sim.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace weir_test {

inline constexpr std::uint64_t seeds = 200;

/// Calls `f(weir::sim::options)` for `fifo` and for `random` with the seeds 1 to 200; a failure
/// names the strategy and the seed.
template <class F>
void for_each_seed(F&& f) {
  {
    SCOPED_TRACE("fifo");
    weir::sim::options options{};
    options.seed = 1;
    options.strategy = weir::sim::fifo;
    f(options);
  }
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("random, seed " + std::to_string(seed));
    weir::sim::options options{};
    options.seed = seed;
    options.strategy = weir::sim::random;
    f(options);
  }
}

}  // namespace weir_test

using weir_test::for_each_seed;
