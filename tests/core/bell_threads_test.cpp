// SPDX-License-Identifier: MIT
// Bell, spinner and short mutex: no wake-up is lost, an idle thread sleeps, and polling stops when
// it does not pay.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <semaphore>
#include <source_location>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <weir/weir.hpp>

#include "core/bell.hpp"
#include "core/door.hpp"
#include "core/futex.hpp"
#include "core/session.hpp"
#include "core/short_mutex.hpp"
#include "core/spinner.hpp"

using namespace std::chrono_literals;
using weir::detail::bell;
using weir::detail::futex;
using weir::detail::short_mutex;
using weir::detail::spinner;

namespace {

constexpr std::int64_t no_limit = -1;

/// Waits until a thread has announced its sleep: a later ring must call the kernel.
void wait_for_call(std::uint64_t calls_before) {
  while (futex::calls() == calls_before) std::this_thread::yield();
}

/// Counts how a loop waits when nothing is ready.
class watched_machine final : public weir::detail::real_environment {
 public:
  void park(weir::detail::loop& here, std::optional<weir::time_point> until) override {
    ++(until ? limited : unlimited);
    parked.release();
    real_environment::park(here, until);
  }
  int limited = 0;
  int unlimited = 0;
  std::binary_semaphore parked{0};
};

}  // namespace

TEST(bell, a_ring_before_the_sleep_ends_it_at_once_and_without_a_system_call) {
  bell b;
  const auto calls = futex::calls();
  b.ring();
  b.ring();
  EXPECT_EQ(b.sleep(no_limit), bell::slept::rung);
  EXPECT_EQ(futex::calls(), calls);
  EXPECT_EQ(b.sleep(1), bell::slept::timed_out) << "two rings were heard as one";
}

TEST(bell, a_ring_is_heard_once) {
  bell b;
  EXPECT_FALSE(b.heard());
  b.ring();
  EXPECT_TRUE(b.heard());
  EXPECT_FALSE(b.heard());
}

TEST(bell, a_sleep_and_its_wake_up_are_one_system_call_each) {
  bell b;
  const auto calls = futex::calls();
  std::thread sleeper([&] {
    while (b.sleep(no_limit) != bell::slept::rung) {
    }
  });
  wait_for_call(calls);
  b.ring();
  sleeper.join();
  EXPECT_EQ(futex::calls() - calls, 2U);
}

TEST(bell, two_threads_that_ring_each_other_lose_no_wake_up) {
  constexpr int trips = 20'000;
  bell here, there;
  int shared = 0;
  std::thread other([&] {
    for (int i = 0; i < trips; ++i) {
      while (there.sleep(no_limit) != bell::slept::rung) {
      }
      ++shared;
      here.ring();
    }
  });
  for (int i = 0; i < trips; ++i) {
    ++shared;
    there.ring();
    while (here.sleep(no_limit) != bell::slept::rung) {
    }
  }
  other.join();
  EXPECT_EQ(shared, 2 * trips);
}

TEST(bell, a_ring_at_the_moment_of_the_limit_is_reported_as_a_ring_or_stays_pending) {
  constexpr int moments = 3'000;
  bell b;
  std::atomic<int> begun{0};
  std::atomic<int> heard{0};
  std::thread ringer([&] {
    for (int i = 1; i <= moments; ++i) {
      while (begun < i) std::this_thread::yield();
      for (int k = i % 64; k > 0; --k) weir::detail::pause_processor();
      b.ring();
      while (heard < i) std::this_thread::yield();
    }
  });
  for (int i = 1; i <= moments; ++i) {
    begun = i;
    while (b.sleep(1'000 + i % 500) != bell::slept::rung) {
    }
    heard = i;
  }
  ringer.join();
  EXPECT_FALSE(b.heard());
}

TEST(bell, a_signal_handler_disturbs_a_sleep_and_may_ring) {
  static bell b;
  struct sigaction rings{};
  struct sigaction before{};
  rings.sa_handler = [](int) { b.ring(); };
  ASSERT_EQ(sigaction(SIGUSR1, &rings, &before), 0);
  const auto calls = futex::calls();
  std::thread sleeper([&] {
    while (b.sleep(no_limit) != bell::slept::rung) {
    }
  });
  wait_for_call(calls);
  pthread_kill(sleeper.native_handle(), SIGUSR1);
  sleeper.join();
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(spinner, without_success_it_polls_less_and_less) {
  spinner s;
  int polls = 0;
  auto never = [&] { return ++polls, false; };
  EXPECT_FALSE(s.spin(never));
  int quiet = 0;
  for (int i = 0; i < 2'000; ++i) {
    const int before = polls;
    EXPECT_FALSE(s.spin(never));
    quiet += polls == before ? 1 : 0;
  }
  EXPECT_GE(quiet, 2'000 - 20);
}

TEST(spinner, what_pays_is_done_again_and_what_stopped_paying_is_given_up) {
  int polls = 0;
  auto never = [&] { return ++polls, false; };
  spinner fresh;
  EXPECT_FALSE(fresh.spin(never));
  const int trial = std::exchange(polls, 0);
  spinner s;
  auto at_once = [] { return true; };
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(s.spin(at_once));
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(s.spin(never));
  EXPECT_LE(polls, 8 * (trial / 2 + 8)) << "limited by what was needed before";
  const int before = polls;
  EXPECT_FALSE(s.spin(never));
  EXPECT_EQ(polls, before);
}

TEST(spinner, finds_a_way_to_an_event_of_another_thread) {
  constexpr int trips = 2'000;
  std::atomic<int> turn{0};
  std::thread other([&] {
    spinner s;
    for (int i = 1; i < 2 * trips; i += 2) {
      while (!s.spin([&] { return turn.load(std::memory_order_acquire) == i; }))
        std::this_thread::yield();
      turn.store(i + 1, std::memory_order_release);
    }
  });
  spinner s;
  for (int i = 0; i < 2 * trips; i += 2) {
    turn.store(i + 1, std::memory_order_release);
    while (!s.spin([&] { return turn.load(std::memory_order_acquire) == i + 2; }))
      std::this_thread::yield();
  }
  other.join();
  EXPECT_EQ(turn, 2 * trips);
}

TEST(spinner, a_process_on_one_core_knows_it) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) > 1) {
    EXPECT_TRUE(weir::detail::several_cores());
  } else {
    EXPECT_FALSE(weir::detail::several_cores());
  }
}

TEST(short_mutex, excludes) {
  constexpr int threads = 4;
  constexpr int per_thread = 20'000;
  short_mutex m;
  int count = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < per_thread; ++i) {
        const std::lock_guard lock(m);
        ++count;
      }
    });
  for (std::thread& t : all) t.join();
  EXPECT_EQ(count, threads * per_thread);
  EXPECT_TRUE(m.try_lock());
  EXPECT_FALSE(std::unique_lock(m, std::try_to_lock).owns_lock());
  m.unlock();
}

TEST(short_mutex, without_contention_it_calls_no_kernel) {
  short_mutex m;
  const auto calls = futex::calls();
  for (int i = 0; i < 1000; ++i) const std::lock_guard lock(m);
  EXPECT_EQ(futex::calls(), calls);
}

TEST(short_mutex, sleepers_are_woken_one_after_the_other) {
  constexpr int sleepers = 3;
  short_mutex m;
  m.lock();
  const auto calls = futex::calls();
  int count = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < sleepers; ++t)
    all.emplace_back([&] {
      const std::lock_guard lock(m);
      ++count;
    });
  while (futex::calls() < calls + sleepers) std::this_thread::yield();
  EXPECT_EQ(count, 0);
  m.unlock();
  for (std::thread& t : all) t.join();
  EXPECT_EQ(count, sleepers);
}

TEST(door, an_idle_loop_sleeps_without_a_limit_and_is_woken_by_the_answer) {
  watched_machine machine;
  weir::resumer<void> kept;
  auto program = [&]() -> weir::task<> {
    co_await weir::suspend<void>([&](weir::resumer<void> r) { kept = std::move(r); });
  };
  const std::uint64_t before = futex::calls();
  std::thread other([&] {
    machine.parked.acquire();
    while (futex::calls() == before) std::this_thread::yield();
    kept.complete();
  });
  {
    weir::detail::fiber* const root = weir::scope::make(program());
    const weir::detail::core_ref keep(root);
    weir::detail::session s(machine, {}, *root, std::source_location::current());
    const weir::detail::active_loop active(s.here());
    s.here().run();
  }
  other.join();
  EXPECT_EQ(machine.limited, 0);
  EXPECT_EQ(machine.unlimited, 1);
  EXPECT_EQ(futex::calls() - before, 2U) << "one to sleep, one to wake it";
}

TEST(door, a_loop_that_only_waits_for_timers_calls_the_kernel_once_for_each) {
  weir::run([]() -> weir::task<> {
    co_await weir::sleep(1ms);
    const auto before = futex::calls();
    for (int i = 0; i < 10; ++i) co_await weir::sleep(5ms);
    EXPECT_LE(futex::calls() - before, 20U);
  });
}
