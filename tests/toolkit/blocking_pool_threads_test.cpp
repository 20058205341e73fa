// SPDX-License-Identifier: MIT
// The threads of `blocking`: how often they are woken, when they end, and what happens if the
// system has none.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "core/futex.hpp"
#include "toolkit/blocking_pool.hpp"
#include "toolkit_support.hpp"

using namespace weir_test;
using weir::detail::blocking_pool;
using weir::detail::futex;

namespace {

/// Restores the idle limit of the process's pool.
struct idle_limit {
  explicit idle_limit(std::chrono::nanoseconds limit) {
    blocking_pool::instance().set_idle_limit(limit);
  }
  idle_limit(const idle_limit&) = delete;
  idle_limit& operator=(const idle_limit&) = delete;
  ~idle_limit() { blocking_pool::instance().set_idle_limit(5s); }
};

/// Pins the calling thread, and the threads it starts, to one core.
struct one_core {
  one_core() {
    sched_getaffinity(0, sizeof before, &before);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  one_core(const one_core&) = delete;
  one_core& operator=(const one_core&) = delete;
  ~one_core() { sched_setaffinity(0, sizeof before, &before); }
  cpu_set_t before{};
};

/// Makes the system refuse to start threads: their stacks would not fit into memory.
struct no_threads {
  no_threads() {
    pthread_getattr_default_np(&before);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 47);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  no_threads(const no_threads&) = delete;
  no_threads& operator=(const no_threads&) = delete;
  ~no_threads() {
    pthread_setattr_default_np(&before);
    pthread_attr_destroy(&before);
  }
  pthread_attr_t before{};
};

void wait_for_no_threads() {
  const idle_limit soon(1us);
  weir::run([]() -> task<> { co_await weir::blocking([] {}); });  // wakes at least one
  while (blocking_pool::instance().threads() > 0) {
    weir::run([]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (int i = 0; i < 64; ++i) s.spawn(weir::blocking([] { std::this_thread::yield(); }));
        co_await s.join();
      });
    });
    for (int i = 0; i < 2000 && blocking_pool::instance().threads() > 0; ++i)
      std::this_thread::yield();
  }
}

task<> one_after_the_other(int calls) {
  for (int i = 0; i < calls; ++i) EXPECT_EQ(co_await weir::blocking([&] { return i; }), i);
}

task<> in_flight(int at_once, int each) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < at_once; ++i) s.spawn(one_after_the_other(each));
    co_await s.join();
  });
}

}  // namespace

TEST(blocking_pool, calls_one_after_the_other_use_one_thread_and_few_system_calls) {
  wait_for_no_threads();
  const one_core alone;
  weir::run([]() -> task<> {
    co_await one_after_the_other(50);
    const auto before = futex::calls();
    co_await one_after_the_other(1'000);
    // None if yields are cheap; on a busy machine both sides sleep, and each wakes the other.
    EXPECT_LE(futex::calls() - before, 4'100U);
  });
  EXPECT_EQ(blocking_pool::instance().threads(), 1U);
}

TEST(blocking_pool, with_64_in_flight_not_every_call_wakes_a_thread) {
  weir::run([]() -> task<> {
    co_await in_flight(64, 10);
    const auto before = futex::calls();
    co_await in_flight(64, 100);
    EXPECT_LE(futex::calls() - before, 2U * 64 * 100);
  });
}

TEST(blocking_pool, calls_that_block_each_get_a_thread_also_if_the_searching_one_blocks_first) {
  for (int round = 0; round < 20; ++round) {
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        const int calls = 1 + 3 * round;
        std::latch all(calls);
        for (int i = 0; i < calls; ++i) {
          s.spawn(weir::blocking([&] { all.arrive_and_wait(); }));
          if (i % 7 == round % 7) co_await weir::yield();
        }
        co_await s.join();
      });
    });
  }
}

TEST(blocking_pool, idle_threads_end_after_their_limit) {
  {
    const idle_limit soon(1ms);
    weir::run([]() -> task<> { co_await in_flight(20, 5); });
    // Those that fell asleep with another limit are woken first: the stack is LIFO.
    wait_for_no_threads();
  }
  EXPECT_EQ(blocking_pool::instance().threads(), 0U);
  weir::run([]() -> task<> { EXPECT_EQ(co_await weir::blocking([] { return 3; }), 3); });
}

TEST(blocking_pool, a_thread_that_is_woken_when_its_limit_is_over_serves_the_call) {
  const idle_limit soon(20us);
  std::atomic<int> done{0};
  auto program = [&](int gap) {
    weir::run([&]() -> task<> {
      for (int i = 0; i < 400; ++i) {
        done += co_await weir::blocking([] { return 1; });
        const auto until = std::chrono::steady_clock::now() + (i * gap) % 60 * 1us;
        while (std::chrono::steady_clock::now() < until) {
        }
      }
    });
  };
  std::vector<std::thread> loops;
  for (int i = 1; i <= 3; ++i) loops.emplace_back(program, i);
  for (std::thread& t : loops) t.join();
  EXPECT_EQ(done, 1'200);
}

TEST(blocking_pool, submits_removals_and_abandoned_calls_at_the_limit_lose_nothing) {
  const idle_limit soon(30us);
  std::atomic<int> called{0}, delivered{0};
  auto program = [&]() -> task<> {
    for (int turn = 0; turn < 60; ++turn) {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (int i = 0; i < 30; ++i) {
          auto call = [&]() -> task<> {
            delivered += co_await weir::blocking([&] { return ++called, 1; });
          };
          auto child = s.spawn(call);
          auto linger = [] {
            for (int k = 0; k < 20; ++k) std::this_thread::yield();
          };
          auto left = s.spawn(weir::blocking(weir::may_abandon, linger));
          if (i % 4 == turn % 4) co_await weir::yield();
          if (i % 3 == 0) left.cancel();
          if (i % 5 == 0) child.cancel();
        }
        co_await s.join();
      });
    }
  };
  std::vector<std::thread> loops;
  for (int i = 0; i < 3; ++i) loops.emplace_back([&] { weir::run(program); });
  for (std::thread& t : loops) t.join();
  EXPECT_EQ(called, delivered);
}

TEST(blocking_pool, without_any_thread_queued_calls_fail_and_later_ones_are_served) {
  wait_for_no_threads();
  weir::run([]() -> task<> {
    {
      const no_threads now;
      EXPECT_TRUE(holds<std::system_error>(co_await error_of(weir::blocking([] { return 1; }))));
      EXPECT_TRUE(holds<std::system_error>(co_await error_of(weir::blocking([] { return 1; }))));
    }
    EXPECT_EQ(co_await weir::blocking([] { return 2; }), 2);
  });
}

TEST(blocking_pool, if_no_further_thread_can_be_started_the_existing_one_serves_all) {
  wait_for_no_threads();
  weir::run([]() -> task<> {
    co_await weir::blocking([] {});
    const no_threads now;
    int sum = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 50; ++i)
        s.spawn([&]() -> task<> { sum += co_await weir::blocking([] { return 1; }); });
      co_await s.join();
    });
    EXPECT_EQ(sum, 50);
    EXPECT_EQ(blocking_pool::instance().threads(), 1U);
  });
}

FIBER_TEST(blocking, a_function_that_needs_a_large_alignment_gets_it) {
  struct alignas(128) wide {
    int operator()() const { return reinterpret_cast<std::uintptr_t>(this) % 128 == 0 ? 1 : 0; }
  };
  EXPECT_EQ(co_await weir::blocking(wide{}), 1);
}
