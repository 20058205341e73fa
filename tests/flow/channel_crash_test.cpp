// SPDX-License-Identifier: MIT
// channel when one side crashes, or when a value cannot be moved.
#include <memory>
#include <optional>

#include "flow_support.hpp"

using namespace weir_test;
using int_sender = weir::sender<int>;
using int_receiver = weir::receiver<int>;

namespace {

/// A receiver that lives and dies on another loop, and which of its values it has seen.
struct remote_receiver {
  std::optional<int_sender> tx;
  numbers got;

  task<> live(std::int64_t capacity, int takes) {
    auto [to, from] = weir::channel<int>(capacity);
    tx = std::move(to);
    for (int i = 0; i < takes; ++i) {
      int v = co_await take_one(from);
      got.push_back(v);
    }
    co_await weir::sleep(1000h);
  }
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(channel_crash, senders_of_a_crashed_loop_are_gone_and_the_others_go_on) {
  auto [tx, rx] = weir::channel<int>(1);
  numbers got;
  co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
    auto lost = s.spawn(weir::settle(weir::on(w.loop("a"), send_all(to, 101, 120))));
    for (int i = 0; i < 3; ++i) got.push_back(co_await take_one(from));
    w.crash("a");
    s.spawn_on(w.loop("b"), send_all(std::move(to), 201, 203));
    co_await take_all(from, got);
    co_await s.join();
  });
  numbers from_a, from_b;
  for (int v : got) (v < 200 ? from_a : from_b).push_back(v);
  EXPECT_EQ(from_a, from_to(101, 100 + static_cast<int>(from_a.size())));
  EXPECT_GE(from_a.size(), 3U);
  EXPECT_LE(from_a.size(), 5U);  // one in the ring, one that waited
  EXPECT_EQ(from_b, from_to(201, 203));
}

FIBER_TEST_IN_EVERY_ORDER(channel_crash, of_the_loop_with_the_last_sender_ends_the_channel) {
  auto [tx, rx] = weir::channel<int>(4);
  numbers got;
  auto sends = [mine = std::move(tx)]() mutable -> task<> {
    co_await mine.send(1);
    co_await weir::sleep(1000h);
  };
  co_await weir::with_scope([&, &from = rx](weir::scope& s) -> task<> {
    s.spawn(weir::settle(weir::on(w.loop("a"), std::move(sends))));
    auto consumer = s.spawn(take_all(from, got));
    co_await settled();
    EXPECT_FALSE(consumer.done());
    w.crash("a");
    co_await s.join();
  });
  EXPECT_EQ(got, numbers{1});
}

FIBER_TEST_IN_EVERY_ORDER(channel_crash, of_the_receivers_loop_refuses_every_sender) {
  remote_receiver there;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(weir::settle(weir::on(w.loop("a"), there.live(1, 2))));
    co_await settled();
    co_await send_all(*there.tx, 1, 3);
    auto here = s.spawn(code_of_send(*there.tx, 4));
    auto beside = s.spawn_on(w.loop("b"), code_of_send(*there.tx, 5));
    co_await settled();
    EXPECT_FALSE(here.done() || beside.done());
    w.crash("a");
    const std::error_code first = co_await here;
    const std::error_code second = co_await beside;
    EXPECT_EQ(first, errc::queue_closed);
    EXPECT_EQ(second, errc::queue_closed);
    EXPECT_EQ(there.tx->try_send(6), errc::queue_closed);
    EXPECT_EQ(co_await code_of_send(*there.tx, 7), errc::queue_closed);
  });
  EXPECT_EQ(there.got, from_to(1, 2));
}

FIBER_TEST_IN_EVERY_ORDER(channel_crash, of_the_receivers_loop_at_any_moment_lets_every_send_end) {
  remote_receiver there;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(weir::settle(weir::on(w.loop("a"), there.live(1, 100))));
    co_await settled();
    std::vector<weir::child<std::error_code>> sends;
    for (int i = 0; i < 3; ++i) sends.push_back(s.spawn(code_of_send(*there.tx, i)));
    for (int i = 0; i < 3; ++i)
      sends.push_back(s.spawn_on(w.loop("b"), code_of_send(*there.tx, i)));
    for (int i = 0; i < 4; ++i) co_await weir::yield();
    w.crash("a");
    for (auto& one : sends) {
      const std::error_code code = co_await one;
      EXPECT_TRUE(code == no_error || code == errc::queue_closed) << code.message();
    }
    EXPECT_EQ(there.tx->try_send(6), errc::queue_closed);
  });
}

TEST(channel_crash, of_both_sides_leaves_nothing_behind) {
  int alive = 0;
  for_each_order([&](weir::sim::world& w) {
    w.run([&]() -> task<> {
      std::optional<weir::sender<counted_value>> tx;
      auto receives = [&]() -> task<> {
        auto [to, from] = weir::channel<counted_value>(2);
        tx = std::move(to);
        for (;;) {
          co_await weir::sleep(3ms);
          (void)co_await from.next();
        }
      };
      auto sends = [&]() -> task<> {
        auto mine = std::move(*tx);
        for (int i = 0;; ++i) co_await mine.send(counted_value(i, alive));
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(weir::settle(weir::on(w.loop("a"), receives)));
        co_await settled();
        s.spawn(weir::settle(weir::on(w.loop("b"), sends)));
        co_await weir::sleep(10ms);
        EXPECT_GE(alive, 3);
        const bool receiver_first = weir::random() % 2 == 0;
        w.crash(receiver_first ? "a" : "b");
        for (auto i = weir::random() % 3; i > 0; --i) co_await weir::yield();
        w.crash(receiver_first ? "b" : "a");
        co_await s.join();
      });
    });
    EXPECT_EQ(alive, 0);
  });
}

TEST(flow_crash, of_a_loop_with_fibers_parked_on_everything_aborts_nothing) {
  for_each_order([](weir::sim::world& w) {
    int alive = 0;
    w.run([&]() -> task<> {
      auto everything = [&](weir::scope& s) -> task<> {
        weir::queue<counted_value> empty(1), full(1), never(1);
        weir::event e;
        weir::latch l(1);
        weir::mutex m, n;
        weir::oneshot<int> o;
        EXPECT_EQ(full.try_push(counted_value(1, alive)), no_error);
        weir::mutex_guard held = co_await m.lock();
        s.spawn([&]() -> task<> { (void)co_await empty.next(); });
        s.spawn([&]() -> task<> { co_await full.push(counted_value(2, alive)); });
        s.spawn([&]() -> task<> { co_await e.wait(); });
        s.spawn([&]() -> task<> { co_await l.wait(); });
        s.spawn([&]() -> task<> { (void)co_await o.receive(); });
        s.spawn([&]() -> task<> { auto own = co_await m.lock(); });
        s.spawn([&]() -> task<> { (void)co_await weir::all(n.lock(), m.lock()); });
        co_await weir::sleep(1ms);
        s.spawn([&]() -> task<> { (void)co_await weir::all(full.next(), never.next()); });
        co_await weir::sleep(1000h);
      };
      auto there = [&]() -> task<> { co_await weir::with_scope(everything); };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(weir::settle(weir::on(w.loop("a"), there)));
        co_await weir::sleep(3ms);
        EXPECT_EQ(alive, 2);
        w.crash("a");
        co_await s.join();
      });
    });
    EXPECT_EQ(alive, 0);
  });
}

// ------------------------------------------------------------------ moves that throw

namespace {

/// Two senders on another loop, then the receiver, while the fuse burns; the second one has to
/// wait if the capacity is 1.
task<> send_brittle_values(weir::loop_ref there, std::int64_t capacity, int fuse) {
  auto [tx, rx] = weir::channel<brittle>(capacity);
  int told = 0;
  numbers sent, got;
  auto sends = [&, &to = tx](int n) -> task<> {
    auto copy = to;
    auto make = [&] { return copy.send(brittle(n)); };
    const std::exception_ptr error = co_await attempt(make);
    if (error == nullptr) sent.push_back(n);
    told += boom_of(error) > 0 ? 1 : 0;
  };
  auto receives = [&, &from = rx]() -> task<> {
    for (;;) {
      try {
        auto v = co_await from.next();
        if (!v) co_return;
        got.push_back(v->n);
      } catch (const boom&) {
        ++told;
      }
    }
  };
  co_await weir::with_scope([&, &to = tx](weir::scope& s) -> task<> {
    brittle::fuse = fuse;
    for (int n = 1; n <= 2; ++n) {
      s.spawn_on(there, sends(n));
      co_await settled();
    }
    s.spawn(receives());
    co_await settled();
    EXPECT_EQ(told, brittle::fuse == 0 ? 1 : 0);
    brittle::fuse = 0;
    s.spawn_on(there, sends(3));
    co_await settled();
    to = weir::sender<brittle>();
    co_await s.join();
  });
  EXPECT_EQ(got, sent);
  EXPECT_GE(got.size(), 2U);
}

}  // namespace

TEST(channel, whichever_move_of_a_value_throws_somebody_is_told_and_the_channel_goes_on) {
  for (std::int64_t capacity : {1, 4}) {
    for (int fuse = 1; fuse < 20; ++fuse) {
      SCOPED_TRACE("capacity " + std::to_string(capacity) + ", move " + std::to_string(fuse));
      weir::sim::world w;
      w.run([&]() -> task<> { co_await send_brittle_values(w.loop("a"), capacity, fuse); });
    }
  }
}

FIBER_TEST(channel, a_try_send_whose_move_throws_takes_no_room_for_ever) {
  auto [tx, rx] = weir::channel<brittle>(2);
  for (int round = 0; round < 10; ++round) {
    brittle first(1), second(2), third(3);
    EXPECT_EQ(tx.try_send(std::move(first)), no_error);
    brittle::fuse = 1;
    EXPECT_EQ(boom_of(thrown_by([&, &to = tx] { return to.try_send(std::move(second)); })), 2);
    brittle::fuse = 0;
    auto one = co_await rx.next();
    EXPECT_EQ(one->n, 1);
    EXPECT_FALSE(rx.try_next().has_value());
    EXPECT_EQ(tx.try_send(std::move(third)), no_error);
    auto other = co_await rx.next();
    EXPECT_EQ(other->n, 3);
  }
}
