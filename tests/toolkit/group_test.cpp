// SPDX-License-Identifier: MIT
// Groups: related jobs, the first error, siblings that are cancelled.
#include "toolkit_support.hpp"

using namespace weir_test;
using weir::group;

static_assert(std::is_trivially_destructible_v<weir::group_options>);
static_assert(std::is_aggregate_v<weir::group_options>);
static_assert(!std::is_default_constructible_v<group>);
static_assert(!std::is_copy_constructible_v<group> && !std::is_move_constructible_v<group>);
static_assert(!std::is_constructible_v<group, weir::group_options>);
static_assert(!std::is_constructible_v<group, weir::detail::group_region&>);

namespace {

/// Fails with `number` when it is cancelled, after a cleanup that takes `d`.
task<> fail_when_cancelled(weir::duration d, int number) {
  co_await weir::shield([&]() -> task<> {
    co_await weir::sleep(d);
    throw boom(number);
  });
}

task<std::error_code> code_of_wait(group& g) {
  std::exception_ptr error = co_await error_of(g.wait());
  co_return code_of(error);
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(group, every_job_runs_and_the_value_of_the_body_comes_out) {
  int ran = 0;
  auto value = co_await weir::with_group([&](group& g) -> task<std::unique_ptr<int>> {
    g.go([&]() -> task<> {
      co_await weir::sleep(2ms);
      ++ran;
    });
    g.go([&](weir::context&) -> task<int> { co_return ++ran; });
    g.go(weir::sleep(1ms));
    g.go(after(1ms, 7));
    EXPECT_EQ(ran, 0);  // never inline
    co_await g.wait();
    EXPECT_EQ(ran, 2);
    co_return std::make_unique<int>(9);
  });
  EXPECT_EQ(*value, 9);
}

FIBER_TEST_IN_EVERY_ORDER(
    group, the_first_error_cancels_the_siblings_at_once_and_is_rethrown_after_the_last_job) {
  const auto start = weir::now();
  text_log log;
  std::exception_ptr thrown;
  std::exception_ptr caught;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([&]() -> task<> {
      co_await weir::sleep(10ms);
      thrown = std::make_exception_ptr(boom(1));
      std::rethrow_exception(thrown);
    });
    g.go([&]() -> task<> {
      auto told = weir::scope_exit([&] {
        log.push_back("unwound at " + std::to_string(ms_since(start)));
        const weir::cancel_reason* why = weir::unwinding();
        EXPECT_TRUE(why != nullptr && why->kind == cancel_kind::sibling_failed);
        EXPECT_TRUE(why != nullptr && why->cause == thrown);
      });
      co_await weir::sleep(1h);
    });
    g.go(slow_to_stop(log, "cleanup"));
    caught = co_await error_of(g.wait());
    EXPECT_EQ(ms_since(start), 40);
  });
  EXPECT_TRUE(caught == thrown);  // the same object, not a copy
  EXPECT_EQ(joined(log), "unwound at 10,cleanup stopped");
}

FIBER_TEST_IN_EVERY_ORDER(group, an_error_of_a_job_does_not_touch_the_body_before_it_waits) {
  int steps = 0;
  std::exception_ptr caught;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go(fail_after(1ms, 4));
    for (; steps < 5; ++steps) co_await weir::sleep(1ms);
    EXPECT_FALSE(weir::this_context().cancel_requested());
    caught = co_await error_of(g.wait());
    co_await weir::sleep(1ms);  // nor afterwards
    ++steps;
  });
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(boom_of(caught), 4);
}

FIBER_TEST(group, after_the_first_error_a_job_is_accepted_and_destroyed_at_once) {
  std::vector<std::uint64_t> dropped;
  auto sub = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "job_dropped" && e.object == "late") dropped.push_back(e.number);
  });
  int started = 0;
  auto token = std::make_shared<int>(1);
  co_await weir::with_group({.name = "late"}, [&](group& g) -> task<> {
    g.go(fail_after(1ms, 4));
    co_await weir::sleep(2ms);
    auto job = [&started, token]() -> task<> {
      ++started;
      co_return;
    };
    g.go(std::move(job));
    EXPECT_EQ(token.use_count(), 1);
    const auto kept = [&started, token]() -> task<> {
      ++started;
      co_return;
    };
    g.go(kept);
    EXPECT_EQ(token.use_count(), 2);  // neither copied nor taken
    auto run = [](std::shared_ptr<int>, int& n) -> task<> {
      ++n;
      co_return;
    };
    g.go(run(token, started));
    EXPECT_EQ(token.use_count(), 2);
    EXPECT_EQ(live_fibers(), 1);  // the root: no job is left
    (void)co_await error_of(g.wait());
  });
  EXPECT_EQ(started, 0);
  EXPECT_EQ(dropped, (std::vector<std::uint64_t>{1, 2, 3}));
}

FIBER_TEST_IN_EVERY_ORDER(group, later_errors_never_replace_the_first_and_are_suppressed) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  int caught = 0;
  auto out = co_await weir::settle(weir::with_group([&](group& g) -> task<> {
    for (int i = 1; i <= 8; ++i) g.go(fail_when_cancelled(20ms, 100 + i));
    g.go(fail_after(1ms, 1));
    caught = boom_of(co_await error_of(g.wait()));
    EXPECT_TRUE(g.errors().empty());  // it collects nothing
  }));
  EXPECT_EQ(caught, 1);
  EXPECT_TRUE(out.is_value());
  EXPECT_EQ(out.suppressed().size(), 8u);
  EXPECT_EQ(counted(events, "suppressed"), 8);
}

FIBER_TEST_IN_EVERY_ORDER(group, errors_holds_up_to_the_limit_with_the_first_one_first) {
  for (int limit : {0, 1, 2, 4, 9}) {
    std::vector<int> kept;
    int caught = 0;
    co_await weir::with_group({.collect = limit}, [&](group& g) -> task<> {
      for (int i = 1; i <= 4; ++i) g.go(fail_when_cancelled(20ms, 100 + i));
      g.go(fail_after(1ms, 1));
      caught = boom_of(co_await error_of(g.wait()));
      kept = booms_of(g.errors());
    });
    EXPECT_EQ(caught, 1);
    EXPECT_EQ(kept.size(), static_cast<std::size_t>(std::min(limit, 5)));
    EXPECT_TRUE(limit == 0 || kept.front() == 1);
    EXPECT_EQ(std::count(kept.begin(), kept.end(), 1), std::min(limit, 1));
  }
}

FIBER_TEST(group, errors_gives_a_copy) {
  co_await weir::with_group({.collect = 3}, [&](group& g) -> task<> {
    g.go(fail_after(1ms, 1));
    (void)co_await error_of(g.wait());
    auto mine = g.errors();
    mine[0] = std::make_exception_ptr(boom(2));
    mine.push_back(mine[0]);
    EXPECT_EQ(booms_of(g.errors()), (std::vector<int>{1}));
  });
}

FIBER_TEST_IN_EVERY_ORDER(group, good_jobs_beside_a_failing_one_run_exactly_once) {
  std::vector<int> seen(64, 0);
  int caught = 0;
  co_await weir::with_group([&](group& g) -> task<> {
    for (int i = 0; i < 64; ++i) {
      auto job = [&seen, i]() -> task<> {
        ++seen[static_cast<std::size_t>(i)];
        co_return;
      };
      g.go(job);
    }
    g.go(fail_after(1ms, 5));
    caught = boom_of(co_await error_of(g.wait()));
  });
  EXPECT_EQ(caught, 5);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 64);
}

FIBER_TEST_IN_EVERY_ORDER(group, without_jobs_nothing_is_waited_for) {
  const auto start = weir::now();
  co_await weir::with_group([](group& g) -> task<> { co_await g.wait(); });
  co_await weir::with_group([](group&) -> task<> { co_return; });
  EXPECT_EQ(ms_since(start), 0);
}

// ------------------------------------------------------------------ waiting

FIBER_TEST_IN_EVERY_ORDER(group, once_wait_was_begun_no_job_is_accepted) {
  std::error_code by_job;
  std::error_code by_body;
  bool ran = false;
  auto late = [&]() -> task<> {
    ran = true;
    co_return;
  };
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([&]() -> task<> {
      co_await weir::sleep(1ms);
      by_job = code_thrown_by([&] { g.go(late); });
    });
    auto not_yet = g.wait();
    g.go([&]() -> task<> { co_await weir::sleep(2ms); });  // asked for, but not begun
    co_await std::move(not_yet);
    by_body = code_thrown_by([&] { g.go(late); });
  });
  EXPECT_EQ(by_job, errc::group_waiting);
  EXPECT_EQ(by_body, errc::group_waiting);
  EXPECT_FALSE(ran);
}

FIBER_TEST_IN_EVERY_ORDER(group, a_body_that_returned_waits_so_no_job_is_accepted_either) {
  std::error_code refused;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([&refused, &g]() -> task<> {
      co_await weir::sleep(1ms);
      refused = code_thrown_by([&] { g.go(weir::sleep(1ms)); });
    });
    co_return;
  });
  EXPECT_EQ(refused, errc::group_waiting);
}

FIBER_TEST_IN_EVERY_ORDER(group, a_second_wait_is_refused) {
  co_await weir::with_group([](group& g) -> task<> {
    g.go(weir::sleep(1ms));
    co_await g.wait();
    const auto again = co_await code_of_wait(g);
    EXPECT_EQ(again, errc::already_waited);
  });
}

FIBER_TEST_IN_EVERY_ORDER(group, of_two_that_wait_at_once_one_is_refused_and_the_other_served) {
  int served = 0;
  int refused = 0;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go(weir::sleep(5ms));
    auto waiter = [&]() -> task<> {
      const auto code = co_await code_of_wait(g);
      served += !code;
      refused += code == errc::already_waited;
    };
    (void)co_await weir::all(waiter, waiter);
  });
  EXPECT_EQ(served, 1);
  EXPECT_EQ(refused, 1);
}

FIBER_TEST_IN_EVERY_ORDER(group,
                          a_wait_that_timed_out_is_used_up_and_the_error_comes_out_at_the_end) {
  const auto start = weir::now();
  std::error_code again;
  auto out = co_await weir::settle(weir::with_group([&](group& g) -> task<int> {
    g.go(fail_after(20ms, 3));
    const auto first = co_await error_of(weir::with_timeout(5ms, g.wait()));
    EXPECT_TRUE(holds<weir::timeout_error>(first));
    EXPECT_EQ(ms_since(start), 5);
    again = co_await code_of_wait(g);
    co_return 1;
  }));
  EXPECT_EQ(again, errc::already_waited);
  EXPECT_EQ(boom_of(out.error()), 3);
  EXPECT_EQ(ms_since(start), 20);
}

FIBER_TEST(group, a_wait_that_never_began_is_not_used_up) {
  co_await weir::with_group([](group& g) -> task<> {
    const auto late = co_await error_of(weir::with_timeout(0ms, g.wait()));
    EXPECT_TRUE(holds<weir::timeout_error>(late));
    g.go(weir::sleep(1ms));
    co_await g.wait();
  });
}

FIBER_TEST_IN_EVERY_ORDER(group,
                          a_job_that_waits_for_its_own_group_is_told_so_and_wait_is_not_used_up) {
  std::error_code refused;
  std::error_code from_below;
  co_await weir::with_group([&](group& g) -> task<> {
    g.go([&]() -> task<> {
      refused = code_thrown_by([&] { (void)g.wait(); });
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          from_below = code_thrown_by([&] { (void)g.wait(); });
          co_return;
        });
        co_await s.join();
      });
    });
    co_await g.wait();
  });
  EXPECT_EQ(refused, errc::would_deadlock);
  EXPECT_EQ(from_below, errc::would_deadlock);
}

FIBER_TEST_IN_EVERY_ORDER(group, wait_takes_part_in_races) {
  co_await weir::with_group([](group& g) -> task<> {
    g.go(fail_after(5ms, 2));
    auto first = co_await weir::settle(weir::race(weir::sleep(10ms), g.wait()));
    EXPECT_EQ(boom_of(first.error()), 2);
  });
  const auto start = weir::now();
  auto out = co_await weir::settle(weir::with_group([&](group& g) -> task<> {
    g.go(fail_after(5ms, 2));
    co_await weir::any(g.wait(), weir::sleep(10ms));  // an error is no value
    EXPECT_EQ(ms_since(start), 10);
  }));
  EXPECT_EQ(boom_of(out.error()), 2);  // and nobody has seen it
}

// ------------------------------------------------------------------ misuse

FIBER_TEST(group, an_empty_callable_is_refused_before_anything_else_is_looked_at) {
  const auto empty = make_error_code(errc::empty_job);
  co_await weir::with_group([&](group& g) -> task<> {
    EXPECT_EQ(code_thrown_by([&] { g.go(callable{}); }), empty);
    EXPECT_EQ(code_thrown_by([&] { g.go(function_pointer{nullptr}); }), empty);
    co_await g.wait();
    EXPECT_EQ(code_thrown_by([&] { g.go(callable{}); }), empty);
  });
  std::function<task<>(group&)> no_body;
  EXPECT_EQ(code_thrown_by([&] { (void)weir::with_group(no_body); }), empty);
}

FIBER_TEST(group, a_negative_limit_of_errors_is_refused_and_the_body_never_runs) {
  bool ran = false;
  auto body = [&](group&) -> task<> {
    ran = true;
    co_return;
  };
  const auto error = thrown_by([&] { (void)weir::with_group({.name = "g", .collect = -1}, body); });
  EXPECT_EQ(code_of(error), errc::invalid_argument);
  EXPECT_TRUE(contains(what_of(error), "'g'") && contains(what_of(error), "collect"));
  EXPECT_FALSE(ran);
  co_return;
}

FIBER_TEST(group, refusals_name_the_group) {
  const std::string name = "orders";
  co_await weir::with_group({.name = name}, [](group& g) -> task<> {
    EXPECT_EQ(g.name(), "orders");
    co_await g.wait();
    const auto go = thrown_by([&] { g.go(weir::sleep(1ms)); });
    EXPECT_TRUE(contains(what_of(go), "'orders'")) << what_of(go);
    const auto wait = co_await error_of(g.wait());
    EXPECT_TRUE(contains(what_of(wait), "'orders'")) << what_of(wait);
  });
}
