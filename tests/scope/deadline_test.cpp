// SPDX-License-Identifier: MIT
// Deadlines: with_timeout, with_deadline and the timeout pipe; which of several events at one
// instant is reported, when the timer is armed and freed, and what a context says about it.
#include "support/test_support.hpp"

#include <memory>
#include <optional>

using namespace test_support;
using weir::task;
using kind = weir::cancel_kind;

namespace {

/// Logs the kind of the cancellation that destroys it.
struct kind_probe {
  std::optional<kind>& seen;
  ~kind_probe() {
    if (const weir::cancel_reason* reason = weir::unwinding()) seen = reason->kind;
  }
};

task<> sleeps_for_ever(std::optional<kind>& seen) {
  kind_probe probe{seen};
  co_await weir::sleep(100h);
}

}  // namespace
TEST(deadline, a_context_without_an_enclosing_deadline_has_none) {
  weir::sim::run({.seed = 1}, [](weir::context& root) -> task<> {
    EXPECT_FALSE(root.deadline().has_value());
    co_await weir::with_scope([](weir::scope&) -> task<> {
      EXPECT_FALSE(weir::this_context().deadline().has_value());
      co_return;
    });
    (void)co_await weir::with_timeout(1s, ready(1));
    EXPECT_FALSE(root.deadline().has_value());
  });
}
FIBER_TEST(deadline, the_effective_deadline_is_the_minimum_over_the_enclosing_ones) {
  auto t0 = weir::now();
  co_await weir::with_timeout(50ms, [&](weir::context& outer) -> task<> {
    EXPECT_EQ(outer.deadline(), std::optional(t0 + 50ms));
    co_await weir::with_timeout(1h, [&](weir::context& longer) -> task<> {
      EXPECT_EQ(longer.deadline(), std::optional(t0 + 50ms));
      EXPECT_EQ(weir::this_context().deadline(), std::optional(t0 + 50ms));
      co_return;
    });
    co_await weir::with_deadline(t0 + 20ms, [&](weir::context& shorter) -> task<> {
      EXPECT_EQ(shorter.deadline(), std::optional(t0 + 20ms));
      co_return;
    });
    EXPECT_EQ(outer.deadline(), std::optional(t0 + 50ms));
  });
}
FIBER_TEST_IN_EVERY_ORDER(deadline, a_child_has_the_deadline_of_the_scope_it_is_spawned_into) {
  auto t0 = weir::now();
  std::optional<weir::time_point> inherited, foreign;
  co_await weir::with_scope([&](weir::scope& plain) -> task<> {
    co_await weir::with_timeout(50ms, [&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&](weir::context& c) -> task<> {
          inherited = c.deadline();
          co_return;
        });
        co_return;
      });
      plain.spawn([&](weir::context& c) -> task<> {
        foreign = c.deadline();
        co_return;
      });
    });
  });
  EXPECT_EQ(inherited, std::optional(t0 + 50ms));
  EXPECT_FALSE(foreign.has_value());
}

// The page has no field for the outer scope's name, so who catches it is checked
TEST(deadline, an_outer_deadline_that_comes_first_is_the_one_reported) {
  for_each_order([](weir::sim::world& w) {
    int inner = 0, outer = 0;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      std::optional<kind> seen;
      try {
        co_await weir::with_timeout(10ms, [&]() -> task<> {
          try {
            co_await weir::with_timeout(1h, sleeps_for_ever(seen));
          } catch (...) {
            ++inner;
          }
        });
      } catch (const weir::timeout_error&) {
        ++outer;
      }
      EXPECT_EQ(weir::now() - t0, 10ms);
    });
    EXPECT_EQ(inner, 0);
    EXPECT_EQ(outer, 1);
  });
}
FIBER_TEST_IN_EVERY_ORDER(deadline,
                          an_inner_deadline_that_comes_first_leaves_the_outer_one_in_force) {
  auto t0 = weir::now();
  int inner = 0, outer = 0;
  try {
    co_await weir::with_timeout(30ms, [&]() -> task<> {
      try {
        (void)co_await weir::with_timeout(10ms, after(1h, 1));
      } catch (const weir::timeout_error&) {
        ++inner;
        EXPECT_EQ(weir::now() - t0, 10ms);
      }
      co_await weir::sleep(1h);
    });
  } catch (const weir::timeout_error&) {
    ++outer;
  }
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(weir::now() - t0, 30ms);
}
TEST(deadline, of_two_deadlines_at_one_instant_the_outer_one_is_blamed_once) {
  for_each_order([](weir::sim::world& w) {
    int inner = 0, outer = 0;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      try {
        co_await weir::with_deadline(t0 + 10ms, [&]() -> task<> {
          try {
            (void)co_await weir::with_deadline(t0 + 10ms, after(1h, 1));
          } catch (...) {
            ++inner;
          }
          co_await weir::checkpoint();
        });
      } catch (const weir::timeout_error&) {
        ++outer;
      }
      EXPECT_EQ(weir::now() - t0, 10ms);
      co_await weir::checkpoint();
    });
    EXPECT_EQ(inner, 0);
    EXPECT_EQ(outer, 1);
  });
}
FIBER_TEST_IN_EVERY_ORDER(deadline, zero_negative_and_past_deadlines_fail_without_starting_the_op) {
  bool ran = false;
  auto op = [&]() -> task<int> {
    ran = true;
    co_return 1;
  };
  auto t0 = weir::now();
  auto zero = co_await error_of(weir::with_timeout(0ms, op));
  auto negative = co_await error_of(weir::with_timeout(-1h, op));
  auto past = co_await error_of(weir::with_deadline(t0 - 1s, op));
  auto present = co_await error_of(weir::with_deadline(t0, op));
  auto piped = co_await error_of(op | weir::timeout(0ms));
  for (const auto& error : {zero, negative, past, present, piped})
    EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  EXPECT_FALSE(ran);
  EXPECT_EQ(weir::now(), t0);
}
FIBER_TEST_IN_EVERY_ORDER(deadline,
                          a_relative_deadline_counts_from_the_await_and_not_from_its_making) {
  auto waiting = weir::with_timeout(10ms, after(5ms, 7));
  co_await weir::sleep(1h);
  auto t0 = weir::now();
  int value = co_await std::move(waiting);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(weir::now() - t0, 5ms);
}
FIBER_TEST_IN_EVERY_ORDER(deadline, a_cancellation_by_the_user_is_never_reported_as_a_timeout) {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    auto child = s.spawn(weir::with_timeout(1h, after(2h, 1)));
    co_await weir::sleep(1ms);
    child.cancel("enough");
    auto error = co_await error_of(child.take());
    EXPECT_TRUE(holds<weir::cancelled_error>(error)) << what_of(error);
    EXPECT_TRUE(child.peek() && child.peek()->is_cancelled());
  });
  auto own = co_await error_of(weir::with_timeout(1h, [&]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.cancel("enough");
      co_await weir::checkpoint();
    });
  }));
  EXPECT_TRUE(holds<weir::cancelled_error>(own)) << what_of(own);
}

// On the real clock, because virtual time stands still while a fiber runs
TEST(deadline, a_checkpoint_after_the_deadline_unwinds_although_it_would_not_block) {
  bool passed = false;
  weir::run([&]() -> task<> {
    auto op = [&]() -> task<> {
      co_await weir::yield();  // arms the timer
      auto until = std::chrono::steady_clock::now() + 2ms;
      while (std::chrono::steady_clock::now() < until) {
      }
      co_await weir::checkpoint();
      passed = true;
    };
    auto error = co_await error_of(weir::with_timeout(1ms, op));
    EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  });
  EXPECT_FALSE(passed);
}
TEST(deadline, a_fiber_that_only_passes_checkpoints_is_stopped_by_its_deadline) {
  weir::run([]() -> task<> {
    auto op = []() -> task<> {
      for (;;) co_await weir::checkpoint();
    };
    auto error = co_await error_of(weir::with_timeout(1ms, op));
    EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  });
}
FIBER_TEST_IN_EVERY_ORDER(deadline, when_all_sleep_time_jumps_exactly_to_the_deadline) {
  auto t0 = weir::now();
  auto error = co_await error_of(weir::with_timeout(1234567ns, after(1000h, 1)));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(weir::now() - t0, 1234567ns);
}
FIBER_TEST_IN_EVERY_ORDER(deadline, a_value_at_the_instant_of_the_deadline_wins) {
  auto t0 = weir::now();
  auto from_task = co_await weir::settle(weir::with_timeout(10ms, after(10ms, 5)));
  EXPECT_TRUE(from_task.is_value());
  auto from_wait = co_await error_of(weir::with_timeout(10ms, weir::sleep(10ms)));
  EXPECT_FALSE(from_wait) << what_of(from_wait);
  EXPECT_EQ(weir::now() - t0, 20ms);
  co_await weir::checkpoint();
}
FIBER_TEST_IN_EVERY_ORDER(deadline, a_scope_that_the_timer_cancelled_is_reported_as_the_timeout) {
  auto op = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto child = s.spawn(after(1h, 1));
      (void)co_await child;
    });
  };
  auto o = co_await weir::settle(weir::with_timeout(10ms, op));
  EXPECT_TRUE(o.is_error());
  EXPECT_TRUE(o.is_error() && holds<weir::timeout_error>(o.error()));
}
FIBER_TEST_IN_EVERY_ORDER(deadline,
                          a_timeout_is_a_failure_with_its_own_code_and_never_a_cancellation) {
  auto o = co_await weir::settle(weir::with_timeout(10ms, after(1h, 1)));
  EXPECT_TRUE(o.is_error());
  EXPECT_FALSE(o.is_cancelled());
  EXPECT_TRUE(o.is_error() && code_of(o.error()) == weir::errc::timeout);
}

FIBER_TEST_IN_EVERY_ORDER(deadline, a_value_after_the_timer_fired_is_kept_and_told_as_late) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  auto t0 = weir::now();
  auto stubborn = []() -> task<int> {
    int value = co_await weir::shield(after(30ms, 7));
    co_return value;
  };
  int value = co_await weir::with_timeout(10ms, stubborn);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(weir::now() - t0, 30ms);
  EXPECT_EQ(counted(events, "late"), 1);
  (void)co_await weir::with_timeout(10ms, after(5ms, 7));
  EXPECT_EQ(counted(events, "late"), 1);
}

FIBER_TEST_IN_EVERY_ORDER(deadline,
                          an_error_while_being_cancelled_is_reported_and_the_timeout_suppressed) {
  text_log events;
  auto sub = weir::on_event([&](const weir::event_info& e) { events.emplace_back(e.name); });
  auto breaks = []() -> task<int> { co_return co_await weir::shield(fails_after(30ms, 4)); };
  auto o = co_await weir::settle(weir::with_timeout(10ms, breaks));
  EXPECT_TRUE(o.is_error());
  EXPECT_EQ(o.is_error() ? boom_of(o.error()) : 0, 4);
  EXPECT_EQ(counted(events, "suppressed"), 1);
}
TEST(deadline, an_outer_cancellation_that_came_first_wins_although_the_timer_is_passed_later) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    bool went_on = false;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      auto o = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          try {
            (void)co_await weir::with_timeout(10ms, slow_to_stop(log, "op"));
          } catch (...) {
            went_on = true;
          }
        });
        co_await weir::sleep(5ms);
        s.cancel("stop");
        co_await weir::checkpoint();
      }));
      EXPECT_TRUE(o.is_cancelled());
      EXPECT_EQ(weir::now() - t0, 35ms);
    });
    EXPECT_FALSE(went_on);
    EXPECT_EQ(joined(log), "op stopped");
  });
}
TEST(deadline, the_op_is_joined_before_the_timeout_is_thrown) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      try {
        (void)co_await weir::with_timeout(10ms, slow_to_stop(log, "op"));
      } catch (const weir::timeout_error&) {
        log.push_back("thrown");
      }
      EXPECT_EQ(weir::now() - t0, 40ms);
      co_await weir::sleep(1ms);  // the caller itself was not cancelled
      log.push_back("on");
    });
    EXPECT_EQ(joined(log), "op stopped,thrown,on");
  });
}
FIBER_TEST(deadline, the_timer_is_freed_on_value_error_and_cancellation) {
  long before = live_timers();
  for (int i = 0; i < 1000; ++i) (void)co_await weir::with_timeout(1h, ready(i));
  EXPECT_EQ(live_timers(), before);
  (void)co_await weir::with_timeout(1h, after(1ms, 1));
  EXPECT_EQ(live_timers(), before);
  auto error = co_await error_of(weir::with_timeout(1h, fails_after(1ms, 8)));
  EXPECT_EQ(boom_of(error), 8);
  EXPECT_EQ(live_timers(), before);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(weir::with_timeout(1h, after(2h, 1)));
    co_await weir::yield();
    co_await weir::yield();
    child.cancel();
    (void)co_await error_of(child.take());
  });
  EXPECT_EQ(live_timers(), before);
}

// In the order of production, where an await that need not wait keeps its turn.
TEST(deadline, the_timer_is_armed_when_the_op_first_gives_up_its_turn) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> task<> {
    long before = live_timers();
    co_await weir::with_timeout(1h, [&]() -> task<> {
      EXPECT_EQ(live_timers(), before);
      (void)co_await ready(1);
      EXPECT_EQ(live_timers(), before);
      co_await weir::yield();
      EXPECT_EQ(live_timers(), before + 1);
    });
    EXPECT_EQ(live_timers(), before);
  });
}

FIBER_TEST_IN_EVERY_ORDER(deadline, the_unwound_op_sees_the_kind_timeout_or_deadline) {
  std::optional<kind> by_timeout, by_deadline;
  (void)co_await error_of(weir::with_timeout(1ms, sleeps_for_ever(by_timeout)));
  auto soon = weir::now() + 1ms;
  (void)co_await error_of(weir::with_deadline(soon, sleeps_for_ever(by_deadline)));
  EXPECT_EQ(by_timeout, std::optional(kind::timeout));
  EXPECT_EQ(by_deadline, std::optional(kind::deadline));
}

FIBER_TEST(deadline, the_pipe_takes_callables_tasks_and_waits) {
  auto t0 = weir::now();
  auto callable = []() -> task<int> {
    co_await weir::sleep(1h);
    co_return 1;
  };
  auto first = co_await error_of(callable | weir::timeout(10ms));
  auto second = co_await error_of(after(1h, 1) | weir::timeout(10ms));
  auto third = co_await error_of(weir::sleep(1h) | weir::timeout(10ms));
  EXPECT_TRUE(holds<weir::timeout_error>(first));
  EXPECT_TRUE(holds<weir::timeout_error>(second));
  EXPECT_TRUE(holds<weir::timeout_error>(third));
  EXPECT_EQ(weir::now() - t0, 30ms);
  int value = co_await (after(5ms, 6) | weir::timeout(10ms) | weir::timeout(20ms));
  EXPECT_EQ(value, 6);
}

FIBER_TEST(deadline, a_move_only_result_passes_through) {
  auto make = []() -> task<std::unique_ptr<int>> {
    co_await weir::sleep(1ms);
    co_return std::make_unique<int>(9);
  };
  std::unique_ptr<int> value = co_await weir::with_timeout(1s, make);
  EXPECT_TRUE(value && *value == 9);
}

FIBER_TEST_IN_EVERY_ORDER(deadline, a_timeout_over_a_wait_starts_no_fiber) {
  long before = 0, during = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      before = live_fibers();
      co_await weir::sleep(2ms);
      during = live_fibers();
    });
    co_await weir::sleep(1ms);
    auto error = co_await error_of(weir::with_timeout(10ms, weir::sleep(1h)));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
  });
  EXPECT_GT(before, 0);
  EXPECT_EQ(during, before);
}
