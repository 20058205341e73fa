// SPDX-License-Identifier: MIT
// timeout as a policy: which limit is reported, and what is left behind.
#include "policy_support.hpp"

using namespace policy_test;
FIBER_TEST(timeout_policy, a_value_in_time_is_delivered_and_leaves_no_timer) {
  auto o = weir::op([] { return after(5ms, 1); }) | weir::timeout(10ms);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(co_await o(), 1);
  EXPECT_EQ(live_timers(), 0);
  auto tie = weir::op([] { return after(10ms, 2); }) | weir::timeout(10ms);
  EXPECT_EQ(co_await tie(), 2);
}
FIBER_TEST(timeout_policy, its_error_says_how_long_and_comes_after_the_operation_has_ended) {
  text_log log;
  auto o = weir::op([&] { return slow_to_stop(log, "op"); }) | weir::timeout(10ms);
  const stopwatch time;
  const auto error = co_await error_of(o());
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_TRUE(contains(what_of(error), "10 ms"));
  EXPECT_EQ(time.ms(), 40);
  EXPECT_EQ(joined(log), "op stopped");
}
FIBER_TEST_IN_EVERY_ORDER(
    timeout_policy, a_cancellation_of_the_caller_before_it_is_no_timeout_and_keeps_its_reason) {
  auto o = weir::op([] { return after(1h, 1); }) | weir::timeout(50ms) | weir::retry() |
           weir::fallback([] { return 0; });
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(o);
    co_await weir::sleep(10ms);
    child.cancel("the caller's own words");
    co_await s.idle();
    EXPECT_TRUE(child.peek()->is_cancelled());
    EXPECT_EQ(child.peek()->reason().message, "the caller's own words");
    EXPECT_EQ(child.peek()->reason().kind, weir::cancel_kind::user);
  });
  EXPECT_EQ(live_timers(), 0);
}
FIBER_TEST(timeout_policy, of_nested_ones_the_one_that_is_over_first_is_reported) {
  auto slow = weir::op([] { return after(1h, 1); });
  auto outer_first = slow | weir::timeout(50ms) | weir::timeout(20ms);
  auto inner_first = slow | weir::timeout(20ms) | weir::timeout(50ms);
  const stopwatch time;
  EXPECT_TRUE(contains(what_of(co_await error_of(outer_first())), "20 ms"));
  EXPECT_TRUE(contains(what_of(co_await error_of(inner_first())), "20 ms"));
  EXPECT_EQ(time.ms(), 40);
  auto same = slow | weir::timeout(20ms) | weir::fallback([] { return -1; }) | weir::timeout(20ms);
  EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(same())));  // the outer one
}

FIBER_TEST(timeout_policy, no_time_at_all_never_starts_the_operation) {
  flaky f(0);
  auto o = weir::op(f.operation()) | weir::timeout(0ms);
  EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(o())));
  EXPECT_EQ(f.runs, 0);
}
