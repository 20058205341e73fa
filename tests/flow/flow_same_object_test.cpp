// SPDX-License-Identifier: MIT
// Several parts of one composite wait on the same object: "all(q.push(1), q.next()) on one object
// completes". What one part does to the object is seen by the others, whichever comes first.
#include <tuple>
#include <variant>

#include "flow_support.hpp"
#include "stream_support.hpp"

using namespace weir_test;
using int_queue = weir::queue<int>;

namespace {

constexpr std::int64_t small_capacities[] = {0, 1, 2};

/// `program(queue)` in many orders, for each capacity; whatever it pushed it must have taken.
template <class F>
void for_each_queue(F program) {
  for (const std::int64_t capacity : small_capacities) {
    SCOPED_TRACE("capacity " + std::to_string(capacity));
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        int_queue q(capacity);
        co_await program(q);
        EXPECT_EQ(q.size(), 0U);
      });
    });
  }
}

}  // namespace

TEST(same_object, a_push_and_a_next_meet_in_one_queue) {
  for_each_queue([](int_queue& q) -> task<> {
    auto got = co_await weir::all(q.push(1), q.next());
    EXPECT_EQ(std::get<1>(got), 1);
  });
}

TEST(same_object, a_next_and_a_push_meet_in_one_queue) {
  for_each_queue([](int_queue& q) -> task<> {
    auto got = co_await weir::all(q.next(), q.push(1));
    EXPECT_EQ(std::get<0>(got), 1);
  });
}

TEST(same_object, several_of_both_meet_in_one_queue) {
  for_each_queue([](int_queue& q) -> task<> {
    auto a = co_await weir::all(q.push(1), q.push(2), q.push(3), q.next(), q.next(), q.next());
    EXPECT_EQ(std::get<3>(a), 1);
    EXPECT_EQ(std::get<4>(a), 2);
    EXPECT_EQ(std::get<5>(a), 3);
    auto b = co_await weir::all(q.next(), q.push(4), q.next(), q.push(5), q.push(6), q.next());
    const numbers seen{*std::get<0>(b), *std::get<2>(b), *std::get<5>(b)};
    EXPECT_EQ(sorted(seen), (numbers{4, 5, 6}));  // which of them is asked first is open
  });
}

TEST(same_object, composites_inside_composites_meet_in_one_queue) {
  for_each_queue([](int_queue& q) -> task<> {
    auto a = co_await weir::all(weir::with_timeout(1s, q.push(1)),
                                weir::race(q.next(), weir::never<int>().next()));
    EXPECT_EQ(std::get<1>(a), 1);
    auto b = co_await weir::all(weir::with_timeout(1s, q.next()), weir::any(q.push(2)));
    EXPECT_EQ(std::get<0>(b), 2);
  });
}

TEST(same_object, a_stream_and_a_push_meet_in_one_queue) {
  for_each_queue([](int_queue& q) -> task<> {
    auto items = q.stream();
    auto a = co_await weir::all(q.push(1), items.next());
    EXPECT_EQ(std::get<1>(a), 1);
    auto b = co_await weir::all(items.next(), q.push(2));
    EXPECT_EQ(std::get<0>(b), 2);
  });
}

// A race ends with one of them, and nothing is lost: pushed means taken, or still there.
// Alternatives do not meet each other, so that a rendezvous is no place for this.
TEST(same_object, a_race_of_push_and_next_loses_nothing) {
  for (const std::int64_t capacity : {1, 2}) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        int_queue q(capacity);
        auto a = co_await weir::race(q.push(1), q.next());
        numbers seen = drain(q);
        if (a.index() == 1) seen.push_back(*std::get<1>(a));
        EXPECT_EQ(seen, numbers{1});
        auto b = co_await weir::race(q.next(), q.push(2));
        numbers rest = drain(q);
        if (b.index() == 0) rest.push_back(*std::get<0>(b));
        EXPECT_EQ(rest, numbers{2});
      });
    });
  }
}

// "A cancelled next() or push() loses nothing": what met itself and was then cancelled stays.
TEST(same_object, a_cancelled_composite_that_met_itself_leaves_its_value_in_the_queue) {
  for (const std::int64_t capacity : small_capacities) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        int_queue q(capacity);
        auto out = co_await weir::settle(
            weir::with_timeout(1ms, weir::all(q.push(1), q.next(), weir::sleep(1h))));
        EXPECT_TRUE(out.is_error());
        EXPECT_EQ(drain(q), numbers{1});
        EXPECT_EQ(q.try_push(2) == weir::errc::queue_full, capacity == 0);
      });
    });
  }
}

namespace {

weir::stream<int> meets_itself(int_queue& q, weir::event& go) {
  auto got = co_await weir::all(q.push(1), q.next(), go.wait());
  co_yield std::get<1>(got).value();
}

}  // namespace

// A paused generator starts its waits again; those that are done stay done.
TEST(same_object, a_paused_composite_that_met_itself_pushes_once) {
  for_each_queue([](int_queue& q) -> task<> {
    weir::event go;
    auto items = meets_itself(q, go);
    auto none = co_await items.next_for(1ms);
    EXPECT_TRUE(none.timed_out());
    go.set();
    auto one = co_await items.next();
    EXPECT_EQ(one, 1);
    auto end = co_await items.next();
    EXPECT_FALSE(end);
  });
}

TEST(same_object, closing_is_seen_by_parts_that_were_asked_before) {
  for_each_queue([](int_queue& q) -> task<> {
    auto close = [&]() -> task<> {
      q.close();
      co_return;
    };
    auto got = co_await weir::all(q.next(), close);
    EXPECT_FALSE(std::get<0>(got));
  });
}

// ------------------------------------------------------------------ broadcast

TEST(same_object, an_emit_and_a_next_meet_in_one_broadcast) {
  for (const std::int64_t capacity : {1, 2}) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        weir::broadcast<int> b(capacity);
        auto sub = b.subscribe();
        auto first = co_await weir::all(sub.next(), b.emit(4));
        EXPECT_EQ(std::get<0>(first), 4);
        auto second = co_await weir::all(b.emit(5), sub.next());
        EXPECT_EQ(std::get<1>(second), 5);
      });
    });
  }
}

// The place of an item that a part of the composite has is free for the other parts.
FIBER_TEST_IN_EVERY_ORDER(same_object,
                          emits_that_need_the_room_of_a_next_meet_it_in_one_broadcast) {
  weir::broadcast<int> b(1);
  auto sub = b.subscribe();
  auto first = co_await weir::all(sub.next(), b.emit(1), b.emit(2));
  EXPECT_EQ(std::get<0>(first), 1);
  auto second = co_await weir::all(b.emit(3), sub.next());
  EXPECT_EQ(std::get<1>(second), 2);
  auto third = co_await sub.next();
  EXPECT_EQ(third, 3);
}

// What it took and did not give comes back: the next one sees it, in its place.
FIBER_TEST_IN_EVERY_ORDER(same_object, a_cancelled_next_of_a_broadcast_gives_its_item_back) {
  weir::broadcast<int> b(1);
  auto sub = b.subscribe();
  auto out = co_await weir::settle(
      weir::with_timeout(1ms, weir::all(sub.next(), b.emit(1), b.emit(2), weir::sleep(1h))));
  EXPECT_TRUE(out.is_error());
  numbers seen;
  b.close();
  co_await take_all(sub, seen);
  EXPECT_EQ(seen, (numbers{1, 2}));
  EXPECT_EQ(sub.missed_total(), 0U);
}

FIBER_TEST_IN_EVERY_ORDER(same_object, two_nexts_of_one_subscription_are_one_too_many) {
  weir::broadcast<int> b(2);
  auto sub = b.subscribe();
  auto code = co_await code_after([&] { return weir::all(sub.next(), sub.next()); });
  EXPECT_EQ(code, weir::errc::stream_busy);
  EXPECT_EQ(b.try_emit(1), weir::emit_result::delivered);
  auto next = co_await sub.next();
  EXPECT_EQ(next, 1);
}

// ------------------------------------------------------------------ channel, oneshot, mutex, ...

FIBER_TEST_IN_EVERY_ORDER(same_object, a_send_and_a_next_meet_in_one_channel) {
  auto [tx, rx] = weir::channel<int>(1);
  auto a = co_await weir::all(tx.send(1), rx.next());
  EXPECT_EQ(std::get<1>(a), 1);
  auto b = co_await weir::all(rx.next(), tx.send(2));
  EXPECT_EQ(std::get<0>(b), 2);
  auto c = co_await weir::all(tx.send(3), tx.send(4), rx.next(), rx.next());
  EXPECT_EQ(std::get<2>(c), 3);
  EXPECT_EQ(std::get<3>(c), 4);
  auto d = co_await weir::all(rx.next(), rx.next(), tx.send(5), tx.send(6));
  EXPECT_EQ(std::get<0>(d), 5);
  EXPECT_EQ(std::get<1>(d), 6);
}

FIBER_TEST_IN_EVERY_ORDER(same_object, a_receive_sees_what_another_part_sends) {
  weir::oneshot<int> o;
  weir::event e;
  weir::latch l(1);
  auto act = [&]() -> task<> {
    o.send(7);
    e.set();
    l.count_down();
    co_return;
  };
  auto got = co_await weir::all(o.receive(), e.wait(), l.wait(), act);
  EXPECT_EQ(std::get<0>(got), 7);
}

FIBER_TEST_IN_EVERY_ORDER(same_object, a_race_of_two_locks_takes_the_mutex_once) {
  weir::mutex m;
  weir::counting_governor g(1);
  {
    auto held = co_await weir::race(m.lock(), m.lock());
    EXPECT_TRUE(m.locked());
    auto permit = co_await weir::race(g.acquire(), g.acquire());
    EXPECT_EQ(g.available(), 0);
  }
  EXPECT_FALSE(m.locked());
  EXPECT_EQ(g.available(), 1);
  auto both =
      co_await code_after([&] { return weir::with_timeout(1ms, weir::all(m.lock(), m.lock())); });
  EXPECT_EQ(both, weir::errc::timeout);
  EXPECT_FALSE(m.locked());
}

// The move of a value that throws when a part is asked again ends the whole with that error.
TEST(same_object, a_move_that_throws_in_a_part_ends_the_composite_with_its_error) {
  for (int fuse = 1; fuse < 12; ++fuse) {
    in_order([&]() -> task<> {
      weir::queue<brittle> q(0);
      auto meet = [&]() -> task<> {
        brittle value(3);
        brittle::fuse = fuse;
        (void)co_await weir::all(q.next(), q.push(value));
      };
      auto out = co_await weir::settle(meet);
      brittle::fuse = 0;
      EXPECT_FALSE(out.is_cancelled());
      EXPECT_TRUE(out.is_value() || boom_of(out.error()) == 3);
    });
  }
}

// Starting a part may run a function of the user, who may do anything: what is armed later sees it.
FIBER_TEST_IN_EVERY_ORDER(same_object,
                          what_the_start_of_a_part_does_is_seen_by_those_armed_after_it) {
  weir::event e;
  int_queue q(1), closed(1);
  weir::broadcast<int> b(1), ended(1);
  auto sub = b.subscribe();
  auto over = ended.subscribe();
  std::optional<weir::resumer<int>> kept;
  auto start = [&](weir::resumer<int> r) {
    kept = r;
    e.set();
    (void)q.try_push(1);
    if (!closed.closed()) closed.close();
    (void)b.try_emit(2);
    ended.close();
    return [] { return weir::cancel_result::done; };
  };
  auto a = co_await weir::race(weir::suspend<int>(start), e.wait());
  EXPECT_EQ(a.index(), 1U);
  e.reset();
  auto first = q.try_next();
  EXPECT_EQ(first, 1);
  auto c = co_await weir::race(weir::suspend<int>(start), q.next());
  EXPECT_EQ(std::get<1>(c), 1);
  auto d = co_await weir::race(weir::suspend<int>(start), sub.next());
  EXPECT_EQ(std::get<1>(d), 2);
  auto f = co_await weir::race(weir::suspend<int>(start), over.next());
  EXPECT_EQ(std::get<1>(f), std::nullopt);
  kept.reset();
}
