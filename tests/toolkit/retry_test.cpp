// SPDX-License-Identifier: MIT
// retry: attempts, delays, jitter, predicates, deadlines and cancellation.
#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>

#include "policy_support.hpp"

using namespace policy_test;
using weir::jitter;
using weir::retry_decision;
using weir::retry_options;

namespace {

using delays = std::vector<long>;

/// Times of all attempts of an operation that always fails, in milliseconds.
task<delays> times_of(retry_options options) {
  flaky f(10'000);
  auto o = weir::op(f.operation()) | weir::retry(options);
  (void)co_await error_of(o());
  co_return f.times_ms();
}

/// The delays between the attempts, in nanoseconds.
task<std::vector<std::int64_t>> gaps_of(retry_options options) {
  flaky f(10'000);
  auto o = weir::op(f.operation()) | weir::retry(options);
  (void)co_await error_of(o());
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 1; i < f.times.size(); ++i)
    gaps.push_back((f.times[i] - f.times[i - 1]).count());
  co_return gaps;
}

}  // namespace
FIBER_TEST(retry, attempts_counts_all_of_them_and_the_last_error_comes_out) {
  flaky f(100);
  auto o = weir::op(f.operation()) | weir::retry({.attempts = 4, .base = 1ms});
  EXPECT_EQ(boom_of(co_await error_of(o())), 4);
  EXPECT_EQ(f.runs, 4);
  flaky once(100);
  auto single = weir::op(once.operation()) | weir::retry({.attempts = 1});
  EXPECT_EQ(boom_of(co_await error_of(single())), 1);
  EXPECT_EQ(once.runs, 1);
}

// The promise: `.attempts = weir::unbounded` in any retry_options.
FIBER_TEST(retry, attempts_may_be_unbounded) {
  flaky f(5000);
  const retry_options patient{.attempts = weir::unbounded, .ceiling = 1ms};
  auto o = weir::op(f.operation()) | weir::retry(patient);
  EXPECT_EQ(co_await o(), 5001);
  flaky stopped(5000);
  auto twice = weir::op(stopped.operation()) |
               weir::retry(patient).when([&](const auto&) { return stopped.runs < 2; });
  EXPECT_EQ(boom_of(co_await error_of(twice())), 2);
}

// Their product is unbounded as well, and does not overflow.
FIBER_TEST(retry, unbounded_retries_may_be_nested) {
  flaky f(5);
  const retry_options patient{.attempts = weir::unbounded, .base = 1ms};
  const retry_options few{.attempts = 2, .base = 1ms};
  auto o = weir::op(f.operation()) | weir::retry(few) | weir::retry(patient) |
           weir::retry(patient) | weir::retry(few);
  EXPECT_EQ(co_await o(), 6);
}

FIBER_TEST(retry, a_value_ends_it) {
  flaky f(2);
  auto o = weir::op(f.operation()) | weir::retry({.attempts = 10, .base = 1ms});
  EXPECT_EQ(co_await o(), 3);
  EXPECT_EQ(f.runs, 3);
  EXPECT_EQ(live_timers(), 0);
}
FIBER_TEST(retry, delays_are_exact) {
  const auto doubled = co_await times_of({.attempts = 5, .base = 100ms, .jitter = jitter::none});
  EXPECT_EQ(doubled, (delays{0, 100, 300, 700, 1500}));
  const auto constant =
      co_await times_of({.attempts = 4, .base = 50ms, .factor = 1, .jitter = jitter::none});
  EXPECT_EQ(constant, (delays{0, 50, 100, 150}));
  const auto half_more =
      co_await times_of({.attempts = 4, .base = 10ms, .factor = 1.5, .jitter = jitter::none});
  EXPECT_EQ(half_more, (delays{0, 10, 25, 47}));
}
FIBER_TEST(retry, the_ceiling_bounds_every_delay) {
  const auto capped =
      co_await times_of({.attempts = 5, .base = 100ms, .ceiling = 250ms, .jitter = jitter::none});
  EXPECT_EQ(capped, (delays{0, 100, 300, 550, 800}));
  const auto below_base =
      co_await times_of({.attempts = 3, .base = 1s, .ceiling = 10ms, .jitter = jitter::none});
  EXPECT_EQ(below_base, (delays{0, 10, 20}));
  for (jitter how : {jitter::full, jitter::equal, jitter::decorrelated}) {
    const retry_options o{
        .attempts = 200, .base = 1ms, .factor = 3, .ceiling = 40ms, .jitter = how};
    const auto gaps = co_await gaps_of(o);
    EXPECT_LE(*std::max_element(gaps.begin(), gaps.end()), 40'000'000);
  }
}
FIBER_TEST(retry, delays_saturate_instead_of_wrapping_round) {
  retry_options o{.attempts = 1000, .base = 1ns, .factor = 1e300, .ceiling = 1h};
  o.jitter = jitter::none;
  const auto gaps = co_await gaps_of(o);
  EXPECT_EQ(gaps.size(), 999u);
  EXPECT_EQ(gaps.front(), 1);
  for (std::size_t i = 1; i < gaps.size(); ++i) EXPECT_EQ(gaps[i], 3'600'000'000'000);
  // A ceiling without end: the delay is as long as time, and the deadline stops it.
  auto patient = weir::op([]() -> task<> {
                   throw boom(1);
                   co_return;
                 }) |
                 weir::retry({.attempts = 3,
                              .base = weir::duration::max(),
                              .ceiling = weir::unbounded,
                              .jitter = jitter::none}) |
                 weir::timeout(1h);
  EXPECT_EQ(boom_of(co_await error_of(patient())), 1);
}
FIBER_TEST(retry, jitter_spreads_the_delays_as_it_says) {
  retry_options o{.attempts = 1000, .base = 1us, .factor = 1, .ceiling = 1h};
  o.jitter = jitter::full;
  auto gaps = co_await gaps_of(o);
  auto [least, most] = std::minmax_element(gaps.begin(), gaps.end());
  EXPECT_TRUE(*least >= 0 && *least < 20 && *most > 980 && *most < 1000);
  o.jitter = jitter::equal;
  gaps = co_await gaps_of(o);
  std::tie(least, most) = std::minmax_element(gaps.begin(), gaps.end());
  EXPECT_TRUE(*least >= 500 && *least < 520 && *most > 980 && *most < 1000);
  o.jitter = jitter::decorrelated;
  gaps = co_await gaps_of(o);
  std::int64_t last = 1000;
  for (std::int64_t gap : gaps) {
    EXPECT_TRUE(gap >= 1000 && (gap < 3 * last || gap == 3'600'000'000'000)) << gap;
    last = gap;
  }
  EXPECT_GT(*std::max_element(gaps.begin(), gaps.end()), 3000);
}

TEST(retry, its_chance_comes_from_the_seed) {
  const auto with_seed = [](std::uint64_t seed) {
    return weir::sim::run({.seed = seed}, []() -> task<std::vector<std::int64_t>> {
      return gaps_of({.attempts = 20, .base = 1s});
    });
  };
  EXPECT_EQ(with_seed(3), with_seed(3));
  EXPECT_NE(with_seed(3), with_seed(4));
}
FIBER_TEST(retry, a_delay_of_zero_arms_no_timer_and_is_no_wait) {
  long most_timers = 0;
  int runs = 0;
  auto fails = [&]() -> task<> {
    most_timers = std::max(most_timers, live_timers());
    ++runs;
    throw boom(runs);
    co_return;
  };
  auto o = weir::op(fails) | weir::retry({.attempts = 50, .base = 0ms});
  const auto start = weir::now();
  EXPECT_EQ(boom_of(co_await error_of(o())), 50);
  EXPECT_EQ(weir::now(), start);
  EXPECT_EQ(most_timers, 0);
}
FIBER_TEST(retry, a_caller_that_is_cancelled_before_makes_no_attempt) {
  flaky f(100);
  auto o = weir::op(f.operation()) | weir::retry({.attempts = 5, .base = 1ms});
  const auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.cancel();
    (void)co_await o();
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(f.runs, 0);
}
FIBER_TEST_IN_EVERY_ORDER(retry, a_cancellation_ends_an_attempt_and_a_wait_at_once) {
  int asked = 0, attempts = 0;
  bool during_attempt = false;
  auto works = [&]() -> task<> {
    ++attempts;
    if (during_attempt) co_await weir::sleep(1h);
    throw boom(1);
  };
  auto o = weir::op(works) |
           weir::retry({.attempts = 10, .base = 1h, .ceiling = 1h, .jitter = jitter::none})
               .when([&](const std::exception_ptr&) {
                 ++asked;
                 return true;
               });
  for (bool during : {false, true}) {
    during_attempt = during;
    attempts = asked = 0;
    const stopwatch time;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto child = s.spawn(o);
      co_await weir::sleep(10ms);
      child.cancel("enough");
      const auto error = co_await error_of(std::move(child));
      EXPECT_TRUE(holds<weir::cancelled_error>(error));
    });
    EXPECT_EQ(time.ms(), 10);
    EXPECT_EQ(attempts, 1);
    EXPECT_EQ(asked, during ? 0 : 1);
    EXPECT_EQ(live_timers(), 0);
  }
}
FIBER_TEST(retry, a_cancelled_error_is_not_retried_unless_the_predicate_says_so) {
  int runs = 0;
  auto awaits_cancelled = [&]() -> task<> {
    ++runs;
    throw weir::cancelled_error(weir::cancel_reason(weir::cancel_kind::user, "elsewhere"));
    co_return;
  };
  auto plain = weir::op(awaits_cancelled) | weir::retry({.attempts = 3, .base = 1ms});
  EXPECT_TRUE(holds<weir::cancelled_error>(co_await error_of(plain())));
  EXPECT_EQ(runs, 1);
  auto asked = weir::op(awaits_cancelled) |
               weir::retry({.attempts = 3, .base = 1ms}).when([](const std::exception_ptr& e) {
                 return holds<weir::cancelled_error>(e);
               });
  runs = 0;
  EXPECT_TRUE(holds<weir::cancelled_error>(co_await error_of(asked())));
  EXPECT_EQ(runs, 3);
}

FIBER_TEST(retry, an_operation_that_was_cancelled_by_its_own_token_is_not_retried) {
  weir::cancel_source source;
  int runs = 0;
  auto stopped = [&] {
    ++runs;
    return weir::with_token(source.token(), after(1h, 1));
  };
  source.cancel("token");
  auto o = weir::op(stopped) | weir::retry({.attempts = 3, .base = 1ms});
  const auto ended = co_await weir::settle(o);
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(runs, 1);
}

FIBER_TEST(retry, a_timeout_of_an_attempt_is_retried) {
  int runs = 0;
  auto slow_first = [&]() -> task<int> {
    if (++runs < 3) co_await weir::sleep(1h);
    co_return runs;
  };
  auto o = weir::op(slow_first) | weir::timeout(10ms) | weir::retry({.attempts = 3, .base = 1ms});
  EXPECT_EQ(co_await o(), 3);
}

FIBER_TEST(retry, the_predicate_is_asked_once_after_each_failed_attempt_except_the_last) {
  std::vector<int> asked;
  flaky f(100);
  auto o = weir::op(f.operation()) |
           weir::retry({.attempts = 4, .base = 1ms}).when([&](const std::exception_ptr& e) {
             asked.push_back(boom_of(e));
             return true;
           });
  EXPECT_EQ(boom_of(co_await error_of(o())), 4);
  EXPECT_EQ(asked, (std::vector<int>{1, 2, 3}));
  flaky g(100);
  auto stops = weir::op(g.operation()) |
               weir::retry({.attempts = 9, .base = 1ms}).when([](const std::exception_ptr& e) {
                 return boom_of(e) < 2;
               });
  EXPECT_EQ(boom_of(co_await error_of(stops())), 2);
  EXPECT_EQ(g.runs, 2);
}

FIBER_TEST(retry, a_decision_may_name_the_delay_which_ignores_ceiling_and_jitter) {
  flaky f(100);
  auto o = weir::op(f.operation()) | weir::retry({.attempts = 9, .base = 1ms, .ceiling = 5ms})
                                         .when([](const std::exception_ptr& e) -> retry_decision {
                                           if (boom_of(e) == 1)
                                             return retry_decision::retry_after(3s);
                                           if (boom_of(e) == 2)
                                             return retry_decision::retry_after(-1s);
                                           if (boom_of(e) == 3) return retry_decision::retry();
                                           return retry_decision::stop();
                                         });
  EXPECT_EQ(boom_of(co_await error_of(o())), 4);
  EXPECT_EQ(f.times_ms()[1], 3000);
  EXPECT_EQ(f.times_ms()[2], 3000);
  EXPECT_LE(f.times_ms()[3], 3001);
}
FIBER_TEST(retry, a_predicate_that_throws_ends_the_call_with_its_error) {
  flaky f(100);
  auto o = weir::op(f.operation()) |
           weir::retry({.attempts = 9, .base = 1ms}).when([](const std::exception_ptr&) -> bool {
             throw bang(7);
           });
  const event_record events;
  const auto ended = co_await weir::settle(o);
  EXPECT_TRUE(holds<bang>(ended.error()));
  EXPECT_EQ(f.runs, 1);
  EXPECT_EQ(ended.suppressed().size(), 1u);
  EXPECT_EQ(boom_of(ended.suppressed().at(0)), 1);
  EXPECT_EQ(events.count("suppressed"), 1);
}
FIBER_TEST(retry, it_never_starts_a_wait_that_would_reach_the_deadline) {
  const auto run = [](weir::duration limit, int& runs) -> task<std::exception_ptr> {
    flaky f(100);
    const stopwatch time;
    auto o = weir::op(f.operation()) |
             weir::retry({.attempts = 9, .base = 10ms, .factor = 1, .jitter = jitter::none});
    const auto error = co_await error_of(weir::with_timeout(limit, o));
    runs = f.runs;
    EXPECT_LT(time.ms(), limit / 1ms);
    co_return error;
  };
  int runs = 0;
  EXPECT_EQ(boom_of(co_await run(25ms, runs)), 3);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(boom_of(co_await run(20ms, runs)), 2);  // 20 ms would be reached exactly
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(boom_of(co_await run(1ms, runs)), 1);
  EXPECT_EQ(runs, 1);
}

FIBER_TEST(retry, a_named_delay_respects_the_deadline_too) {
  flaky f(100);
  auto o =
      weir::op(f.operation()) | weir::retry({.attempts = 9}).when([](const std::exception_ptr&) {
        return retry_decision::retry_after(10s);
      });
  EXPECT_EQ(boom_of(co_await error_of(weir::with_timeout(5s, o))), 1);
  EXPECT_EQ(f.runs, 1);
  auto shielded = [&] { return weir::shield(o); };  // the deadline outside does not count there
  EXPECT_EQ(boom_of(co_await error_of(weir::with_timeout(5s, shielded))), 10);
}
FIBER_TEST(retry, what_an_attempt_left_is_destroyed_before_the_next_one_starts) {
  text_log log;
  int runs = 0;
  auto works = [&]() -> task<> {
    const int run = ++runs;
    log.push_back("run");
    const end_note left(log, "gone");
    co_await weir::sleep(1ms);
    if (run < 3) throw boom(run);
  };
  auto o = weir::op(works) | weir::retry({.attempts = 3, .base = 1ms});
  co_await o();
  EXPECT_EQ(joined(log), "run,gone,run,gone,run,gone");
}
FIBER_TEST(retry, of_an_error_group_every_leaf_must_be_worth_another_attempt) {
  int runs = 0;
  std::vector<std::exception_ptr> leaves;
  auto fails = [&]() -> task<> {
    ++runs;
    throw weir::error_group(leaves);
    co_return;
  };
  const auto b = std::make_exception_ptr(boom(1));
  const auto other = std::make_exception_ptr(bang(2));
  const auto cancelled =
      std::make_exception_ptr(weir::cancelled_error(weir::cancel_reason(weir::cancel_kind::user)));
  const auto nested = std::make_exception_ptr(weir::error_group({b, other}));
  auto usual = weir::op(fails) | weir::retry({.attempts = 2, .base = 1ms});
  auto booms = weir::op(fails) |
               weir::retry({.attempts = 2, .base = 1ms}).when([](const std::exception_ptr& e) {
                 return holds<boom>(e);
               });
  const auto runs_of = [&](auto& o, std::vector<std::exception_ptr> given) -> task<int> {
    leaves = std::move(given);
    runs = 0;
    EXPECT_TRUE(holds<weir::error_group>(co_await error_of(o())));
    co_return runs;
  };
  std::vector<std::exception_ptr> mixed{b, nested}, stopped{b, cancelled}, same{b, b};
  EXPECT_EQ(co_await runs_of(usual, mixed), 2);
  EXPECT_EQ(co_await runs_of(usual, stopped), 1);
  EXPECT_EQ(co_await runs_of(booms, same), 2);
  EXPECT_EQ(co_await runs_of(booms, mixed), 1);
}
TEST(retry, bad_options_are_refused_when_it_is_made) {
  const auto made = [](retry_options o) { return thrown_by([&] { (void)weir::retry(o); }); };
  expect_invalid(made({.attempts = 0}), "attempts");
  expect_invalid(made({.attempts = -1}), "attempts");
  expect_invalid(made({.attempts = 1001}), "attempts");
  expect_invalid(made({.base = -1ms}), "base");
  expect_invalid(made({.factor = 0.5}), "factor");
  expect_invalid(made({.factor = std::numeric_limits<double>::quiet_NaN()}), "factor");
  expect_invalid(made({.factor = std::numeric_limits<double>::infinity()}), "factor");
  expect_invalid(made({.ceiling = -1ms}), "ceiling");
  EXPECT_EQ(made({.attempts = 1}), nullptr);
  EXPECT_EQ(made({.attempts = 1000, .base = 0ms, .factor = 1, .ceiling = 0ms}), nullptr);
  EXPECT_EQ(made({}), nullptr);
}
