// SPDX-License-Identifier: MIT
// The torture test with real threads. It asserts correctness, not how much happens.
#include "torture_program.hpp"

#include "support/sanitizers.hpp"

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace {

constexpr auto torture_length = test_support::sanitized ? 4s : 10s;

}  // namespace

TEST(torture_threads, four_loops_of_crashes_and_stops_lose_nothing) {
  torture::world w(1, torture_length, 2ms, false);
  weir::run([&] { return torture::torture_all(w); });
  EXPECT_EQ(w.problems(), "");
  EXPECT_GT(w.seen.values, 0);
}
