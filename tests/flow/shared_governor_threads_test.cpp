// SPDX-License-Identifier: MIT
// shared_governor with real loops and plain threads.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "governor_support.hpp"

using namespace flow_test;
using weir::shared_governor;

namespace {

/// Never more inside than there may be.
struct room {
  explicit room(int most) : limit(most) {}
  void enter(int weight) {
    if (inside.fetch_add(weight) + weight > limit) broken = true;
  }
  void leave(int weight) { inside.fetch_sub(weight); }

  const int limit;
  std::atomic<int> inside{0};
  std::atomic<bool> broken{false};
};

}  // namespace

TEST(shared_governor, loops_and_plain_threads_together_never_exceed_the_capacity) {
  constexpr int rounds = 300;
  shared_governor g(3);
  room r(3);
  std::atomic<int> visits{0};
  auto visitor = [&]() -> task<> {
    for (int i = 0; i < rounds; ++i) {
      const int weight = 1 + i % 3;
      auto permit = co_await g.acquire(weight);
      r.enter(weight);
      if (i % 4 == 0) co_await weir::yield();
      r.leave(weight);
      ++visits;
    }
  };
  std::atomic<bool> stop{false};
  std::vector<std::jthread> outside;
  for (int i = 0; i < 2; ++i) {
    outside.emplace_back([&] {
      while (!stop) {
        auto permit = g.try_acquire();
        if (!permit) continue;
        r.enter(1);
        r.leave(1);
      }
    });
  }
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s), b(s);
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 3; ++i) {
        all.push_back(s.spawn_on(a, visitor));
        all.push_back(s.spawn_on(b, visitor));
        all.push_back(s.spawn(visitor));
      }
      for (auto& c : all) co_await c;
    });
  });
  stop = true;
  outside.clear();
  EXPECT_FALSE(r.broken);
  EXPECT_EQ(visits, 9 * rounds);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(g.waiting(), 0);
  EXPECT_EQ(g.available(), 3);
}

TEST(shared_governor, cancelled_waiters_on_other_threads_lose_no_permit) {
  constexpr int rounds = 150;
  shared_governor g(1);
  room r(1);
  auto impatient = [&]() -> task<> {
    for (int i = 0; i < rounds; ++i) {
      auto first = co_await weir::race(g.acquire(), weir::sleep(std::chrono::microseconds(i % 40)));
      if (first.index() != 0) continue;
      r.enter(1);
      if (i % 3 == 0) co_await weir::sleep(20us);
      r.leave(1);
    }
  };
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s), b(s);
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 3; ++i) {
        all.push_back(s.spawn_on(a, impatient));
        all.push_back(s.spawn_on(b, impatient));
      }
      for (auto& c : all) co_await c;
    });
  });
  EXPECT_FALSE(r.broken);
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(g.available(), 1);
}

// Without the expectation of an answer, the loop would call it a deadlock.
TEST(shared_governor, a_loop_whose_fibers_wait_for_another_thread_is_not_deadlocked) {
  shared_governor g(1);
  auto held = g.try_acquire();
  std::jthread other;
  weir::run([&]() -> task<> {
    other = std::jthread([&] {
      while (g.waiting() == 0) std::this_thread::yield();
      held->release();
    });
    auto permit = co_await g.acquire();
    EXPECT_EQ(g.active(), 1);
  });
  EXPECT_EQ(g.active(), 0);
}

TEST(shared_governor, a_loop_that_ends_gives_way_to_those_who_wait_elsewhere) {
  for (int i = 0; i < 30; ++i) {
    shared_governor g(1);
    weir::run([&]() -> task<> {
      auto held = g.try_acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto second = [&]() -> task<> {
          auto permit = co_await g.acquire();
          co_await weir::yield();
        };
        std::jthread releases;
        co_await weir::with_scope([&](weir::scope& inner) -> task<> {
          weir::loop_thread a(inner);
          inner.spawn(weir::on(a, second));
          co_await wait_until([&] { return g.waiting() == 1; });
          s.spawn(second);
          co_await wait_until([&] { return g.waiting() == 2; });
          releases = std::jthread([&] { held->release(); });
          inner.cancel();  // while the grant is on its way, or before, or after it has arrived
        });
        co_await s.join();
      });
    });
    EXPECT_EQ(g.active(), 0);
    EXPECT_EQ(g.available(), 1);
  }
}

TEST(shared_governor, closing_and_resizing_on_other_threads_wake_every_waiter) {
  shared_governor g(0);
  std::atomic<int> got{0}, refusals{0};
  auto wait = [&]() -> task<> {
    auto error = co_await error_of(g.acquire());
    if (error == nullptr) ++got;
    if (code_of(error) == errc::governor_closed) ++refusals;
  };
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s), b(s);
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 10; ++i) all.push_back(s.spawn_on(i % 2 == 0 ? a : b, wait));
      co_await wait_until([&] { return g.waiting() == 10; });
      std::jthread([&] { g.resize(1); }).join();  // permits are dropped at once: all pass
      for (auto& c : all) co_await c;
      EXPECT_EQ(got, 10);
      g.resize(0);
      all.clear();
      for (int i = 0; i < 10; ++i) all.push_back(s.spawn_on(i % 2 == 0 ? a : b, wait));
      co_await wait_until([&] { return g.waiting() == 10; });
      std::jthread([&] { g.close(); }).join();
      for (auto& c : all) co_await c;
    });
  });
  EXPECT_EQ(refusals, 10);
}

TEST(shared_governor, idle_listeners_are_called_on_the_thread_of_the_last_release) {
  shared_governor g(2);
  std::atomic<int> idle{0};
  g.on_idle([&] { ++idle; });
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 500; ++k) (void)g.try_acquire();
    });
  }
  threads.clear();
  EXPECT_GT(idle, 0);
  EXPECT_EQ(g.active(), 0);
}

TEST(shared_governor, a_policy_on_several_loops_can_share_it) {
  shared_governor g(2);
  room r(2);
  auto visit = [&]() -> task<> {
    r.enter(1);
    co_await weir::sleep(100us);
    r.leave(1);
  };
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s), b(s);
      auto limited = weir::op(visit) | weir::bulkhead(g);
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 20; ++i) all.push_back(s.spawn_on(i % 2 == 0 ? a : b, limited));
      for (auto& c : all) co_await c;
    });
  });
  EXPECT_FALSE(r.broken);
  EXPECT_EQ(g.active(), 0);
}
