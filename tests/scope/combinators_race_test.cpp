// SPDX-License-Identifier: MIT
// race: which arm wins, what happens to the losers, what type the result has, and that a race over
// waits loses nothing, starts no fiber and allocates nothing.
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

#include "scope_support.hpp"

using namespace weir_test;
using weir::task;
using kind = weir::cancel_kind;

namespace {

/// Tells the reason of the cancellation that destroys it.
struct reason_probe {
  std::optional<weir::cancel_reason>& seen;
  ~reason_probe() {
    if (const weir::cancel_reason* reason = weir::unwinding()) seen = *reason;
  }
};

long in_use(const weir::counting_governor& g) { return static_cast<long>(g.active()); }

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(race, the_first_value_wins_and_the_losers_are_cancelled_as_race_lost) {
  std::optional<weir::cancel_reason> seen;
  auto loser = [&]() -> task<int> {
    reason_probe probe{seen};
    co_await weir::sleep(1h);
    co_return 1;
  };
  auto t0 = weir::now();
  int value = co_await weir::race(loser, after(10ms, 2));
  EXPECT_EQ(value, 2);
  EXPECT_EQ(weir::now() - t0, 10ms);
  EXPECT_TRUE(seen.has_value());
  EXPECT_TRUE(seen && seen->kind == kind::race_lost);
}
TEST(race, the_losers_are_joined_before_the_result_is_delivered) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      int value = co_await weir::race(slow_to_stop(log, "loser"), after(10ms, 2));
      log.push_back("result " + std::to_string(value));
      EXPECT_EQ(weir::now() - t0, 40ms);
    });
    EXPECT_EQ(joined(log), "loser stopped,result 2");
  });
}
FIBER_TEST_IN_EVERY_ORDER(race, a_failure_that_comes_first_wins_too) {
  auto t0 = weir::now();
  auto error = co_await error_of(weir::race(after(10ms, 1), fails_after(5ms, 7)));
  EXPECT_EQ(boom_of(error), 7);
  EXPECT_EQ(weir::now() - t0, 5ms);
}
FIBER_TEST(race, of_nothing_fails_at_once_with_empty_input) {
  std::vector<task<int>> none;
  auto error = co_await attempt([&] { return weir::race(std::move(none)); });
  EXPECT_EQ(code_of(error), weir::errc::empty_input);
}
// The arms are fibers: in the order of production the lower one is first, in others not.
TEST(race, of_two_arms_ready_in_the_same_step_the_lowest_index_wins) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> task<> {
    int ready_at_once = co_await weir::race(ready(1), ready(2));
    EXPECT_EQ(ready_at_once, 1);
    int same_instant = co_await weir::race(after(10ms, 3), after(10ms, 4));
    EXPECT_EQ(same_instant, 3);
    auto waits = co_await weir::race(weir::sleep(10ms) | weir::timeout(1h), ready(5));
    EXPECT_EQ(waits.index(), 1u);
  });
}
SCOPE_TEST_IN_EVERY_ORDER(race, of_settled_futures_the_lowest_index_wins) {
  auto late = s.spawn(after(5ms, 1));
  auto early = s.spawn(after(1ms, 2));
  co_await weir::sleep(10ms);
  int value = co_await weir::race(late, early);
  EXPECT_EQ(value, 1);
}
// In the order of production only: in others some have begun when the winner ends.
TEST(race, of_a_hundred_with_an_immediate_winner_does_not_start_the_others) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> task<> {
    int started = 0;
    auto sleeper = [&](int value) -> task<int> {
      ++started;
      co_await weir::sleep(1h);
      co_return value;
    };
    std::vector<task<int>> ops;
    ops.push_back(ready(42));
    for (int i = 1; i < 100; ++i) ops.push_back(sleeper(i));
    long timers = live_timers();
    auto t0 = weir::now();
    int value = co_await weir::race(std::move(ops));
    EXPECT_EQ(value, 42);
    EXPECT_EQ(started, 0);
    EXPECT_EQ(live_timers(), timers);
    EXPECT_EQ(weir::now(), t0);
  });
}

FIBER_TEST_IN_EVERY_ORDER(race,
                          equal_types_give_the_value_and_different_ones_a_variant_by_position) {
  auto text = []() -> task<std::string> { co_return "text"; };
  auto nothing = []() -> task<> { co_await weir::sleep(1ms); };
  auto same = co_await weir::race(after(1ms, 1), after(2ms, 2));
  static_assert(std::is_same_v<decltype(same), int>);
  auto mixed = co_await weir::race(after(1h, 1), text, nothing);
  static_assert(std::is_same_v<decltype(mixed), std::variant<int, std::string, weir::unit>>);
  EXPECT_EQ(mixed.index(), 1u);
  EXPECT_EQ(std::get<1>(mixed), "text");
  auto repeated = co_await weir::race(after(1h, 1), nothing, after(2h, 2));
  static_assert(std::is_same_v<decltype(repeated), std::variant<int, weir::unit, int>>);
  EXPECT_EQ(repeated.index(), 1u);
  auto t0 = weir::now();
  co_await weir::race(nothing, weir::sleep(1h));  // all void
  EXPECT_EQ(weir::now() - t0, 1ms);
}

FIBER_TEST_IN_EVERY_ORDER(race, a_range_gives_the_value_also_of_a_move_only_type) {
  auto make = [](int n) -> task<std::unique_ptr<int>> {
    co_await weir::sleep(n * 1ms);
    co_return std::make_unique<int>(n);
  };
  std::vector<task<std::unique_ptr<int>>> ops;
  for (int n : {5, 3, 4}) ops.push_back(make(n));
  std::unique_ptr<int> value = co_await weir::race(std::move(ops));
  EXPECT_TRUE(value && *value == 3);
}

SCOPE_TEST_IN_EVERY_ORDER(race, futures_are_only_observed_and_not_cancelled) {
  auto slow = s.spawn(after(50ms, 1));
  auto fast = s.spawn(after(5ms, 2));
  int value = co_await weir::race(slow, fast);
  EXPECT_EQ(value, 2);
  EXPECT_FALSE(slow.done());
  int copied = co_await fast;
  int later = co_await slow;
  EXPECT_EQ(copied * 10 + later, 21);
}

SCOPE_TEST_IN_EVERY_ORDER(race, a_mix_of_futures_tasks_and_waits_cancels_only_what_it_owns) {
  auto observed = s.spawn(after(50ms, 1));
  std::optional<weir::cancel_reason> seen;
  auto owned = [&]() -> task<int> {
    reason_probe probe{seen};
    co_await weir::sleep(1h);
    co_return 2;
  };
  auto winner = co_await weir::race(observed, owned, weir::sleep(5ms));
  EXPECT_EQ(winner.index(), 2u);
  EXPECT_TRUE(seen.has_value());
  EXPECT_FALSE(observed.done());
  int value = co_await observed;
  EXPECT_EQ(value, 1);
}

FIBER_TEST_IN_EVERY_ORDER(race, a_loser_that_had_already_finished_is_discarded_and_counted) {
  long discarded = 0;
  auto sub = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "value_discarded") ++discarded;
  });
  int finished = 0;
  auto arm = [&](int value) -> task<int> {
    co_await weir::sleep(10ms);
    ++finished;
    co_return value;
  };
  int value = co_await weir::race(arm(1), arm(2));
  EXPECT_TRUE(value == 1 || value == 2);
  EXPECT_GE(finished, 1);
  EXPECT_EQ(discarded, finished - 1);
}

TEST(race, a_cancelled_caller_cancels_and_joins_every_arm) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          end_note gone(log, "caller");
          (void)co_await weir::race(slow_to_stop(log, "arm"), after(1h, 1));
          log.push_back("WENT ON");
        });
        co_await weir::sleep(1ms);
        s.cancel("stop");
        co_await weir::checkpoint();
      }));
    });
    EXPECT_EQ(joined(log), "arm stopped,caller");
  });
}

// A permit is delivered or still in its governor, whichever way the race between two releases ends.
FIBER_TEST_IN_EVERY_ORDER(race, over_waits_what_is_not_delivered_stays_in_its_source) {
  weir::counting_governor a(1), b(1);
  auto hold_a = co_await a.acquire();
  auto hold_b = co_await b.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(10ms);
      hold_a.release();
    });
    s.spawn([&]() -> task<> {
      co_await weir::sleep(10ms);
      hold_b.release();
    });
    weir::permit won = co_await weir::race(a.acquire(), b.acquire());
    co_await weir::sleep(1ms);
    EXPECT_EQ(in_use(a) + in_use(b), 1);
    EXPECT_EQ(free_in(a) + free_in(b), 1);
    EXPECT_EQ(queued(a) + queued(b), 0);
  });
  EXPECT_EQ(free_in(a) + free_in(b), 2);
}
FIBER_TEST_IN_EVERY_ORDER(race, over_a_permit_and_a_sleep_at_one_instant_loses_no_permit) {
  weir::counting_governor g(1);
  auto held = co_await g.acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(10ms);
      held.release();
    });
    auto winner = co_await weir::race(g.acquire(), weir::sleep(10ms));
    co_await weir::sleep(1ms);
    EXPECT_EQ(in_use(g), winner.index() == 0 ? 1 : 0);
    EXPECT_EQ(queued(g), 0);
  });
  EXPECT_EQ(free_in(g), 1);
}
FIBER_TEST(race, ten_thousand_lost_waits_leave_no_waiter_and_no_timer) {
  weir::counting_governor g(0);
  long timers = live_timers();
  for (int i = 0; i < 10'000; ++i) {
    auto winner = co_await weir::race(g.acquire(), weir::sleep(1ms));
    EXPECT_EQ(winner.index(), 1u);
  }
  EXPECT_EQ(queued(g), 0);
  EXPECT_EQ(live_timers(), timers);
}

FIBER_TEST_IN_EVERY_ORDER(race, over_waits_a_cancelled_caller_withdraws_all_of_them) {
  weir::counting_governor a(0), b(0);
  (void)co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> { (void)co_await weir::race(a.acquire(), b.acquire()); });
    co_await weir::sleep(1ms);
    EXPECT_EQ(queued(a) + queued(b), 2);
    s.cancel("stop");
    co_await weir::checkpoint();
  }));
  EXPECT_EQ(queued(a) + queued(b), 0);
}

FIBER_TEST(race, over_waits_starts_no_fiber) {
  long before = 0, during = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      before = live_fibers();
      co_await weir::sleep(2ms);
      during = live_fibers();
    });
    co_await weir::sleep(1ms);
    auto t0 = weir::now();
    co_await weir::race(weir::sleep(10ms), weir::sleep(1h), weir::sleep(2h));
    EXPECT_EQ(weir::now() - t0, 10ms);
  });
  EXPECT_GT(before, 0);
  EXPECT_EQ(during, before);
}

FIBER_TEST_IN_EVERY_ORDER(race, over_waits_any_takes_the_first_value_too) {
  weir::counting_governor closed(0), open(0);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(1ms);
      closed.close();
      co_await weir::sleep(1ms);
      open.resize(1);
    });
    weir::permit won = co_await weir::any(closed.acquire(), open.acquire());
    EXPECT_EQ(in_use(open), 1);
  });
}
