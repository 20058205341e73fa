// SPDX-License-Identifier: MIT
// Parking on a queue, event, latch or mutex, being woken, cancelled or losing a race there,
// allocates nothing: counted, not timed.
#include <cstddef>

#include "flow_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace weir_test;

namespace {

constexpr int counted_turns = 200;

using test_support::allocations;
using test_support::armed;

/// The allocations of two fibers that run `here` and `there` side by side, each many times, from
/// the moment when both are warm. They must take turns.
template <class Here, class There>
long allocations_of_turns(Here here, There there) {
  long taken = -1;
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        for (int i = 0; i < 50 + counted_turns; ++i) co_await there();
      });
      for (int i = 0; i < 50; ++i) co_await here();
      allocations = 0;
      armed = true;
      for (int i = 0; i < counted_turns; ++i) co_await here();
      armed = false;
      taken = allocations;
      co_await s.join();
    });
  });
  return taken;
}

auto nothing() {
  return []() -> task<> { co_return; };
}

}  // namespace

TEST(flow_allocation, the_counter_counts) {
  auto asks = []() -> task<> {
    ::operator delete(::operator new(1));  // calls: a new expression may be optimised away
    co_return;
  };
  EXPECT_EQ(allocations_of_turns(asks, nothing()), counted_turns);
}

TEST(flow_allocation, parking_on_next_asks_for_nothing) {
  weir::queue<int> q(1);
  int parked = 0;
  auto take = [&]() -> task<> {
    parked += q.size() == 0 ? 1 : 0;
    (void)co_await q.next();
  };
  auto push = [&]() -> task<> {
    co_await weir::sleep(1ms);
    co_await q.push(1);
  };
  EXPECT_EQ(allocations_of_turns(take, push), 0);
  EXPECT_GE(parked, counted_turns);
}

TEST(flow_allocation, parking_on_push_asks_for_nothing) {
  weir::queue<int> q(0);
  auto push = [&]() -> task<> { co_await q.push(1); };
  auto take = [&]() -> task<> {
    co_await weir::sleep(1ms);
    (void)co_await q.next();
  };
  EXPECT_EQ(allocations_of_turns(push, take), 0);
}

TEST(flow_allocation, a_queue_that_has_grown_asks_for_nothing_any_more) {
  weir::queue<int> q(weir::unbounded);
  auto wave = [&]() -> task<> {
    for (int i = 0; i < 100; ++i) (void)q.try_push(i);
    for (int i = 0; i < 100; ++i) (void)co_await q.next();
  };
  EXPECT_EQ(allocations_of_turns(wave, nothing()), 0);
}

TEST(flow_allocation, parking_on_an_event_asks_for_nothing) {
  weir::event e;
  auto wait = [&]() -> task<> {
    e.reset();
    co_await e.wait();
  };
  auto set = [&]() -> task<> {
    co_await weir::sleep(1ms);
    e.set();
  };
  EXPECT_EQ(allocations_of_turns(wait, set), 0);
}

TEST(flow_allocation, parking_on_a_latch_asks_for_nothing) {
  auto wait = []() -> task<> {
    weir::latch l(2);
    l.count_down();
    co_await weir::race(l.wait(), weir::sleep(1ms));
    l.count_down();
    co_await l.wait();
  };
  EXPECT_EQ(allocations_of_turns(wait, nothing()), 0);
}

TEST(flow_allocation, parking_on_a_mutex_asks_for_nothing) {
  weir::mutex m;
  auto lock = [&]() -> task<> {
    weir::mutex_guard held = co_await m.lock();
    co_await weir::sleep(1ms);
  };
  EXPECT_EQ(allocations_of_turns(lock, lock), 0);
}

TEST(flow_allocation, losing_a_race_or_a_timeout_there_asks_for_nothing) {
  weir::queue<int> empty(1), meeting(0);
  weir::event e;
  weir::mutex m;
  auto guard = m.try_lock();
  auto loses = [&]() -> task<> {
    (void)co_await weir::race(empty.next(), weir::sleep(1ms));
    co_await weir::race(meeting.push(1), weir::sleep(1ms));
    co_await weir::race(e.wait(), weir::sleep(1ms));
    (void)co_await weir::race(m.lock(), weir::sleep(1ms));
  };
  EXPECT_EQ(allocations_of_turns(loses, nothing()), 0);
  guard.reset();
}

TEST(flow_allocation, a_channel_asks_for_nothing_while_there_is_room) {
  auto made = weir::channel<int>(4);
  auto& [tx, rx] = made;
  auto pass = [&, &to = tx, &from = rx]() -> task<> {
    (void)to.try_send(1);
    co_await to.send(2);
    for (int i = 0; i < 2; ++i) (void)co_await from.next();
  };
  EXPECT_EQ(allocations_of_turns(pass, nothing()), 0);
}

TEST(flow_allocation, a_channel_asks_for_nothing_when_both_sides_wait_and_the_caches_are_warm) {
  auto made = weir::channel<int>(1);
  auto& [tx, rx] = made;
  auto take = [&, &from = rx]() -> task<> { (void)co_await from.next(); };
  auto send = [&, &to = tx]() -> task<> { co_await to.send(1); };
  EXPECT_EQ(allocations_of_turns(take, send), 0);
}

#endif
