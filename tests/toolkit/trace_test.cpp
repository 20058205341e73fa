// SPDX-License-Identifier: MIT
// trace: the name that events of policies carry, and the counts of how an operation ended.
#include <memory>
#include <string>

#include "policy_support.hpp"

using namespace policy_test;

namespace {

std::uint64_t counted_as(const char* object, const char* what) {
  return weir::stats().counter(object, what);
}

}  // namespace

FIBER_TEST(trace, events_of_the_policies_inside_carry_its_name) {
  const event_record events;
  weir::circuit_breaker cb({.failure_ratio = 1, .minimum_calls = 1});
  auto o = weir::op(fails) | weir::breaker(cb) | weir::retry({.attempts = 3, .base = 1ms}) |
           weir::trace("quote") | weir::supervise({.max_restarts = 1});
  (void)co_await error_of(o());
  for (const char* name : {"attempt", "retry", "opened", "rejected"}) {
    EXPECT_GT(events.count(name), 0) << name;
    for (const told& e : events.of(name)) EXPECT_EQ(e.object, "quote") << name;
  }
  EXPECT_EQ(events.of("restart").at(0).object, "supervise");  // it stands outside
}

FIBER_TEST(trace, it_reaches_into_the_operation_and_the_innermost_name_counts) {
  const event_record events;
  auto inner = weir::op(fails) | weir::retry({.attempts = 1});
  auto calls_it = [&]() -> task<int> { co_return co_await inner(); };
  auto hedged = weir::op(calls_it) | weir::hedge({.max = 1}) | weir::trace("outer");
  (void)co_await error_of(hedged());
  auto twice = inner | weir::trace("near") | weir::trace("far");
  (void)co_await error_of(twice());
  (void)co_await error_of(inner());
  const auto attempts = events.of("attempt");
  EXPECT_EQ(attempts.at(0).object, "outer");
  EXPECT_EQ(attempts.at(1).object, "near");
  EXPECT_EQ(attempts.at(2).object, "retry");
}

FIBER_TEST(trace, it_counts_values_errors_and_cancellations) {
  auto good = weir::op([] { return ready(1); }) | weir::trace("counted");
  auto bad = weir::op(fails) | weir::trace("counted");
  auto slow = weir::op([] { return after(1h, 1); }) | weir::trace("counted");
  for (int i = 0; i < 3; ++i) (void)co_await good();
  for (int i = 0; i < 2; ++i) (void)co_await error_of(bad());
  (void)co_await error_of(weir::with_timeout(1ms, slow));
  EXPECT_EQ(counted_as("counted", "value"), 3u);
  EXPECT_EQ(counted_as("counted", "error"), 2u);
  EXPECT_EQ(counted_as("counted", "cancelled"), 1u);
}

FIBER_TEST(trace, it_changes_nothing_else) {
  const weir::local<int> key{0};
  auto reads = weir::op([&]() -> task<int> { co_return key.get(); }) | weir::trace("same");
  EXPECT_EQ(co_await weir::with_local(key, 7, reads), 7);
  EXPECT_EQ(boom_of(co_await error_of((weir::op(fails) | weir::trace("same"))())), 1);
  EXPECT_EQ(co_await (after(1ms, 2) | weir::trace("same")), 2);
}

FIBER_TEST(trace, a_name_that_is_not_a_literal_is_kept) {
  auto name = std::make_unique<std::string>("made up at run time");
  auto o = weir::op([] { return ready(1); }) | weir::retry() | weir::trace(*name);
  name.reset();
  auto copy = o;
  const event_record events;
  (void)co_await copy();
  EXPECT_EQ(events.of("attempt").at(0).object, "made up at run time");
  EXPECT_EQ(counted_as("made up at run time", "value"), 1u);
}
