// SPDX-License-Identifier: MIT
// broadcast in every order: emitters are served in turn, and a cancelled one loses no item of
// the others.
#include <memory>
#include <optional>

#include "flow_support.hpp"

using namespace weir_test;
using int_broadcast = weir::broadcast<int>;
using subscription = weir::subscription<int>;
using weir::overflow;

namespace {

task<> emit_range(int_broadcast& b, int first, int last) {
  for (int i = first; i <= last; ++i) co_await b.emit(i);
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(broadcast_order, emitters_are_served_in_the_order_of_their_arrival) {
  int_broadcast b(1);
  auto sub = b.subscribe();
  numbers accepted;
  numbers got;
  EXPECT_EQ(b.try_emit(1), weir::emit_result::delivered);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 2; i <= 4; ++i) {
      s.spawn(emit_one(b, i, accepted));
      co_await settled();
    }
    EXPECT_TRUE(accepted.empty());
    for (int i = 1; i <= 4; ++i) {
      got.push_back(co_await take_one(sub));
      // No newcomer overtakes who waits, and the room went to the first who waited.
      EXPECT_EQ(b.try_emit(99), i < 4 ? weir::emit_result::refused : weir::emit_result::delivered);
    }
  });
  EXPECT_EQ(got, from_to(1, 4));
  EXPECT_EQ(sorted(accepted), from_to(2, 4));
}

FIBER_TEST_IN_EVERY_ORDER(broadcast_order, two_emitters_and_three_subscribers_see_one_order) {
  int_broadcast b(2);
  std::vector<subscription> subs;
  std::vector<numbers> got(3);
  for (int i = 0; i < 3; ++i) subs.push_back(b.subscribe());
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (std::size_t i = 0; i < 3; ++i) s.spawn(take_all(subs[i], got[i]));
    auto one = s.spawn(emit_range(b, 1, 3));
    auto two = s.spawn(emit_range(b, 11, 13));
    co_await one;
    co_await two;
    b.close();
  });
  EXPECT_EQ(sorted(got[0]), (numbers{1, 2, 3, 11, 12, 13}));
  EXPECT_EQ(got[1], got[0]);
  EXPECT_EQ(got[2], got[0]);
}

FIBER_TEST_IN_EVERY_ORDER(broadcast_order, a_cancelled_next_loses_nothing) {
  int_broadcast b(2);
  auto sub = b.subscribe();
  numbers got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto emitting = s.spawn(emit_range(b, 1, 4));
    auto reader = s.spawn(take_all(sub, got));
    co_await weir::yield();
    reader.cancel();
    co_await weir::settle(std::move(reader));
    s.spawn(take_all(sub, got));
    co_await emitting;
    b.close();
  });
  EXPECT_EQ(got, from_to(1, 4));
  EXPECT_EQ(sub.missed_total(), 0U);
}

FIBER_TEST_IN_EVERY_ORDER(broadcast_order, a_next_that_loses_a_race_loses_nothing) {
  int_broadcast b(2);
  weir::event tick;
  auto sub = b.subscribe();
  numbers got;
  auto ticking = [&]() -> task<> {
    for (int i = 0; i < 6; ++i) {
      tick.set();
      co_await weir::yield();
    }
  };
  auto emitting = [&]() -> task<> {
    co_await emit_range(b, 1, 4);
    b.close();
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(ticking());
    s.spawn(emitting());
    for (;;) {
      auto won = co_await weir::race(sub.next(), tick.wait());
      tick.reset();
      if (won.index() == 1) continue;
      if (!std::get<0>(won)) break;
      got.push_back(*std::get<0>(won));
    }
  });
  EXPECT_EQ(got, from_to(1, 4));
}

FIBER_TEST_IN_EVERY_ORDER(broadcast_order, a_cancelled_emit_is_seen_by_everybody_or_by_nobody) {
  int_broadcast b(1);
  auto one = b.subscribe();
  auto two = b.subscribe();
  numbers first;
  numbers second;
  numbers accepted;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    co_await b.emit(1);
    auto leaving = s.spawn(emit_one(b, 2, accepted));
    auto staying = s.spawn(emit_one(b, 3, accepted));
    co_await settled();
    s.spawn(take_all(one, first));
    s.spawn(take_all(two, second));
    leaving.cancel();
    co_await staying;
    b.close();
  });
  EXPECT_EQ(first, second);
  EXPECT_EQ(counted_in(first, 1), 1);
  EXPECT_EQ(counted_in(first, 3), 1);
  EXPECT_LE(first.size(), 3U);
}

// Two fibers on one subscription would see each other's items go, which looks like the end.
FIBER_TEST_IN_EVERY_ORDER(broadcast_order,
                          a_second_next_of_a_subscription_is_refused_while_one_is_pending) {
  int_broadcast b(1);
  auto sub = b.subscribe();
  numbers got;
  auto read = [&]() -> task<std::error_code> {
    auto all = [&] { return take_all(sub, got); };
    const std::error_code code = co_await code_after(all);
    if (!code) {
      EXPECT_TRUE(b.closed()) << "a false end";
    }
    co_return code;
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto one = s.spawn(read());
    auto two = s.spawn(read());
    co_await emit_range(b, 1, 4);
    b.close();
    const std::error_code first = co_await one;
    const std::error_code second = co_await two;
    for (const std::error_code& code : {first, second})
      EXPECT_TRUE(!code || code == errc::stream_busy) << code.message();
  });
  EXPECT_EQ(sorted(got), from_to(1, 4));
}

FIBER_TEST(broadcast_order,
           a_refused_next_disturbs_nobody_and_the_place_is_free_after_a_cancelled_one) {
  int_broadcast b(2);
  auto sub = b.subscribe();
  numbers got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto first = s.spawn(take_into(sub, got));
    co_await settled();
    auto make = [&] { return sub.next(); };
    const std::error_code code = co_await code_after(make);
    EXPECT_EQ(code, errc::stream_busy);
    first.cancel();
    co_await settled();
    auto second = s.spawn(take_into(sub, got));
    co_await settled();
    EXPECT_EQ(b.try_emit(1), weir::emit_result::delivered);
    co_await second;
  });
  EXPECT_EQ(got, numbers{1});
}

FIBER_TEST_IN_EVERY_ORDER(broadcast_order,
                          a_subscriber_that_leaves_while_others_emit_disturbs_nobody) {
  int_broadcast b(1);
  auto stays = b.subscribe();
  numbers got;
  auto leaver = [&]() -> task<> {
    auto sub = b.subscribe();
    for (int i = 0; i < 2; ++i) {
      const int seen = co_await take_one(sub);
      EXPECT_NE(seen, 0);
    }
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(leaver());
    s.spawn(leaver());
    s.spawn(take_all(stays, got));
    co_await emit_range(b, 1, 6);
    b.close();
  });
  EXPECT_EQ(got, from_to(1, 6));
  EXPECT_EQ(b.subscribers(), 1U);
}

FIBER_TEST_IN_EVERY_ORDER(broadcast_order, a_crash_ends_waiting_readers_and_emitters_in_any_order) {
  auto life = []() -> task<> {
    int_broadcast b(1);
    numbers got;
    numbers accepted;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto sub = b.subscribe();
      auto other = b.subscribe();
      s.spawn(take_all(sub, got));
      s.spawn(emit_one(b, 1, accepted));
      s.spawn(emit_one(b, 2, accepted));
      co_await weir::sleep(1000h);
    });
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto lost = s.spawn(weir::settle(weir::on(w.loop("a"), life)));
    for (int i = 0; i < 6; ++i) co_await weir::yield();
    w.crash("a");
    co_await s.join();
  });
}

TEST(broadcast_order, destroying_a_subscription_under_a_pending_next_aborts) {
  for (bool woken : {false, true}) {
    EXPECT_DEATH(in_order([woken]() -> task<> {
                   int_broadcast b(1);
                   numbers got;
                   co_await weir::with_scope([&](weir::scope& s) -> task<> {
                     std::optional<subscription> sub(b.subscribe());
                     s.spawn(take_into(*sub, got));
                     co_await settled();
                     if (woken) (void)b.try_emit(1);
                     sub.reset();
                   });
                 }),
                 "subscription");
  }
}
