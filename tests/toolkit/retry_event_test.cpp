// SPDX-License-Identifier: MIT
// Events of retries: attempts, retries, and how nested ones multiply.
#include "policy_support.hpp"

using namespace policy_test;
using weir::jitter;

namespace {

using numbers = std::vector<std::uint64_t>;

constexpr weir::retry_options two{.attempts = 2, .base = 1ms};
constexpr weir::retry_options three{.attempts = 3, .base = 1ms};

task<> always_fails() {
  throw boom(1);
  co_return;
}

}  // namespace
FIBER_TEST(retry_event, every_attempt_is_told_with_its_number_also_the_last) {
  const event_record events;
  auto o = weir::op(always_fails) | weir::retry(three);
  (void)co_await error_of(o());
  EXPECT_EQ(events.numbers("attempt"), (numbers{1, 2, 3}));
  EXPECT_EQ(events.of("attempt").front().object, "retry");
  flaky good(0);
  auto fine = weir::op(good.operation()) | weir::retry(three);
  (void)co_await fine();
  EXPECT_EQ(events.numbers("attempt"), (numbers{1, 2, 3, 1}));
}
FIBER_TEST(retry_event, a_retry_is_told_before_its_delay_with_the_attempt_that_failed) {
  const event_record events;
  const auto start = weir::now();
  auto o = weir::op(always_fails) |
           weir::retry({.attempts = 3, .base = 10ms, .factor = 1, .jitter = jitter::none});
  (void)co_await error_of(o());
  EXPECT_EQ(events.numbers("retry"), (numbers{1, 2}));
  EXPECT_EQ(events.of("retry").at(0).when, start);
  EXPECT_EQ(events.of("retry").at(1).when, start + 10ms);
  EXPECT_EQ(events.of("retry").at(0).object, "retry");
  EXPECT_EQ(events.order_of({"attempt", "retry"}), "attempt,retry,attempt,retry,attempt");
}

FIBER_TEST(retry_event, one_that_stops_tells_no_retry) {
  const event_record events;
  auto stops = weir::op(always_fails) |
               weir::retry(three).when([](const std::exception_ptr&) { return false; });
  (void)co_await error_of(stops());
  auto late = weir::op(always_fails) |
              weir::retry({.attempts = 3, .base = 1h, .ceiling = 1h, .jitter = jitter::none}) |
              weir::timeout(1s);
  (void)co_await error_of(late());
  EXPECT_EQ(events.count("retry"), 0);
  EXPECT_EQ(events.count("attempt"), 2);
}
FIBER_TEST(retry_event, nested_retries_tell_their_product_once_for_each_outermost_run) {
  const event_record events;
  int runs = 0;
  auto fails = [&]() -> task<> {
    ++runs;
    throw boom(1);
    co_return;
  };
  auto nested = weir::op(fails) | weir::retry(two) | weir::timeout(1h) | weir::retry(three);
  (void)co_await error_of(nested());
  EXPECT_EQ(runs, 6);
  EXPECT_EQ(events.numbers("retry_amplified"), (numbers{6}));
  (void)co_await error_of(nested());
  EXPECT_EQ(events.numbers("retry_amplified"), (numbers{6, 6}));
  auto deep = nested | weir::retry(two);
  (void)co_await error_of(deep());
  EXPECT_EQ(events.numbers("retry_amplified"), (numbers{6, 6, 12}));
  EXPECT_EQ(events.of("retry_amplified").back().object, "retry");
}

FIBER_TEST(retry_event, nested_retries_are_found_through_a_hedge_and_through_a_predicate) {
  const event_record events;
  auto hedged = weir::op(always_fails) |
                weir::retry(two).when([](const std::exception_ptr&) { return true; }) |
                weir::hedge({.after = 1h, .max = 2}) | weir::retry(three);
  (void)co_await error_of(hedged());
  EXPECT_EQ(events.numbers("retry_amplified"), (numbers{6}));
}

FIBER_TEST(retry_event, a_retry_inside_the_operation_of_another_is_found_when_both_try_again) {
  const event_record events;
  auto inner = weir::op(always_fails) | weir::retry(two);
  auto calls_it = [&]() -> task<> { co_await inner(); };
  auto outer = weir::op(calls_it) | weir::retry(three);
  (void)co_await error_of(outer());
  EXPECT_EQ(events.numbers("retry_amplified"), (numbers{6}));
}

FIBER_TEST(retry_event, retries_one_after_the_other_or_beside_each_other_do_not_multiply) {
  const event_record events;
  auto o = weir::op(always_fails) | weir::retry(two);
  (void)co_await error_of(o());
  (void)co_await error_of(o());
  (void)co_await weir::all_settled(o, o);
  flaky good(0);
  auto fine = weir::op(good.operation()) | weir::retry(two) | weir::retry(three);
  (void)co_await fine();
  EXPECT_EQ(events.count("retry_amplified"), 0);
}
FIBER_TEST(retry_event, an_observer_that_throws_does_not_affect_the_call) {
  auto bad = weir::on_event([](const weir::event_info&) { throw bang(1); });
  flaky f(2);
  auto o = weir::op(f.operation()) | weir::retry(three);
  EXPECT_EQ(co_await o(), 3);
}
