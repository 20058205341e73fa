// SPDX-License-Identifier: MIT
// race, any, all and with_timeout over next, push, send, lock and wait: what one of them delivers
// is taken, everything else is still in its source.
#include <cstdint>
#include <memory>
#include <variant>

#include "flow_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;
using int_queue = weir::queue<int>;

namespace {

/// Runs `op` as a child, cancels it when it is parked, and waits for its end.
template <class Op>
task<> cancel_when_parked(Op op) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(std::move(op));
    co_await settled();
    child.cancel();
    co_await s.idle();
    EXPECT_TRUE(child.peek()->is_cancelled());
  });
}

}  // namespace
FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          a_race_of_two_nexts_takes_one_value_and_leaves_the_other) {
  int_queue a(5), b(5);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::yield();
      EXPECT_EQ(a.try_push(1), no_error);
      EXPECT_EQ(b.try_push(2), no_error);
    });
    auto got = co_await weir::race(a.next(), b.next());
    const numbers left_in_a = drain(a);
    const numbers left_in_b = drain(b);
    EXPECT_EQ(left_in_a.size() + left_in_b.size(), 1U);
    EXPECT_EQ(got, left_in_a.empty() ? 1 : 2);
  });
}

FIBER_TEST(flow_composite, a_race_of_ready_nexts_takes_one_value_only) {
  int_queue a(5), b(5);
  co_await a.push(1);
  co_await b.push(2);
  auto got = co_await weir::race(a.next(), b.next());
  EXPECT_EQ(got, 1);
  EXPECT_EQ(b.size(), 1U);
  auto first = co_await weir::any(a.next(), b.next());
  EXPECT_EQ(first, 2);
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite, a_race_of_two_nexts_of_one_queue_takes_one_value) {
  int_queue q(5);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::yield();
      EXPECT_EQ(q.try_push(1), no_error);
      EXPECT_EQ(q.try_push(2), no_error);
    });
    auto got = co_await weir::race(q.next(), q.next());
    EXPECT_EQ(got, 1);
    co_await s.join();
  });
  EXPECT_EQ(drain(q), numbers{2});
}
TEST(flow_composite, the_sum_of_values_survives_100000_races_of_next_against_a_sleep) {
  constexpr int rounds = test_support::sanitized ? 5'000 : 100'000;
  for (auto strategy : {weir::sim::fifo, weir::sim::random}) {
    weir::sim::options options{};
    options.seed = 3;
    options.strategy = strategy;
    weir::sim::run(options, [&]() -> task<> {
      int_queue q(4);
      std::int64_t pushed = 0, taken = 0;
      int timeouts = 0;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          for (int i = 1; i <= rounds; ++i) {
            co_await weir::sleep(2us);
            co_await q.push(i);
            pushed += i;
          }
          q.close();
        });
        for (;;) {
          auto won = co_await weir::race(q.next(), weir::sleep(1us));
          if (won.index() == 1) {
            ++timeouts;
            continue;
          }
          const std::optional<int> value = std::get<0>(won);
          if (!value) break;
          taken += *value;
        }
      });
      EXPECT_EQ(taken, pushed);
      EXPECT_EQ(pushed, std::int64_t{rounds} * (rounds + 1) / 2);
      EXPECT_GT(timeouts, rounds / 10);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite, a_next_that_times_out_takes_nothing) {
  int_queue q(5);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(5ms);
      EXPECT_EQ(q.try_push(1), no_error);
    });
    numbers got;
    try {
      auto v = co_await weir::with_timeout(5ms, q.next());
      got.push_back(v.value_or(-1));
    } catch (const weir::timeout_error&) {
    }
    co_await s.join();
    for (int left : drain(q)) got.push_back(left);
    EXPECT_EQ(got, numbers{1});
  });
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          a_push_that_loses_delivers_nothing_and_its_value_is_destroyed) {
  int alive = 0;
  weir::queue<counted_value> q(1), r(1);
  EXPECT_EQ(q.try_push(counted_value(1, alive)), no_error);
  co_await weir::race(q.push(counted_value(2, alive)), weir::sleep(1ms));
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(q.size(), 1U);
  const std::exception_ptr late =
      co_await error_of(weir::with_timeout(1ms, q.push(counted_value(3, alive))));
  EXPECT_TRUE(holds<weir::timeout_error>(late));
  EXPECT_EQ(alive, 1);
  co_await weir::race(q.push(counted_value(4, alive)), r.push(counted_value(5, alive)));
  EXPECT_EQ(alive, 2);
  EXPECT_EQ(q.size(), 1U);
  EXPECT_EQ(r.try_next()->n, 5);
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          a_race_of_a_push_and_a_next_of_one_rendezvous_never_meets_itself) {
  int_queue q(0);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(2ms);
      co_await q.push(7);
    });
    auto won = co_await weir::race(q.push(1), q.next());
    EXPECT_EQ(won.index(), 1U);
    EXPECT_EQ(std::get<1>(won), 7);
    EXPECT_EQ(q.try_next(), std::nullopt);  // the push has left
  });
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite, all_that_is_cancelled_gives_its_value_back_to_the_front) {
  int_queue q(5), never(1);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(q.try_push(i), no_error);
  auto both = [&]() -> task<> { (void)co_await weir::all(q.next(), never.next()); };
  co_await cancel_when_parked(both);
  EXPECT_EQ(drain(q), from_to(1, 3));
  EXPECT_EQ(never.size(), 0U);
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          all_that_is_cancelled_gives_two_values_of_one_queue_back_in_order) {
  int_queue q(5), never(1);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(q.try_push(i), no_error);
  auto three = [&]() -> task<> { (void)co_await weir::all(q.next(), q.next(), never.next()); };
  co_await cancel_when_parked(three);
  EXPECT_EQ(drain(q), from_to(1, 3));
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite, a_value_that_comes_back_goes_to_the_consumer_that_waits) {
  int_queue q(5), never(1);
  numbers got;
  EXPECT_EQ(q.try_push(1), no_error);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto both = [&]() -> task<> { (void)co_await weir::all(q.next(), never.next()); };
    auto leaves = s.spawn(both);
    co_await settled();
    EXPECT_EQ(q.size(), 0U);
    s.spawn(take_into(q, got));
    co_await settled();
    EXPECT_TRUE(got.empty());
    leaves.cancel();
    co_await s.join();
  });
  EXPECT_EQ(got, numbers{1});
}

TEST(flow_composite, a_value_that_comes_back_to_a_full_queue_is_not_lost) {
  for (int capacity : {0, 1}) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        int_queue q(capacity), never(1);
        numbers pushed, got;
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          s.spawn(push_one(q, 1, pushed));
          co_await settled();
          auto both = [&]() -> task<> { (void)co_await weir::all(q.next(), never.next()); };
          auto leaves = s.spawn(both);
          co_await settled();
          s.spawn(push_one(q, 2, pushed));
          s.spawn(push_one(q, 3, pushed));
          co_await settled();
          leaves.cancel();
          co_await settled();
          for (int i = 0; i < 3; ++i) got.push_back(co_await take_one(q));
          co_await s.join();
        });
        EXPECT_EQ(got.front(), 1);
        EXPECT_EQ(sorted(got), from_to(1, 3));
        EXPECT_EQ(sorted(pushed), from_to(1, 3));
        EXPECT_LE(static_cast<int>(q.size()), capacity);
      });
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite, all_of_a_channel_that_is_cancelled_gives_its_value_back) {
  auto [tx, rx] = weir::channel<int>(5);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(tx.try_send(i), no_error);
  int_queue never(1);
  auto both = [&, &from = rx]() -> task<> { (void)co_await weir::all(from.next(), never.next()); };
  co_await cancel_when_parked(both);
  EXPECT_EQ(drain(rx), from_to(1, 3));
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          a_race_of_two_channels_takes_one_value_and_leaves_the_other) {
  auto [a_tx, a] = weir::channel<int>(2);
  auto [b_tx, b] = weir::channel<int>(2);
  co_await weir::with_scope([&, &a_to = a_tx, &b_to = b_tx](weir::scope& s) -> task<> {
    auto sends = [x = a_to, y = b_to]() mutable -> task<> {
      co_await x.send(1);
      co_await y.send(2);
    };
    s.spawn_on(w.loop("a"), std::move(sends));
    co_await s.idle();
  });
  auto got = co_await weir::race(a.next(), b.next());
  const auto left = drain(got == 1 ? b : a);
  EXPECT_EQ(left.size(), 1U);
  EXPECT_EQ(*got + left.front(), 3);
  auto none = co_await weir::race(a.next(), weir::sleep(1ms), b.next());
  EXPECT_EQ(none.index(), 1U);
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          the_sum_of_values_survives_races_of_a_channel_against_a_sleep) {
  auto [tx, rx] = weir::channel<int>(2);
  int taken = 0;
  auto sends = [mine = std::move(tx)]() mutable -> task<> {
    for (int i = 1; i <= 20; ++i) {
      co_await weir::sleep(1us);
      for (bool sent = false; !sent;) {
        const std::exception_ptr late = co_await error_of(weir::with_timeout(1us, mine.send(i)));
        sent = late == nullptr;
      }
    }
  };
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("a"), std::move(sends));
    for (;;) {
      auto won = co_await weir::race(from.next(), weir::sleep(1us));
      if (won.index() == 1) continue;
      const std::optional<int> value = std::get<0>(won);
      if (!value) break;
      taken += *value;
    }
  });
  EXPECT_EQ(taken, 210);
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite, a_lock_that_loses_is_not_held) {
  weir::mutex a, b;
  {
    weir::mutex_guard held = co_await a.lock();
    weir::mutex_guard won = co_await weir::race(a.lock(), b.lock());
    EXPECT_TRUE(b.locked());
    const std::exception_ptr late = co_await error_of(weir::with_timeout(1ms, b.lock()));
    EXPECT_TRUE(holds<weir::timeout_error>(late));
  }
  EXPECT_FALSE(a.locked() || b.locked());
  {
    auto both = co_await weir::all(a.lock(), b.lock());
    EXPECT_TRUE(a.locked() && b.locked());
  }
  EXPECT_FALSE(a.locked() || b.locked());
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          all_that_is_cancelled_gives_its_lock_to_the_next_in_line) {
  weir::mutex a, b;
  weir::mutex_guard held = co_await b.lock();
  bool had_it = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto both = [&]() -> task<> { (void)co_await weir::all(a.lock(), b.lock()); };
    auto leaves = s.spawn(both);
    co_await settled();
    EXPECT_TRUE(a.locked());
    s.spawn([&]() -> task<> {
      weir::mutex_guard mine = co_await a.lock();
      had_it = true;
    });
    co_await settled();
    EXPECT_FALSE(had_it);
    leaves.cancel();
    co_await s.join();
  });
  EXPECT_TRUE(had_it);
  EXPECT_FALSE(a.locked());
  EXPECT_TRUE(b.locked());
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite, events_and_latches_race_and_join) {
  weir::event e;
  weir::latch l(1);
  weir::oneshot<int> o;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      co_await weir::sleep(1ms);
      l.count_down();
      co_await weir::sleep(1ms);
      e.set();
      co_await weir::sleep(1ms);
      EXPECT_TRUE(o.send(4));
    });
    const auto start = weir::now();
    co_await weir::race(e.wait(), weir::sleep(1h), l.wait());
    EXPECT_EQ(ms_since(start), 1);
    EXPECT_FALSE(e.is_set());
    co_await weir::all(e.wait(), l.wait());
    EXPECT_TRUE(e.is_set());
    auto second = co_await weir::race(weir::sleep(1h), o.receive());
    EXPECT_EQ(second.index(), 1U);
    EXPECT_EQ(std::get<1>(second), 4);
  });
}

// ------------------------------------------------------------------ arms that let each other
// through

namespace {

/// A wait that calls `start` when it is armed, after all arms were asked whether they are ready,
/// and is complete.
template <class F>
auto calls_when_armed(F& start) {
  return weir::suspend<void>([&start](weir::resumer<void> r) {
    start();
    r.complete();
    return [] { return weir::cancel_result::done; };
  });
}

/// Awaits both within a second.
template <class F, class Wait>
task<std::exception_ptr> error_of_both(F start, Wait wait) {
  auto both = weir::all(calls_when_armed(start), std::move(wait));
  co_return co_await error_of(weir::with_timeout(1s, std::move(both)));
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(flow_composite, all_of_next_and_push_of_one_queue_meet_in_either_order) {
  int_queue q(1);
  auto first = co_await weir::all(q.push(1), q.next());
  EXPECT_EQ(std::get<1>(first), 1);
  auto second = co_await weir::all(q.next(), q.push(2));
  EXPECT_EQ(std::get<0>(second), 2);
  co_await q.push(3);
  auto third = co_await weir::all(q.push(4), q.next());
  EXPECT_EQ(std::get<1>(third), 3);
  EXPECT_EQ(drain(q), numbers{4});
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          all_of_next_and_send_of_one_channel_meet_in_either_order) {
  auto [tx, rx] = weir::channel<int>(1);
  auto first = co_await weir::all(tx.send(1), rx.next());
  EXPECT_EQ(std::get<1>(first), 1);
  auto second = co_await weir::all(rx.next(), tx.send(2));
  EXPECT_EQ(std::get<0>(second), 2);
  co_await tx.send(3);
  auto third = co_await weir::all(tx.send(4), rx.next());
  EXPECT_EQ(std::get<1>(third), 3);
  EXPECT_EQ(drain(rx), numbers{4});
}

FIBER_TEST_IN_EVERY_ORDER(flow_composite,
                          an_arm_that_is_armed_late_sees_what_the_arm_before_it_did) {
  int_queue filled(1), emptied(1), ended(1);
  weir::event e;
  weir::latch l(1);
  weir::oneshot<int> o;
  weir::mutex m;
  weir::mutex_guard held = co_await m.lock();
  co_await emptied.push(1);
  std::vector<std::pair<const char*, std::exception_ptr>> errors;
  auto push = [&] { EXPECT_EQ(filled.try_push(1), no_error); };
  errors.emplace_back("next, pushed", co_await error_of_both(push, filled.next()));
  auto take = [&] { EXPECT_EQ(emptied.try_next(), 1); };
  errors.emplace_back("push, taken", co_await error_of_both(take, emptied.push(2)));
  auto close = [&] { ended.close(); };
  errors.emplace_back("next, closed", co_await error_of_both(close, ended.next()));
  auto set = [&] { e.set(); };
  errors.emplace_back("event", co_await error_of_both(set, e.wait()));
  auto count = [&] { l.count_down(); };
  errors.emplace_back("latch", co_await error_of_both(count, l.wait()));
  auto send = [&] { EXPECT_TRUE(o.send(1)); };
  errors.emplace_back("oneshot", co_await error_of_both(send, o.receive()));
  auto unlock = [&] { held.unlock(); };
  errors.emplace_back("mutex", co_await error_of_both(unlock, m.lock()));
  for (auto& [name, error] : errors) EXPECT_TRUE(error == nullptr) << name << what_of(error);
  EXPECT_FALSE(m.locked());
  EXPECT_EQ(drain(emptied), numbers{2});
}
