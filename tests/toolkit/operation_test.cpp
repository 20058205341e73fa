// SPDX-License-Identifier: MIT
// Operations and how policies are applied to them: order, pipelines, copies, and what runs once.
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "policy_support.hpp"

using namespace policy_test;

namespace {

auto every_kind(weir::circuit_breaker& cb) {
  return weir::timeout(1s) | weir::retry({.attempts = 2}) | weir::hedge({.after = 1h}) |
         weir::fallback([] { return -1; }) | weir::breaker(cb) | weir::bulkhead(3) |
         weir::supervise() | weir::chaos({}) | weir::trace("all") | weir::finally([] {});
}

template <class Op>
concept copyable = std::is_copy_constructible_v<Op>;

}  // namespace

// The options may be written inside a co_await expression: docs/compilers.md.
static_assert(std::is_trivially_destructible_v<weir::retry_options>);
static_assert(std::is_trivially_destructible_v<weir::retry_budget_options>);
static_assert(std::is_trivially_destructible_v<weir::hedge_options>);
static_assert(std::is_trivially_destructible_v<weir::circuit_breaker_options>);
static_assert(std::is_trivially_destructible_v<weir::supervise_options>);
static_assert(std::is_trivially_destructible_v<weir::chaos_options>);
static_assert(!copyable<weir::retry_budget> && !copyable<weir::circuit_breaker>);

FIBER_TEST(operation, it_can_be_run_again_and_again_although_it_is_const) {
  int runs = 0;
  auto count = [&]() -> task<int> { co_return ++runs; };
  const auto plain = weir::op(count);
  static_assert(std::is_same_v<decltype(plain()), task<int>>);
  EXPECT_EQ(co_await plain(), 1);
  EXPECT_EQ(co_await plain(), 2);
  const auto limited = plain | weir::timeout(1s) | weir::retry({.attempts = 2});
  static_assert(std::is_same_v<decltype(limited()), task<int>>);
  EXPECT_EQ(co_await limited(), 3);
  EXPECT_EQ(co_await limited(), 4);
}

FIBER_TEST(operation, it_may_be_made_of_a_wait_or_of_a_function) {
  const stopwatch time;
  auto nap = weir::op([] { return weir::sleep(5ms); }) | weir::timeout(1s);
  co_await nap();
  co_await nap();
  EXPECT_EQ(time.ms(), 10);
  task<int> (*function)() = []() -> task<int> { co_return 7; };
  EXPECT_EQ(co_await (weir::op(function) | weir::timeout(1s))(), 7);
}
FIBER_TEST(operation, policies_apply_from_the_innermost_on_the_left_to_the_outermost) {
  int runs = 0;
  auto slow = [&]() -> task<> {
    ++runs;
    co_await weir::sleep(1h);
  };
  const weir::retry_options three{
      .attempts = 3, .base = 10ms, .factor = 1, .jitter = weir::jitter::none};
  auto each = weir::op(slow) | weir::timeout(100ms) | weir::retry(three);
  auto total = weir::op(slow) | weir::retry(three) | weir::timeout(100ms);
  const stopwatch time;
  const auto by_attempt = co_await error_of(each());
  EXPECT_TRUE(holds<weir::timeout_error>(by_attempt));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(time.ms(), 320);
  const auto in_all = co_await error_of(total());
  EXPECT_TRUE(holds<weir::timeout_error>(in_all));
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(time.ms(), 420);
}

FIBER_TEST(operation, a_pipeline_of_policies_applied_to_it_is_the_same_as_one_after_the_other) {
  const weir::retry_options quick{.attempts = 4, .base = 1ms, .jitter = weir::jitter::none};
  const auto policy = weir::timeout(200ms) | weir::retry(quick) | weir::fallback([] { return 9; });
  flaky a(3), b(3), c(9);
  auto called = policy(weir::op(a.operation()));
  auto piped = weir::op(b.operation()) | policy;
  EXPECT_EQ(co_await called(), 4);
  EXPECT_EQ(co_await piped(), 4);
  EXPECT_EQ(a.times_ms(), b.times_ms());
  EXPECT_EQ(co_await policy(c.operation())(), 9);
  EXPECT_EQ(c.runs, 4);
  const auto longer = (weir::retry(quick) | weir::timeout(1s)) | (weir::trace("x") | policy);
  flaky d(3);
  EXPECT_EQ(co_await (weir::op(d.operation()) | longer)(), 4);
}

FIBER_TEST(operation, a_policy_called_with_it_is_the_same_as_piping) {
  flaky a(1);
  auto retried = weir::retry({.attempts = 2, .base = 1ms})(a.operation());
  EXPECT_EQ(co_await retried(), 2);
  EXPECT_EQ(co_await weir::timeout(1s)(ready(5)), 5);
  auto waited = weir::timeout(1ms)(weir::sleep(1h));
  EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(std::move(waited))));
}

FIBER_TEST(operation, every_policy_can_stand_in_one_pipeline_and_the_result_runs_at_the_same_time) {
  weir::circuit_breaker cb;
  int runs = 0;
  auto slow = [&]() -> task<int> {
    const int run = ++runs;
    co_await weir::sleep(10ms);
    co_return run;
  };
  const auto all = weir::op(slow) | every_kind(cb);
  const stopwatch time;
  auto [a, b, c] = co_await weir::all(all, all, all());
  EXPECT_EQ(a + b + c, 6);
  EXPECT_EQ(time.ms(), 10);
}

FIBER_TEST_IN_EVERY_ORDER(operation, runs_at_the_same_time_share_no_attempts) {
  int failures = 0;
  auto fails = [&]() -> task<> {
    ++failures;
    co_await weir::sleep(1ms);
    throw boom(1);
  };
  const auto three = weir::op(fails) | weir::retry({.attempts = 3, .base = 1ms});
  auto [a, b] = co_await weir::all_settled(three, three);
  EXPECT_TRUE(a.is_error() && b.is_error());
  EXPECT_EQ(failures, 6);
}

TEST(operation, it_is_copyable_exactly_if_its_callable_is) {
  auto copy = [n = 1]() -> task<int> { co_return n; };
  auto move = [n = std::make_unique<int>(2)]() -> task<int> { co_return *n; };
  auto policy = weir::timeout(1s) | weir::retry({.attempts = 2});
  static_assert(copyable<decltype(weir::op(copy) | policy)>);
  static_assert(!copyable<decltype(weir::op(std::move(move)) | policy)>);
  auto owner = weir::op(std::move(move)) | policy;
  static_assert(std::is_move_constructible_v<decltype(owner)>);
  simulate([&]() -> task<> {
    EXPECT_EQ(co_await owner(), 2);  // and it can be run again
    EXPECT_EQ(co_await owner(), 2);
    auto moved = std::move(owner);
    EXPECT_EQ(co_await moved(), 2);
  });
}

FIBER_TEST(operation, it_may_be_gone_before_its_task_runs) {
  auto text = std::make_shared<int>(42);
  auto made = [&]() -> task<int> {
    auto read = [text]() -> task<int> {
      co_await weir::sleep(1ms);
      co_return *text;
    };
    return (weir::op(read) | weir::timeout(1s) | weir::retry({.attempts = 2}))();
  };
  EXPECT_EQ(co_await made(), 42);
  EXPECT_EQ(text.use_count(), 1);
}

FIBER_TEST(operation, a_callable_that_changes_itself_starts_anew_with_each_run) {
  auto third_time = [n = 0]() mutable -> task<int> {
    const int now = ++n;
    if (now < 3) throw boom(now);
    co_return now;
  };
  const auto retried = weir::op(third_time) | weir::retry({.attempts = 3, .base = 1ms});
  EXPECT_EQ(co_await retried(), 3);
  EXPECT_EQ(co_await retried(), 3);
}

FIBER_TEST(operation, copies_share_breakers_budgets_and_governors) {
  weir::circuit_breaker cb({.failure_ratio = 1, .minimum_calls = 2});
  flaky f(100);
  auto first = weir::op(f.operation()) | weir::breaker(cb);
  auto second = first;
  EXPECT_EQ(co_await verdict(first), "boom 1");
  EXPECT_EQ(co_await verdict(second), "boom 2");
  const auto rejected = co_await error_of(first());
  EXPECT_TRUE(holds<weir::circuit_open_error>(rejected));
  auto bounded = weir::op([&] { return after(10ms, 1); }) | weir::bulkhead(1);
  auto copy = bounded;
  const stopwatch time;
  co_await weir::all(bounded, copy);
  EXPECT_EQ(time.ms(), 20);
}

FIBER_TEST(operation, breakers_and_budgets_may_go_before_it) {
  auto cb = std::make_unique<weir::circuit_breaker>();
  auto budget = std::make_unique<weir::retry_budget>();
  flaky f(1);
  auto kept = weir::op(f.operation()) | weir::breaker(*cb) |
              weir::retry({.attempts = 2, .base = 1ms, .budget = budget.get()});
  cb.reset();
  budget.reset();
  EXPECT_EQ(co_await kept(), 2);
}

FIBER_TEST(operation, a_task_or_wait_under_a_policy_that_runs_it_once_is_awaited_once) {
  weir::circuit_breaker cb;
  weir::counting_governor g(1);
  auto once = after(1ms, 3) | weir::timeout(1s) | weir::finally([] {}) |
              weir::fallback([] { return 0; }) | weir::bulkhead(g) | weir::rate_limit(g) |
              weir::breaker(cb) | weir::trace("once") | weir::chaos({});
  static_assert(!copyable<decltype(once)>);
  weir::counting_governor two(2);
  g.resize(2);  // bulkhead and rate_limit hold one each
  EXPECT_EQ(co_await std::move(once), 3);
  auto wait = weir::sleep(1ms) | weir::breaker(cb) | weir::bulkhead(two);
  co_await std::move(wait);
  EXPECT_EQ(two.active(), 0);
}

SCOPE_TEST(operation, a_future_may_be_piped_and_is_only_observed) {
  auto child = s.spawn(after(50ms, 8));
  auto impatient = child | weir::timeout(10ms) | weir::fallback([] { return -1; });
  EXPECT_EQ(co_await std::move(impatient), -1);
  EXPECT_EQ(co_await child, 8);
}

FIBER_TEST(operation, a_callable_that_throws_before_it_returns_its_task_is_a_failed_attempt) {
  int calls = 0;
  auto throws_early = [&]() -> task<int> {
    if (++calls < 3) throw boom(calls);
    return ready(calls);
  };
  EXPECT_EQ(co_await (weir::op(throws_early) | weir::retry({.attempts = 3, .base = 1ms}))(), 3);
  calls = 0;
  EXPECT_EQ(co_await (weir::op(throws_early) | weir::hedge({.after = 1h, .max = 3}))(), 3);
  calls = 0;
  EXPECT_EQ(co_await (weir::op(throws_early) | weir::supervise())(), 3);
  calls = 0;
  EXPECT_EQ(co_await (weir::op(throws_early) | weir::fallback([] { return 9; }))(), 9);
  weir::circuit_breaker cb({.failure_ratio = 1, .minimum_calls = 1});
  calls = 0;
  (void)co_await error_of((weir::op(throws_early) | weir::breaker(cb))());
  EXPECT_EQ(cb.state(), weir::circuit_state::open);
}

TEST(operation, an_empty_callable_is_refused_where_it_is_given) {
  const std::function<task<>()> none;
  task<> (*null_function)() = nullptr;
  EXPECT_EQ(code_of(thrown_by([&] { (void)weir::op(none); })), errc::empty_job);
  EXPECT_EQ(code_of(thrown_by([&] { (void)weir::op(null_function); })), errc::empty_job);
  EXPECT_EQ(code_of(thrown_by([&] { (void)(none | weir::timeout(1s)); })), errc::empty_job);
  EXPECT_EQ(code_of(thrown_by([&] { (void)weir::retry()(none); })), errc::empty_job);
}

FIBER_TEST(operation, one_that_takes_a_context_has_one_of_its_own_for_each_attempt) {
  text_log log;
  int runs = 0;
  auto with_context = [&](weir::context& c) -> task<int> {
    const int run = ++runs;
    c.defer([&log, run] { log.push_back("end " + std::to_string(run)); });
    log.push_back("run " + std::to_string(run));
    if (run < 3) throw boom(run);
    co_return run;
  };
  auto retried = weir::op(with_context) | weir::retry({.attempts = 3, .base = 1ms});
  EXPECT_EQ(co_await retried(), 3);
  EXPECT_EQ(joined(log), "run 1,end 1,run 2,end 2,run 3,end 3");
  log.clear();
  EXPECT_EQ(co_await (weir::op(with_context) | weir::timeout(1s))(), 4);
  EXPECT_EQ(co_await weir::op(with_context)(), 5);
  EXPECT_EQ(co_await (weir::op(with_context) | weir::hedge())(), 6);
  EXPECT_EQ(joined(log), "run 4,end 4,run 5,end 5,run 6,end 6");
}

FIBER_TEST(operation, it_is_accepted_wherever_an_operation_is) {
  flaky f(0);
  const auto o = weir::op(f.operation()) | weir::timeout(1s) | weir::retry();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    EXPECT_EQ(co_await s.spawn(o), 1);
    EXPECT_EQ(co_await s.spawn(o()), 2);
    const auto settled = co_await weir::settle(o);
    EXPECT_TRUE(settled.is_value());
    EXPECT_EQ(co_await weir::with_timeout(1s, o), 4);
    EXPECT_EQ(co_await weir::shield(o), 5);
    EXPECT_EQ(co_await weir::race(o, weir::op([] { return after(1h, 0); })), 6);
  });
}
