// SPDX-License-Identifier: MIT
// chaos: random faults and latency, the same in every run of a seed.
#include <limits>

#include "policy_support.hpp"

using namespace policy_test;
using weir::chaos_options;

namespace {

/// Which of so many calls were faults, as a string of '.' and 'x'.
std::string faults(std::uint64_t seed, double rate, int calls = 200) {
  return weir::sim::run({.seed = seed}, [&]() -> task<std::string> {
    auto o = weir::op([] { return ready(1); }) | weir::chaos({.fault_rate = rate});
    std::string pattern;
    for (int i = 0; i < calls; ++i) {
      const auto error = co_await error_of(o());
      pattern += error == nullptr ? '.' : 'x';
    }
    co_return pattern;
  });
}

}  // namespace
TEST(chaos, a_rate_of_zero_is_never_and_one_is_always) {
  EXPECT_EQ(faults(1, 0), std::string(200, '.'));
  EXPECT_EQ(faults(1, 1), std::string(200, 'x'));
  const std::string half = faults(1, 0.5, 1000);
  const auto hits = std::count(half.begin(), half.end(), 'x');
  EXPECT_TRUE(hits > 430 && hits < 570) << hits;
}
TEST(chaos, a_seed_injects_at_the_same_calls_in_every_run) {
  EXPECT_EQ(faults(5, 0.3), faults(5, 0.3));
  EXPECT_NE(faults(5, 0.3), faults(6, 0.3));
}

FIBER_TEST(chaos, a_fault_stands_in_for_the_operation_and_is_told) {
  const event_record events;
  flaky f(0);
  auto o = weir::op(f.operation()) | weir::chaos({.fault_rate = 1});
  const auto error = co_await error_of(o());
  EXPECT_TRUE(holds<weir::chaos_error>(error));
  EXPECT_EQ(code_of(error), errc::chaos_fault);
  EXPECT_EQ(f.runs, 0);
  EXPECT_EQ(events.count("fault"), 1);
  EXPECT_EQ(events.of("fault").at(0).object, "chaos");
  auto retried = weir::op(f.operation()) | weir::chaos({.fault_rate = 0.5}) |
                 weir::retry({.attempts = 60, .base = 1ms});
  EXPECT_EQ(co_await retried(), 1);
}
FIBER_TEST(chaos, latency_comes_before_the_operation_and_counts_in_limits_outside) {
  flaky f(0);
  auto late = weir::op(f.operation()) | weir::chaos({.latency = 100ms, .latency_rate = 1});
  const stopwatch time;
  EXPECT_EQ(co_await late(), 1);
  EXPECT_EQ(time.ms(), 100);
  auto limited = late | weir::timeout(50ms);
  EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(limited())));
  EXPECT_EQ(time.ms(), 150);
  EXPECT_EQ(f.runs, 1);
  EXPECT_EQ(live_timers(), 0);
  auto inside = weir::op(f.operation()) | weir::timeout(50ms) |
                weir::chaos({.latency = 100ms, .latency_rate = 1});
  EXPECT_EQ(co_await inside(), 2);
  auto never = weir::op(f.operation()) | weir::chaos({.latency = 100ms});
  EXPECT_EQ(co_await never(), 3);
  EXPECT_EQ(time.ms(), 250);
}
FIBER_TEST(chaos, a_call_that_is_cancelled_meanwhile_injects_nothing) {
  const event_record events;
  flaky f(0);
  auto o =
      weir::op(f.operation()) | weir::chaos({.fault_rate = 1, .latency = 100ms, .latency_rate = 1});
  (void)co_await error_of(weir::with_timeout(10ms, o));
  EXPECT_EQ(events.count("fault"), 0);
  auto at_once = weir::op(f.operation()) | weir::chaos({.fault_rate = 1});
  const auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.cancel();
    (void)co_await at_once();
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(events.count("fault"), 0);
  EXPECT_EQ(f.runs, 0);
}

TEST(chaos, bad_options_are_refused_when_it_is_made) {
  const auto made = [](chaos_options o) { return thrown_by([&] { (void)weir::chaos(o); }); };
  expect_invalid(made({.fault_rate = -0.1}), "fault_rate");
  expect_invalid(made({.fault_rate = 1.1}), "fault_rate");
  expect_invalid(made({.fault_rate = std::numeric_limits<double>::quiet_NaN()}), "fault_rate");
  expect_invalid(made({.latency = -1ms}), "latency");
  expect_invalid(made({.latency_rate = 2}), "latency_rate");
  EXPECT_EQ(made({}), nullptr);
}
