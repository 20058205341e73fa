// SPDX-License-Identifier: MIT
// What a job of a pool and an operation on another loop cost, counted and not timed: allocations,
// locks, messages and calls of the kernel, on the caller's thread and on the one that runs it.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <latch>

#include "core/door.hpp"
#include "core/futex.hpp"
#include "core/loop.hpp"
#include "core/short_mutex.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"
#include "toolkit_support.hpp"

// Under a sanitizer every block is an allocation of its own, and locks are the sanitizer's.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace weir_test;
using weir::detail::door;
using weir::detail::futex;

namespace {

thread_local long locks_taken = 0;

/// By this thread, of both kinds.
long locks_until_now() { return locks_taken + weir::detail::short_mutex::locked_by_this_thread(); }

thread_local long locks_before = 0;
thread_local long messages_before = 0;

struct costs {
  long allocations;
  long locks;
  long messages;  // posted
};

void begin_costs() {
  locks_before = locks_until_now();
  messages_before = door::posted_by_this_thread();
  test_support::begin_to_count();
}
costs end_costs() {
  const long taken = locks_until_now() - locks_before;
  return {test_support::end_count(), taken, door::posted_by_this_thread() - messages_before};
}

constexpr int warm_up = 3000;
constexpr int counted_jobs = 300;
/// The frame cache exchanges 128 blocks at a time with other threads, under a lock.
constexpr long exchanges = 2 * counted_jobs / 128 + 4;

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using function = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks_taken;
  return real(mutex);
}

namespace {

/// A pool whose only worker is busy until `let_go`, so that what is submitted meanwhile is queued.
class held_pool {
 public:
  explicit held_pool(weir::scope& s) : pool(s, {.name = "p", .workers = 1, .queue_size = 1000}) {}
  /// Afterwards the depot has more blocks than the counted jobs need: 900 are in use at once, of
  /// which the worker keeps two magazines.
  task<> warm() {
    std::latch filled(1);
    EXPECT_FALSE(pool.try_submit([&] { filled.wait(); }));
    for (int i = 0; i < 900; ++i) co_await pool.submit([] {});
    filled.count_down();
    for (int i = 0; i < warm_up; ++i) co_await pool.submit([] {});
    for (int i = 0; i < warm_up / 4; ++i) co_await pool.run([] {});
  }
  void hold() {
    EXPECT_FALSE(pool.try_submit([this] { gate_.wait(); }));
  }
  void let_go() { gate_.count_down(); }
  weir::pool pool;

 private:
  std::latch gate_{1};
};

}  // namespace

TEST(remote_cost, the_counter_of_locks_counts) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  begin_costs();
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  weir::detail::short_mutex inlined;
  inlined.lock();
  inlined.unlock();
  EXPECT_EQ(end_costs().locks, 2);
}

TEST(remote_cost, a_submit_is_one_lock_no_message_and_no_allocation_once_the_cache_is_warm) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      held_pool p(s);
      co_await p.warm();
      p.hold();
      begin_costs();
      for (int i = 0; i < counted_jobs; ++i) co_await p.pool.submit([] {});
      const costs took = end_costs();
      p.let_go();
      EXPECT_EQ(took.allocations, 0);
      EXPECT_GE(took.locks, counted_jobs);
      EXPECT_LE(took.locks, counted_jobs + exchanges);
      EXPECT_EQ(took.messages, 0);
      co_await p.pool.close();
    });
  });
}

TEST(remote_cost, a_worker_takes_one_lock_per_job_and_neither_allocates_nor_answers) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      held_pool p(s);
      costs took{-1, -1, -1};
      co_await p.warm();
      p.hold();
      co_await p.pool.submit([] { begin_costs(); });
      for (int i = 0; i < counted_jobs; ++i) co_await p.pool.submit([] {});
      co_await p.pool.submit([&] { took = end_costs(); });
      p.let_go();
      co_await p.pool.close();
      EXPECT_EQ(took.allocations, 0);
      EXPECT_LE(took.locks, counted_jobs + 1 + exchanges);
      EXPECT_EQ(took.messages, 0);
    });
  });
}

TEST(remote_cost, a_run_costs_its_caller_and_its_worker_one_lock_each_and_one_message) {
  costs here{-1, -1, -1};
  costs there{-1, -1, -1};
  auto round = [&](weir::scope& s) -> task<> {
    held_pool p(s);
    co_await p.warm();
    p.hold();
    co_await p.pool.submit([] { begin_costs(); });
    std::vector<weir::child<int>> runs;
    runs.reserve(counted_jobs);
    for (int i = 0; i < counted_jobs; ++i) runs.push_back(s.spawn(p.pool.run([i] { return i; })));
    begin_costs();
    co_await weir::yield();  // all of them are queued now
    here = end_costs();
    co_await p.pool.submit([&] { there = end_costs(); });
    p.let_go();
    int sum = 0;
    for (auto& r : runs) sum += co_await std::move(r);
    co_await p.pool.close();
    EXPECT_EQ(sum, counted_jobs * (counted_jobs - 1) / 2);
  };
  weir::run([&]() -> task<> {
    for (int i = 0; i < 2; ++i) co_await weir::with_scope(round);  // the first one warms the caches
  });
  EXPECT_EQ(here.allocations, 0);
  EXPECT_LE(here.locks, counted_jobs + exchanges);
  EXPECT_EQ(there.allocations, 0);
  EXPECT_LE(there.locks, counted_jobs + 1 + exchanges);
  EXPECT_EQ(here.messages, 0);
  EXPECT_EQ(there.messages, counted_jobs);
}

TEST(remote_cost, callers_that_wait_for_room_get_at_most_one_message_each) {
  constexpr int places = 1001;
  constexpr int callers = 200;
  costs there{-1, -1, -1};
  auto round = [&](weir::scope& s) -> task<> {
    held_pool p(s);
    p.hold();
    co_await p.pool.submit([] { begin_costs(); });
    for (int i = 2; i < places; ++i) co_await p.pool.submit([] {});
    for (int i = 0; i < callers; ++i) s.spawn(p.pool.submit([] {}));
    s.spawn(p.pool.submit([&] { there = end_costs(); }));
    co_await weir::yield();  // all of them wait now
    p.let_go();
    co_await s.join();
    co_await p.pool.close();
  };
  weir::run([&]() -> task<> { co_await weir::with_scope(round); });
  EXPECT_LE(there.messages, callers + 1);  // a caller that has waited for long admits others itself
}

TEST(remote_cost, an_operation_on_another_loop_takes_no_lock_and_allocates_nothing) {
  weir::run([]() -> task<> {
    co_await weir::with_loop_thread([](weir::loop_thread& t) -> task<> {
      auto add = [](int i) -> task<int> { co_return i + 1; };
      int value = 0;
      for (int i = 0; i < warm_up / 4; ++i)
        value = co_await weir::on(t, [&] { return add(value); });
      co_await weir::on(t, []() -> task<> {
        begin_costs();
        co_return;
      });
      begin_costs();
      for (int i = 0; i < counted_jobs; ++i)
        value = co_await weir::on(t, [&] { return add(value); });
      const costs here = end_costs();
      const costs there = co_await weir::on(t, []() -> task<costs> { co_return end_costs(); });
      EXPECT_EQ(here.allocations, 0);
      EXPECT_LE(here.locks, exchanges);
      EXPECT_EQ(there.allocations, 0);
      EXPECT_LE(there.locks, exchanges);
      EXPECT_EQ(here.messages, counted_jobs);
      EXPECT_EQ(there.messages, counted_jobs + 1) << "the first one answers the begin of the count";
    });
  });
}

// Each side falls asleep at most once in a trip, and is woken at most once.
TEST(remote_cost, an_operation_on_another_loop_calls_the_kernel_at_most_four_times) {
  weir::run([]() -> task<> {
    co_await weir::with_loop_thread([](weir::loop_thread& t) -> task<> {
      co_await weir::on(t, []() -> task<> { co_return; });
      const auto before = futex::calls();
      for (int i = 0; i < counted_jobs; ++i) co_await weir::on(t, []() -> task<> { co_return; });
      EXPECT_LE(futex::calls() - before, 4U * counted_jobs + 4);
    });
  });
}

// Both threads are kept from their loops in turn, so that it does not matter how fast they are: the
// operations are posted while the other side runs one, and answered while this side runs a fiber.
TEST(remote_cost, operations_in_flight_together_call_the_kernel_as_often_as_one) {
  auto round = [](weir::loop_thread& t, weir::scope& s) -> task<> {
    constexpr int in_flight = 64;
    std::latch begun(1);
    std::latch posted(1);
    std::latch done(1);
    int ran = 0;
    s.spawn(weir::on(t, [&]() -> task<> {
      begun.count_down();
      posted.wait();
      co_return;
    }));
    co_await weir::yield();
    begun.wait();
    const auto before = futex::calls();
    for (int i = 0; i < in_flight; ++i)
      s.spawn(weir::on(t, [&]() -> task<> { co_return void(++ran); }));
    s.spawn(weir::on(t, [&]() -> task<> { co_return done.count_down(); }));
    co_await weir::yield();
    posted.count_down();
    done.wait();
    co_await s.join();
    EXPECT_LE(futex::calls() - before, 4U);
    EXPECT_EQ(ran, in_flight);
  };
  weir::run([&]() -> task<> {
    co_await weir::with_loop_thread([&](weir::loop_thread& t) -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> { co_await round(t, s); });
    });
  });
}

TEST(remote_cost, a_job_for_a_busy_worker_is_no_system_call_and_its_end_is_no_message) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::pool p(s, {.name = "p", .workers = 1, .queue_size = 1000});
      std::latch gate(1);
      std::atomic<bool> held{false};
      std::atomic<int> ended{0};
      EXPECT_FALSE(p.try_submit([&] {
        held = true;
        gate.wait();
      }));
      while (!held) std::this_thread::yield();
      const auto before = futex::calls();
      for (int i = 0; i < counted_jobs; ++i) co_await p.submit([&] { ++ended; });
      EXPECT_EQ(futex::calls(), before);
      gate.count_down();
      while (ended < counted_jobs) std::this_thread::yield();
      EXPECT_FALSE(weir::detail::loop::here()->has_messages());
      co_await p.close();
    });
  });
}

#endif
