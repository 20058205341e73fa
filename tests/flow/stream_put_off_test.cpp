// SPDX-License-Identifier: MIT
// An await that begins when the turn is used up is put off: it is started when its fiber has its
// next turn. Promise: what an await throws reaches the code that awaits it; whether it was put off
// makes no difference.
#include "flow_support.hpp"

#include <weir/sim.hpp>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

/// Awaits what `make` gives with every move of a value failing in turn; every await of a random
/// order is put off.
template <class F>
void whichever_move_throws(F use) {
  in_every_order([&]() -> task<> {
    for (int fuse = 1; fuse <= 12; ++fuse) {
      brittle::fuse = fuse;
      int caught = 0;
      try {
        co_await use();
      } catch (const boom&) {
        ++caught;
      }
      EXPECT_EQ(caught, brittle::fuse == 0 ? 1 : 0) << "move " << fuse;
      brittle::fuse = 0;
    }
  });
}

}  // namespace

TEST(put_off, a_push_and_a_next_of_a_queue_throw_where_they_are_awaited) {
  whichever_move_throws([]() -> task<> {
    weir::queue<brittle> q(1);
    co_await q.push(brittle(1));
    (void)co_await q.next();
  });
}

TEST(put_off, a_send_and_a_next_of_a_channel_throw_where_they_are_awaited) {
  whichever_move_throws([]() -> task<> {
    auto [tx, rx] = weir::channel<brittle>(1);
    co_await tx.send(brittle(1));
    (void)co_await rx.next();
  });
}

// The second send finds no room; its value is moved to where it waits for that.
TEST(put_off, a_send_that_must_wait_throws_where_it_is_awaited) {
  whichever_move_throws([]() -> task<> {
    auto [tx, rx] = weir::channel<brittle>(1);
    co_await tx.send(brittle(1));
    (void)co_await weir::race(tx.send(brittle(2)), weir::sleep(1ms));
  });
}

TEST(put_off, an_emit_and_a_next_of_a_broadcast_throw_where_they_are_awaited) {
  whichever_move_throws([]() -> task<> {
    weir::broadcast<brittle> b(1);
    auto sub = b.subscribe();
    co_await b.emit(brittle(1));
    (void)co_await sub.next();
  });
}

TEST(put_off, a_composite_throws_where_it_is_awaited) {
  whichever_move_throws([]() -> task<> {
    weir::queue<brittle> q(2);
    co_await weir::with_timeout(1h, q.push(brittle(1)));
    (void)co_await weir::race(q.push(brittle(2)), weir::sleep(1h));
    (void)co_await weir::all(q.next(), weir::yield());
    (void)co_await weir::with_timeout(1h, q.next());
  });
}

// The wait of a generator that was paused is asked again by the next pull.
FIBER_TEST_IN_EVERY_ORDER(put_off, a_paused_generator_gets_the_error_of_its_wait) {
  weir::queue<brittle> q(1);
  int caught = 0;
  auto make = [&]() -> weir::stream<int> {
    try {
      auto v = co_await q.next();
      co_yield v->n;
    } catch (const boom&) {
      ++caught;
    }
  };
  auto s = make();
  (void)co_await error_of(weir::with_timeout(1ms, s.next()));
  co_await q.push(brittle(1));
  brittle::fuse = 1;
  EXPECT_EQ(co_await pull_one(s), -1);
  brittle::fuse = 0;
  EXPECT_EQ(caught, 1);
}

namespace {

/// As brittle, and counted.
struct counted_brittle {
  explicit counted_brittle(int n) : value(n) { ++alive; }
  counted_brittle(const counted_brittle& other) : value(other.value) { ++alive; }
  counted_brittle(counted_brittle&& other) : value(std::move(other.value)) { ++alive; }
  counted_brittle& operator=(const counted_brittle&) = default;
  counted_brittle& operator=(counted_brittle&&) = default;
  ~counted_brittle() { --alive; }
  brittle value;

  static inline int alive = 0;
};

}  // namespace

// A range of operations with values: one that cannot be made takes those before it along.
TEST(put_off, whichever_move_into_a_range_of_pushes_throws_nothing_is_left_over) {
  counted_brittle::alive = 0;
  for (int fuse = 1; fuse <= 30; ++fuse) {
    in_order([&]() -> task<> {
      weir::queue<counted_brittle> q(4);
      std::vector<decltype(q.push(counted_brittle(0)))> pushes;
      pushes.reserve(3);
      for (int n = 1; n <= 3; ++n) pushes.push_back(q.push(counted_brittle(n)));
      brittle::fuse = fuse;
      auto make = [&] { return weir::all(std::move(pushes)); };
      const std::exception_ptr error = co_await attempt(make);
      EXPECT_EQ(error != nullptr, brittle::fuse == 0);
      brittle::fuse = 0;
    });
    EXPECT_EQ(counted_brittle::alive, 0) << "move " << fuse;
  }
}
