// SPDX-License-Identifier: MIT
// channel between simulated loops: capacity, order, every way to end, cancellation on both sides,
// crashes, and values whose moves throw.
#include <memory>

#include "flow_support.hpp"

using namespace weir_test;
using int_sender = weir::sender<int>;
using int_receiver = weir::receiver<int>;

namespace {

task<> send_one(int_sender tx, int value, numbers& sent) {
  co_await tx.send(value);
  sent.push_back(value);
}

}  // namespace

TEST(channel, holds_exactly_its_capacity_also_if_that_is_no_power_of_two) {
  for (int capacity : {1, 2, 3, 5, 8, 13}) {
    in_order([&]() -> task<> {
      auto [tx, rx] = weir::channel<int>(capacity);
      for (int round = 0; round < 5; ++round) {
        for (int i = 1; i <= capacity; ++i) EXPECT_EQ(tx.try_send(i), no_error);
        EXPECT_EQ(tx.try_send(99), errc::queue_full);
        EXPECT_EQ(rx.try_next(), 1);
        EXPECT_EQ(tx.try_send(capacity + 1), no_error);
        EXPECT_EQ(tx.try_send(99), errc::queue_full);
        EXPECT_EQ(drain(rx), from_to(2, capacity + 1));
      }
      co_return;
    });
  }
}

FIBER_TEST(channel, a_value_is_moved_from_only_when_it_is_accepted) {
  auto [tx, rx] = weir::channel<std::unique_ptr<int>>(1);
  auto one = std::make_unique<int>(1);
  auto two = std::make_unique<int>(2);
  EXPECT_EQ(tx.try_send(std::move(one)), no_error);
  EXPECT_EQ(one, nullptr);
  EXPECT_EQ(tx.try_send(std::move(two)), errc::queue_full);
  EXPECT_NE(two, nullptr);
  tx.close();
  EXPECT_EQ(tx.try_send(std::move(two)), errc::queue_closed);
  EXPECT_NE(two, nullptr);
  auto got = co_await rx.next();
  EXPECT_EQ(**got, 1);
}

FIBER_TEST_IN_EVERY_ORDER(channel,
                          values_of_senders_on_three_loops_arrive_once_and_in_order_per_sender) {
  auto [tx, rx] = weir::channel<int>(2);
  numbers got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("a"), send_all(tx, 101, 106));
    s.spawn_on(w.loop("b"), send_all(tx, 201, 206));
    s.spawn(send_all(std::move(tx), 301, 306));
    co_await take_all(rx, got);
    co_await s.join();
  });
  EXPECT_EQ(got.size(), 18U);
  for (int who = 1; who <= 3; ++who) {
    numbers of_one;
    for (int v : got)
      if (v / 100 == who) of_one.push_back(v);
    EXPECT_EQ(of_one, from_to(who * 100 + 1, who * 100 + 6));
  }
}

FIBER_TEST_IN_EVERY_ORDER(channel, senders_that_wait_are_served_in_the_order_of_their_arrival) {
  auto [tx, rx] = weir::channel<int>(1);
  numbers sent, got;
  EXPECT_EQ(tx.try_send(1), no_error);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 2; i <= 5; ++i) {
      s.spawn_on(w.loop(i % 2 == 0 ? "a" : "b"), send_one(tx, i, sent));
      co_await settled();
    }
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(tx.try_send(99), errc::queue_full);  // no newcomer overtakes who waits
    got.push_back(co_await take_one(rx));
    EXPECT_EQ(tx.try_send(99), errc::queue_full);
    for (int i = 2; i <= 5; ++i) got.push_back(co_await take_one(rx));
    co_await s.join();
  });
  EXPECT_EQ(got, from_to(1, 5));
  EXPECT_EQ(sorted(sent), from_to(2, 5));
}

FIBER_TEST_IN_EVERY_ORDER(channel, consumers_that_wait_are_served_in_the_order_of_their_arrival) {
  auto [tx, rx] = weir::channel<int>(3);
  numbers got(3);
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    auto consumer = [&](unsigned i) -> task<> { got[i] = co_await take_one(from); };
    for (unsigned i = 0; i < 3; ++i) {
      s.spawn(consumer(i));
      co_await settled();
    }
    s.spawn_on(w.loop("a"), send_all(tx, 1, 3));
    co_await s.join();
  });
  EXPECT_EQ(got, from_to(1, 3));
}

FIBER_TEST_IN_EVERY_ORDER(channel, no_newcomer_takes_the_value_of_a_consumer_that_waits) {
  auto [tx, rx] = weir::channel<int>(1);
  numbers got;
  bool sent = false;
  auto sends = [&sent, mine = std::move(tx)]() mutable -> task<> {
    EXPECT_EQ(mine.try_send(1), no_error);
    sent = true;
    co_return;
  };
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    s.spawn(take_into(from, got));
    co_await settled();
    s.spawn_on(w.loop("a"), std::move(sends));
    while (!sent) co_await weir::yield();
    EXPECT_EQ(from.try_next(), std::nullopt);  // the message to the loop may be on its way
    co_await s.join();
  });
  EXPECT_EQ(got, numbers{1});
}

FIBER_TEST_IN_EVERY_ORDER(channel, ends_when_its_last_sender_is_gone_after_what_is_buffered) {
  auto [tx, rx] = weir::channel<int>(4);
  numbers got;
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    auto consumer = s.spawn(take_all(from, got));
    s.spawn_on(w.loop("a"), send_all(tx, 1, 2));
    co_await settled();
    EXPECT_FALSE(consumer.done());  // tx is still there
    EXPECT_EQ(tx.try_send(3), no_error);
    tx = int_sender();
    co_await consumer;
  });
  EXPECT_EQ(got, from_to(1, 3));
}

FIBER_TEST(channel, a_moved_from_sender_does_not_count_and_sends_nothing) {
  auto [tx, rx] = weir::channel<int>(4);
  int_sender second = std::move(tx);
  EXPECT_EQ(tx.try_send(1), errc::queue_closed);
  EXPECT_EQ(co_await code_of_send(std::move(tx), 1), errc::queue_closed);
  tx.close();  // nothing
  EXPECT_EQ(second.try_send(2), no_error);
  int_sender third = second;
  second = std::move(third);
  EXPECT_EQ(second.try_send(3), no_error);
  second = int_sender();
  EXPECT_EQ(co_await take_one(rx), 2);
  EXPECT_EQ(co_await take_one(rx), 3);
  EXPECT_EQ(co_await take_one(rx), -1);
  EXPECT_EQ(co_await take_one(rx), -1);
}

FIBER_TEST_IN_EVERY_ORDER(channel,
                          close_of_one_sender_closes_for_all_and_what_is_buffered_arrives) {
  auto [tx, rx] = weir::channel<int>(2);
  co_await send_all(tx, 1, 2);
  co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
    auto parked = s.spawn_on(w.loop("a"), code_of_send(to, 3));
    auto beside = s.spawn(code_of_send(to, 4));
    co_await settled();
    auto closing = [copy = to]() mutable -> task<> {
      copy.close();
      co_return;
    };
    co_await s.spawn_on(w.loop("b"), closing);
    const std::error_code there = co_await parked;
    const std::error_code here = co_await beside;
    EXPECT_EQ(there, errc::queue_closed);
    EXPECT_EQ(here, errc::queue_closed);
    EXPECT_EQ(to.try_send(5), errc::queue_closed);
    EXPECT_EQ(drain(from), from_to(1, 2));
    EXPECT_EQ(co_await take_one(from), -1);
  });
}

FIBER_TEST_IN_EVERY_ORDER(channel,
                          close_of_the_receiver_refuses_senders_and_gives_what_is_buffered) {
  auto [tx, rx] = weir::channel<int>(1);
  EXPECT_EQ(tx.try_send(1), no_error);
  co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
    auto parked = s.spawn_on(w.loop("a"), code_of_send(to, 2));
    co_await settled();
    from.close();
    const std::error_code code = co_await parked;
    EXPECT_EQ(code, errc::queue_closed);
    EXPECT_EQ(to.try_send(3), errc::queue_closed);
    EXPECT_EQ(co_await take_one(from), 1);
    EXPECT_EQ(co_await take_one(from), -1);
  });
}

FIBER_TEST_IN_EVERY_ORDER(channel, close_of_the_receiver_ends_its_own_consumers) {
  auto [tx, rx] = weir::channel<int>(1);
  numbers got;
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    for (int i = 0; i < 2; ++i) s.spawn(take_into(from, got));
    co_await settled();
    from.close();
    co_await s.join();
  });
  EXPECT_EQ(got, numbers(2, -1));
  EXPECT_EQ(tx.try_send(1), errc::queue_closed);
}

FIBER_TEST_IN_EVERY_ORDER(channel, closing_ends_every_consumer_that_waits) {
  auto [tx, rx] = weir::channel<int>(1);
  numbers got;
  co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
    for (int i = 0; i < 3; ++i) s.spawn(take_into(from, got));
    auto dropping = [mine = std::move(to)]() mutable -> task<> {
      mine = int_sender();
      co_return;
    };
    co_await weir::yield();
    co_await s.spawn_on(w.loop("a"), std::move(dropping));
    co_await s.join();
  });
  EXPECT_EQ(got, numbers(3, -1));
}

FIBER_TEST_IN_EVERY_ORDER(channel,
                          without_its_receiver_senders_are_refused_and_what_is_left_is_destroyed) {
  int alive = 0;
  auto [tx, rx] = weir::channel<counted_value>(2);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(tx.try_send(counted_value(i, alive)), no_error);
  co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
    std::vector<weir::child<std::error_code>> parked;
    auto sends = [&]() -> task<std::error_code> {
      auto copy = to;
      auto make = [&] { return copy.send(counted_value(3, alive)); };
      co_return co_await code_after(make);
    };
    for (int i = 0; i < 3; ++i) parked.push_back(s.spawn_on(w.loop(i == 0 ? "a" : "b"), sends));
    co_await settled();
    EXPECT_EQ(alive, 5);
    from = weir::receiver<counted_value>();
    for (auto& p : parked) {
      const std::error_code code = co_await p;
      EXPECT_EQ(code, errc::queue_closed);
    }
  });
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(tx.try_send(counted_value(9, alive)), errc::queue_closed);
  EXPECT_TRUE(tx.closed());
}

FIBER_TEST(channel, the_receiver_may_be_moved_and_goes_on) {
  auto [tx, rx] = weir::channel<int>(4);
  co_await send_all(tx, 1, 2);
  int_receiver other = std::move(rx);
  EXPECT_EQ(co_await take_one(other), 1);
  rx = std::move(other);
  EXPECT_EQ(co_await take_one(rx), 2);
}

FIBER_TEST_IN_EVERY_ORDER(channel,
                          a_cancelled_send_delivers_its_value_or_not_and_nothing_else_is_lost) {
  auto [tx, rx] = weir::channel<int>(1);
  numbers sent, got;
  EXPECT_EQ(tx.try_send(1), no_error);
  co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
    auto leaves = s.spawn_on(w.loop("a"), send_one(to, 2, sent));
    s.spawn_on(w.loop("a"), send_one(to, 3, sent));
    s.spawn_on(w.loop("b"), send_one(to, 4, sent));
    for (int i = 0; i < 3; ++i) co_await weir::yield();
    got.push_back(co_await take_one(from));
    leaves.cancel();
    co_await settled();
    to = int_sender();
    co_await take_all(from, got);
    co_await s.idle();
  });
  sent.push_back(1);
  EXPECT_EQ(sorted(got), sorted(sent));
  EXPECT_GE(got.size(), 3U);
}

FIBER_TEST_IN_EVERY_ORDER(channel,
                          a_cancelled_send_that_waits_leaves_at_once_and_its_value_is_destroyed) {
  int alive = 0;
  auto [tx, rx] = weir::channel<counted_value>(1);
  EXPECT_EQ(tx.try_send(counted_value(1, alive)), no_error);
  co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
    auto sends = [&]() -> task<> {
      auto copy = to;
      co_await copy.send(counted_value(2, alive));
    };
    auto leaves = s.spawn_on(w.loop("a"), sends);
    co_await settled();
    EXPECT_EQ(alive, 2);
    leaves.cancel();
    co_await settled();
    EXPECT_TRUE(leaves.done());
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(from.try_next()->n, 1);
    EXPECT_FALSE(from.try_next().has_value());
    EXPECT_EQ(to.try_send(counted_value(3, alive)), no_error);
  });
}

FIBER_TEST_IN_EVERY_ORDER(channel, a_cancelled_next_takes_nothing_with_it) {
  auto [tx, rx] = weir::channel<int>(4);
  numbers got;
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    auto first = s.spawn(take_into(from, got));
    auto second = s.spawn(take_into(from, got));
    s.spawn_on(w.loop("a"), send_all(std::move(tx), 1, 3));
    for (int i = 0; i < 4; ++i) co_await weir::yield();
    first.cancel();
    second.cancel();
    co_await weir::settle(first);
    co_await weir::settle(second);
    co_await take_all(from, got);
    co_await s.join();
  });
  EXPECT_EQ(sorted(got), from_to(1, 3));
}

FIBER_TEST_IN_EVERY_ORDER(
    channel, a_receiver_that_nobody_feeds_any_more_is_no_deadlock_while_a_sender_is_elsewhere) {
  auto [tx, rx] = weir::channel<int>(1);
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    auto late = [mine = std::move(tx)]() mutable -> task<> {
      co_await weir::sleep(1h);
      co_await mine.send(5);
    };
    s.spawn_on(w.loop("a"), std::move(late));
    EXPECT_EQ(co_await take_one(from), 5);
    EXPECT_EQ(co_await take_one(from), -1);
  });
}

TEST(channel, a_send_nobody_will_ever_receive_is_a_deadlock_in_simulation) {
  auto error = thrown_by([] {
    in_order([]() -> task<> {
      auto [tx, rx] = weir::channel<int>(1, {.name = "orders"});
      co_await send_all(tx, 1, 2);
    });
  });
  EXPECT_EQ(code_of(error), errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "orders")) << what_of(error);
}
