// SPDX-License-Identifier: MIT
// A thousand agents under supervisors that keep crashing, stopping and being stopped, on virtual
// time: nothing is lost, nothing happens twice, and at the end nothing is left.
#include "torture_program.hpp"

#include "support/sanitizers.hpp"

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace {

/// Every way in which a call can end, and every way to disturb it, must have happened.
void expect_coverage(const torture::tally& seen) {
  EXPECT_GT(seen.values, 500);
  EXPECT_GT(seen.errors, 100);
  EXPECT_GT(seen.stopped, 0);
  EXPECT_GT(seen.restarted, 0);
  EXPECT_GT(seen.full, 0);
  EXPECT_GT(seen.cycles, 0);
  EXPECT_GT(seen.timeouts, 0);
  EXPECT_GT(seen.cancelled, 0);
  EXPECT_GT(seen.escalations, 0);
  EXPECT_GT(seen.administered, 0);
}

/// A shorter run in an order that an adversary chooses. It is not shrunk: that would take hours.
void run_in_some_order(weir::sim::strategy strategy, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  torture::world w(seed, 3s, 10ms, true);
  weir::sim::run({.seed = seed, .strategy = strategy}, [&] { return torture::torture_all(w); });
  EXPECT_EQ(w.problems(), "");
}

constexpr std::uint64_t orders = test_support::sanitized ? 2 : 4;

}  // namespace

TEST(torture, a_minute_of_crashes_and_stops_loses_nothing) {
  torture::world w(1, 60s, test_support::sanitized ? 20ms : 10ms, true);
  weir::sim::run({.seed = 1}, [&] { return torture::torture_all(w); });
  EXPECT_EQ(w.problems(), "");
  expect_coverage(w.seen);
}

TEST(torture, random_orders_of_crashes_and_stops_lose_nothing) {
  for (std::uint64_t seed = 1; seed <= orders; ++seed) run_in_some_order(weir::sim::random, seed);
}

TEST(torture, adversarial_orders_of_crashes_and_stops_lose_nothing) {
  for (std::uint64_t seed = 1; seed <= orders; ++seed) run_in_some_order(weir::sim::pct(3), seed);
}
