// SPDX-License-Identifier: MIT
// queue: capacity, order on both sides, rendezvous, the ways to end it, and consumers that leave.
#include <cstdint>
#include <memory>

#include "flow_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;
using int_queue = weir::queue<int>;

namespace {

task<std::error_code> code_of_push(int_queue& q, int value) {
  auto make = [&] { return q.push(value); };
  co_return co_await code_after(make);
}

task<> push_all(int_queue& q, int first, int last) {
  for (int i = first; i <= last; ++i) co_await q.push(i);
}

}  // namespace
FIBER_TEST(queue, try_push_is_refused_at_the_capacity) {
  int_queue q(1);
  EXPECT_EQ(q.try_push(1), no_error);
  EXPECT_EQ(q.try_push(2), errc::queue_full);
  EXPECT_EQ(q.try_push(3), errc::queue_full);
  EXPECT_EQ(q.size(), 1U);
  EXPECT_EQ(q.capacity(), 1);
  EXPECT_EQ(drain(q), numbers{1});
  co_return;
}

FIBER_TEST(queue, a_value_is_moved_from_only_when_it_is_accepted) {
  weir::queue<std::unique_ptr<int>> q(1);
  auto one = std::make_unique<int>(1);
  auto two = std::make_unique<int>(2);
  EXPECT_EQ(q.try_push(std::move(one)), no_error);
  EXPECT_EQ(one, nullptr);
  EXPECT_EQ(q.try_push(std::move(two)), errc::queue_full);
  EXPECT_NE(two, nullptr);
  q.close();
  EXPECT_EQ(q.try_push(std::move(two)), errc::queue_closed);
  EXPECT_NE(two, nullptr);
  auto got = co_await q.next();
  EXPECT_EQ(**got, 1);
}

FIBER_TEST(queue, an_unbounded_one_takes_everything_in_order) {
  int_queue q(weir::unbounded);
  for (int i = 1; i <= 1000; ++i) EXPECT_EQ(q.try_push(i), no_error);
  co_await push_all(q, 1001, 2000);
  EXPECT_EQ(q.size(), 2000U);
  EXPECT_EQ(drain(q), from_to(1, 2000));
}
FIBER_TEST_IN_EVERY_ORDER(
    queue, producers_are_served_in_the_order_of_their_arrival_and_never_above_the_capacity) {
  int_queue q(1);
  numbers pushed;
  EXPECT_EQ(q.try_push(1), no_error);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 2; i <= 5; ++i) {
      s.spawn(push_one(q, i, pushed));
      co_await settled();
    }
    EXPECT_TRUE(pushed.empty());
    numbers got;
    for (int i = 1; i <= 4; ++i) {
      got.push_back(co_await take_one(q));
      EXPECT_EQ(q.size(), 1U);
      EXPECT_EQ(q.try_push(99), errc::queue_full);  // no newcomer overtakes who waits
    }
    got.push_back(co_await take_one(q));
    EXPECT_EQ(got, from_to(1, 5));
    co_await s.join();
  });
  EXPECT_EQ(sorted(pushed), from_to(2, 5));
}

FIBER_TEST(queue, the_slot_goes_to_the_waiting_producer_when_the_value_is_taken) {
  int_queue q(2);
  numbers pushed;
  co_await push_all(q, 1, 2);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(push_one(q, 3, pushed));
    co_await settled();
    EXPECT_EQ(*q.try_next(), 1);
    EXPECT_EQ(q.size(), 2U);  // 3 is in, although its producer has not run yet
    EXPECT_TRUE(pushed.empty());
    EXPECT_EQ(q.try_push(4), errc::queue_full);
    co_await settled();
    EXPECT_EQ(pushed, numbers{3});
  });
  EXPECT_EQ(drain(q), from_to(2, 3));
}

FIBER_TEST_IN_EVERY_ORDER(queue, consumers_are_served_in_the_order_of_their_arrival) {
  int_queue q(10);
  numbers got(4);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto consumer = [&](int i) -> task<> { got[static_cast<unsigned>(i)] = co_await take_one(q); };
    for (int i = 0; i < 3; ++i) {
      s.spawn(consumer(i));
      co_await settled();
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(q.try_push(i + 1), no_error);
    EXPECT_EQ(q.size(), 0U);  // handed over, not kept
    EXPECT_EQ(q.try_next(), std::nullopt);
    s.spawn(consumer(3));
    co_await q.push(4);
    co_await s.join();
  });
  EXPECT_EQ(got, from_to(1, 4));
}
FIBER_TEST_IN_EVERY_ORDER(queue, capacity_0_is_a_rendezvous_from_either_side) {
  int_queue q(0);
  EXPECT_EQ(q.try_push(1), errc::queue_full);
  EXPECT_EQ(q.try_next(), std::nullopt);
  numbers pushed, got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(push_one(q, 1, pushed));
    s.spawn(push_one(q, 2, pushed));
    co_await settled();
    EXPECT_TRUE(pushed.empty());
    EXPECT_EQ(q.size(), 0U);
    got.push_back(co_await take_one(q));
    got.push_back(q.try_next().value_or(-1));
    co_await settled();
    EXPECT_EQ(sorted(pushed), from_to(1, 2));
    s.spawn(take_into(q, got));
    co_await settled();
    EXPECT_EQ(q.try_push(3), no_error);
    EXPECT_EQ(q.try_push(4), errc::queue_full);
    co_await s.join();
  });
  EXPECT_EQ(sorted(got), from_to(1, 3));
}
FIBER_TEST(queue, a_ping_pong_over_two_rendezvous_goes_on_100000_times) {
  constexpr int rounds = 100'000;
  int_queue ping(0), pong(0);
  std::int64_t sum = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      for (int i = 0; i < rounds; ++i) {
        int v = co_await take_one(ping);
        co_await pong.push(v + 1);
      }
    });
    for (int i = 0; i < rounds; ++i) {
      co_await ping.push(i);
      sum += co_await take_one(pong);
    }
  });
  EXPECT_EQ(sum, std::int64_t{rounds} * (rounds - 1) / 2 + rounds);
}

FIBER_TEST(queue, closed_it_gives_what_is_buffered_and_then_the_end_for_ever) {
  int_queue q(5);
  co_await push_all(q, 1, 2);
  EXPECT_FALSE(q.closed());
  q.close();
  EXPECT_TRUE(q.closed());
  EXPECT_EQ(q.try_push(3), errc::queue_closed);
  EXPECT_EQ(co_await code_of_push(q, 3), errc::queue_closed);
  for (int expected : {1, 2, -1, -1}) EXPECT_EQ(co_await take_one(q), expected);
  EXPECT_EQ(q.try_next(), std::nullopt);
}

FIBER_TEST_IN_EVERY_ORDER(queue, closing_it_ends_every_parked_consumer) {
  int_queue q(1);
  numbers got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 3; ++i) s.spawn(take_into(q, got));
    co_await settled();
    q.close();
    co_await s.join();
  });
  EXPECT_EQ(got, numbers(3, -1));
}
TEST(queue, closing_it_refuses_parked_producers_and_their_values_are_not_delivered) {
  for (int how = 0; how < 3; ++how) {
    for_each_order([how](weir::sim::world& w) {
      w.run([how]() -> task<> {
        int alive = 0;
        weir::queue<counted_value> q(1);
        EXPECT_EQ(q.try_push(counted_value(1, alive)), no_error);
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          std::vector<weir::child<std::error_code>> parked;
          auto make = [&] { return q.push(counted_value(2, alive)); };
          for (int i = 0; i < 3; ++i) parked.push_back(s.spawn(code_after(make)));
          co_await settled();
          if (how == 0) q.close();
          if (how == 1) q.fail(std::make_exception_ptr(boom(1)));
          if (how == 2) q.discard();
          for (auto& p : parked) {
            const std::error_code code = co_await p;
            EXPECT_EQ(code, errc::queue_closed);
          }
        });
        EXPECT_EQ(alive, how == 2 ? 0 : 1);
        EXPECT_EQ(q.size(), how == 2 ? 0U : 1U);
      });
    });
  }
}
FIBER_TEST(queue, discard_destroys_what_is_buffered) {
  int alive = 0;
  weir::queue<counted_value> q(5);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(q.try_push(counted_value(i, alive)), no_error);
  EXPECT_EQ(alive, 4);
  q.discard();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(q.size(), 0U);
  EXPECT_TRUE(q.closed());
  auto got = co_await q.next();
  EXPECT_FALSE(got.has_value());
  weir::queue<counted_value> other(5);
  EXPECT_EQ(other.try_push(counted_value(1, alive)), no_error);
  other.close();
  other.discard();  // also what an earlier close left
  EXPECT_EQ(alive, 0);
}

TEST(queue, destroying_it_destroys_what_is_buffered) {
  int alive = 0;
  in_order([&]() -> task<> {
    weir::queue<counted_value> q(5);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(q.try_push(counted_value(i, alive)), no_error);
    auto first = q.try_next();
    EXPECT_EQ(first->n, 0);
    co_return;
  });
  EXPECT_EQ(alive, 0);
}
FIBER_TEST(queue, failed_it_gives_what_is_buffered_then_the_error_once_then_the_end) {
  int_queue q(5);
  co_await push_all(q, 1, 2);
  q.fail(std::make_exception_ptr(boom(7)));
  EXPECT_TRUE(q.closed());
  EXPECT_EQ(co_await take_one(q), 1);
  EXPECT_EQ(co_await take_one(q), 2);
  EXPECT_EQ(boom_of(co_await error_of(q.next())), 7);
  EXPECT_EQ(co_await take_one(q), -1);
  EXPECT_EQ(co_await code_of_push(q, 3), errc::queue_closed);
}
FIBER_TEST_IN_EVERY_ORDER(
    queue, failed_every_consumer_that_is_parked_then_gets_the_error_and_later_ones_the_end) {
  int_queue q(1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    std::vector<weir::child<std::exception_ptr>> parked;
    for (int i = 0; i < 3; ++i) parked.push_back(s.spawn(error_of(q.next())));
    co_await settled();
    q.fail(std::make_exception_ptr(boom(7)));
    EXPECT_EQ(co_await take_one(q), -1);
    for (auto& p : parked) {
      const std::exception_ptr error = co_await p;
      EXPECT_EQ(boom_of(error), 7);
    }
  });
  EXPECT_EQ(q.try_next(), std::nullopt);
}

FIBER_TEST(queue, try_next_throws_the_error_of_a_failed_queue_once) {
  int_queue q(5);
  co_await q.push(1);
  q.fail(std::make_exception_ptr(boom(7)));
  EXPECT_EQ(q.try_next(), 1);
  EXPECT_EQ(boom_of(thrown_by([&] { return q.try_next(); })), 7);
  EXPECT_EQ(q.try_next(), std::nullopt);
}
FIBER_TEST(queue, failing_without_an_error_is_refused_and_changes_nothing) {
  int_queue q(5);
  co_await q.push(1);
  EXPECT_EQ(code_thrown_by([&] { q.fail(nullptr); }), errc::invalid_argument);
  EXPECT_FALSE(q.closed());
  co_await q.push(2);
  EXPECT_EQ(drain(q), from_to(1, 2));
}

FIBER_TEST(queue, the_first_end_counts) {
  int_queue q(5);
  q.close();
  q.fail(std::make_exception_ptr(boom(1)));
  EXPECT_EQ(co_await take_one(q), -1);
  int_queue failed(5);
  failed.fail(std::make_exception_ptr(boom(2)));
  failed.fail(std::make_exception_ptr(boom(3)));
  failed.close();
  EXPECT_EQ(boom_of(co_await error_of(failed.next())), 2);
}
FIBER_TEST_IN_EVERY_ORDER(queue, of_four_workers_one_leaves_and_all_100_jobs_are_done) {
  int_queue jobs(3);
  numbers done;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    std::vector<weir::child<void>> workers;
    for (int i = 0; i < 4; ++i) workers.push_back(s.spawn(take_all(jobs, done)));
    co_await push_all(jobs, 1, 30);
    workers[2].cancel();
    co_await push_all(jobs, 31, 100);
    jobs.close();
    co_await s.join();
  });
  EXPECT_EQ(sorted(done), from_to(1, 100));
}
FIBER_TEST_IN_EVERY_ORDER(queue, a_cancelled_consumer_takes_nothing_with_it) {
  int_queue q(10);
  numbers got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto first = s.spawn(take_into(q, got));
    auto second = s.spawn(take_into(q, got));
    for (int i = 0; i < 3; ++i) co_await weir::yield();
    EXPECT_EQ(q.try_push(1), no_error);
    first.cancel();
    EXPECT_EQ(q.try_push(2), no_error);
    second.cancel();
    co_await s.idle();
  });
  for (int left : drain(q)) got.push_back(left);
  EXPECT_EQ(sorted(got), from_to(1, 2));
}

FIBER_TEST_IN_EVERY_ORDER(queue, a_cancelled_producer_delivers_nothing_and_lets_the_next_one_pass) {
  int alive = 0;
  weir::queue<counted_value> q(1);
  EXPECT_EQ(q.try_push(counted_value(1, alive)), no_error);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto producer = [&](int n) -> task<> { co_await q.push(counted_value(n, alive)); };
    auto leaves = s.spawn(producer(2));
    co_await settled();
    s.spawn(producer(3));
    co_await settled();
    EXPECT_EQ(alive, 3);
    leaves.cancel();
    co_await settled();
    EXPECT_EQ(alive, 2);
    for (int expected : {1, 3}) {
      auto got = co_await q.next();
      EXPECT_EQ(got->n, expected);
    }
    co_await s.join();
  });
  EXPECT_EQ(alive, 0);
}

FIBER_TEST_IN_EVERY_ORDER(queue, a_producer_whose_value_was_accepted_is_not_cancelled_at_the_push) {
  int_queue q(1);
  numbers pushed;
  co_await q.push(1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto producer = s.spawn(push_one(q, 2, pushed));
    for (int i = 0; i < 2; ++i) co_await weir::yield();
    EXPECT_EQ(q.try_next(), 1);
    producer.cancel();
    co_await s.idle();
  });
  EXPECT_EQ(drain(q), pushed);
}
TEST(queue, a_backlog_of_10000000_values_drains) {
#if defined(__OPTIMIZE__)
  constexpr int values = test_support::sanitized ? 100'000 : 10'000'000;
#else
  constexpr int values = 100'000;
#endif
  in_order([]() -> task<> {
    int_queue q(weir::unbounded);
    std::int64_t sum = 0;
    for (int i = 0; i < values; ++i)
      if (q.try_push(i)) co_return;
    EXPECT_EQ(q.size(), std::size_t{values});
    for (int i = 0; i < values; ++i) {
      auto v = co_await q.next();
      sum += *v;
    }
    EXPECT_EQ(sum, std::int64_t{values} * (values - 1) / 2);
    EXPECT_EQ(q.size(), 0U);
  });
}

FIBER_TEST(queue, of_100000_parked_producers_every_other_leaves_and_the_rest_are_served_in_order) {
  constexpr int waiting = test_support::sanitized ? 5'000 : 100'000;
  int_queue q(0);
  numbers pushed, got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    std::vector<weir::child<void>> all;
    for (int i = 0; i < waiting; ++i) all.push_back(s.spawn(push_one(q, i, pushed)));
    co_await settled();
    for (int i = 0; i < waiting; i += 2) all[static_cast<unsigned>(i)].cancel();
    for (int i = 1; i < waiting; i += 2) got.push_back(co_await take_one(q));
    EXPECT_EQ(q.try_next(), std::nullopt);
    co_await s.idle();
  });
  EXPECT_EQ(got.size(), std::size_t{waiting / 2});
  EXPECT_EQ(got, pushed);
}

namespace {

/// Two producers, then a consumer, then a third producer, while the fuse burns.
task<> push_brittle_values(std::int64_t capacity, int fuse) {
  weir::queue<brittle> q(capacity);
  int told = 0;
  numbers pushed, got;
  auto producer = [&](int n) -> task<> {
    auto make = [&] { return q.push(brittle(n)); };
    const std::exception_ptr error = co_await attempt(make);
    if (error == nullptr) pushed.push_back(n);
    told += boom_of(error) > 0 ? 1 : 0;
  };
  auto consumer = [&]() -> task<> {
    for (;;) {
      try {
        auto v = co_await q.next();
        if (!v) co_return;
        got.push_back(v->n);
      } catch (const boom&) {
        ++told;
      }
    }
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    brittle::fuse = fuse;
    for (int n = 1; n <= 2; ++n) s.spawn(producer(n));
    co_await settled();
    s.spawn(consumer());
    co_await settled();
    EXPECT_EQ(told, brittle::fuse == 0 ? 1 : 0);
    brittle::fuse = 0;
    s.spawn(producer(3));
    co_await settled();
    q.close();
    co_await s.join();
  });
  EXPECT_EQ(got, pushed);
  EXPECT_GE(got.size(), 2U);
}

}  // namespace

TEST(queue, whichever_move_of_a_value_throws_somebody_is_told_and_the_queue_goes_on) {
  for (std::int64_t capacity : {0, 1, 4}) {
    for (int fuse = 1; fuse < 16; ++fuse) {
      SCOPED_TRACE("capacity " + std::to_string(capacity) + ", move " + std::to_string(fuse));
      in_order([&] { return push_brittle_values(capacity, fuse); });
    }
  }
}
