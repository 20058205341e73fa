// SPDX-License-Identifier: MIT
// blocking on real threads: how many, in which order, and what a cancelled caller waits for.
#include <atomic>
#include <csignal>
#include <latch>
#include <memory>
#include <sstream>
#include <thread>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

std::string dumped() {
  std::ostringstream out;
  weir::dump(out);
  return out.str();
}

/// The calls of one test that may be abandoned, and the gate that they wait for.
struct stuck_calls {
  std::latch gate{1};
  std::atomic<int> started{0};
  std::atomic<int> done{0};
};
using stuck_ref = std::shared_ptr<stuck_calls>;

void get_stuck(const stuck_ref& calls) {
  ++calls->started;
  calls->gate.wait();
  ++calls->done;
}

/// Calls that hold all 64 threads until the gate opens.
struct full_pool {
  explicit full_pool(weir::scope& s) {
    for (int i = 0; i < 64; ++i)
      s.spawn(weir::blocking([this] {
        ++inside;
        gate.wait();
      }));
  }
  std::latch gate{1};
  std::atomic<int> inside{0};
};

}  // namespace

namespace {

/// Whether this thread blocks SIGTERM.
bool blocks_sigterm() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGTERM) == 1;
}

}  // namespace

TEST(blocking, has_the_signal_mask_of_the_program_also_from_a_loop_that_blocks_signals) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 1});
      auto there = [] { return weir::blocking([] { return blocks_sigterm(); }); };
      auto loops_own = []() -> task<bool> { co_return blocks_sigterm(); };
      EXPECT_TRUE(co_await weir::on(rt.at(0), loops_own));
      EXPECT_FALSE(co_await weir::on(rt.at(0), there));
    });
  });
}

TEST(blocking, runs_on_another_thread_and_comes_home) {
  weir::run([]() -> task<> {
    const auto home = std::this_thread::get_id();
    auto there = co_await weir::blocking([&] {
      EXPECT_FALSE(blocks_sigterm());
      return std::this_thread::get_id();
    });
    EXPECT_NE(there, home);
    EXPECT_EQ(std::this_thread::get_id(), home);
    auto made = co_await weir::blocking([] { return std::make_unique<int>(5); });
    EXPECT_EQ(*made, 5);
    EXPECT_EQ(boom_of(co_await error_of(weir::blocking([]() -> int { throw boom(3); }))), 3);
  });
}

TEST(blocking, the_loop_goes_on_meanwhile_and_is_not_deadlocked) {
  weir::run([]() -> task<> {
    std::latch gate(1);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto call = s.spawn(weir::blocking([&] { gate.wait(); }));
      co_await weir::sleep(2ms);
      gate.count_down();
      co_await call;
    });
    std::atomic<bool> go = false;
    std::thread other([&] {
      for (int i = 0; i < 2000; ++i) std::this_thread::yield();
      go = true;
      go.notify_one();
    });
    co_await weir::blocking([&] { go.wait(false); });  // nothing else could wake this loop
    other.join();
  });
}

TEST(blocking, eighty_at_once_run_on_exactly_64_threads_and_all_finish) {
  std::latch gate(1);
  std::atomic<int> inside{0}, most{0}, done{0};
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 80; ++i)
        s.spawn(weir::blocking([&] {
          raise_to(most, ++inside);
          gate.wait();
          --inside;
          ++done;
        }));
      co_await wait_until([&] { return inside == 64; });
      co_await weir::sleep(10ms);
      EXPECT_EQ(inside, 64);
      const std::string tree = dumped();
      EXPECT_TRUE(contains(tree, "blocking, running")) << tree;
      EXPECT_TRUE(contains(tree, "blocking, queued as number 1")) << tree;
      EXPECT_TRUE(contains(tree, "blocking, queued as number 16")) << tree;
      EXPECT_FALSE(contains(tree, "blocking, queued as number 17")) << tree;
      gate.count_down();
      co_await s.join();
    });
  });
  EXPECT_EQ(most, 64);
  EXPECT_EQ(done, 80);
}

TEST(blocking, further_callers_get_their_threads_in_order) {
  std::vector<int> begun;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::latch last(1);
      std::latch others(1);
      std::atomic<int> inside{0};
      for (int i = 0; i < 64; ++i)
        s.spawn(weir::blocking([&, i] {
          ++inside;
          (i == 0 ? last : others).wait();
        }));
      co_await wait_until([&] { return inside == 64; });
      for (int i = 0; i < 100; ++i) s.spawn(weir::blocking([&, i] { begun.push_back(i); }));
      co_await weir::sleep(5ms);
      EXPECT_TRUE(begun.empty());
      last.count_down();  // one thread for all of them: no two touch `begun` at once
      co_await wait_until([&] { return s.size() == 63; });
      others.count_down();
      co_await s.join();
    });
  });
  ASSERT_EQ(begun.size(), 100U);
  EXPECT_TRUE(std::is_sorted(begun.begin(), begun.end()));
}

TEST(blocking, a_queued_call_is_removed_at_once_and_a_running_one_is_waited_for) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      full_pool full(s);
      co_await wait_until([&] { return full.inside == 64; });
      bool called = false;
      auto queued = s.spawn(weir::blocking([&] { called = true; }));
      auto next = s.spawn(weir::blocking([&] { return 1; }));
      co_await weir::sleep(1ms);
      queued.cancel();
      EXPECT_TRUE((co_await weir::settle(queued)).is_cancelled());
      EXPECT_EQ(full.inside, 64);
      full.gate.count_down();
      EXPECT_EQ(co_await next, 1);
      EXPECT_FALSE(called);
      co_await s.join();
    });
    std::latch gate(1);
    std::atomic<bool> begun{false};
    bool ended = false;
    bool delivered = false;
    bool too_far = false;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto running = s.spawn([&]() -> task<> {
        const int got = co_await weir::blocking([&] {
          begun = true;
          gate.wait();
          ended = true;
          return 4;
        });
        delivered = got == 4;
        co_await weir::yield();
        too_far = true;
      });
      co_await wait_until([&] { return begun.load(); });
      running.cancel();
      co_await weir::sleep(5ms);
      EXPECT_FALSE(running.done());
      gate.count_down();
      EXPECT_TRUE((co_await weir::settle(running)).is_cancelled());
      EXPECT_TRUE(ended && delivered);
      EXPECT_FALSE(too_far);
    });
  });
}

TEST(blocking, abandoned_ones_do_not_count_against_the_limit_and_are_not_silent) {
  int heard = 0;
  const auto calls = std::make_shared<stuck_calls>();
  weir::run([&]() -> task<> {
    const auto before = weir::stats().counter("blocking", "blocking_abandoned");
    auto watch = weir::on_event([&](const weir::event_info& e) {
      heard += e.name == "blocking_abandoned" && e.object == "blocking" ? 1 : 0;
    });
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 1; i <= 70; ++i) {
        auto stuck = s.spawn(weir::blocking(weir::may_abandon, get_stuck, calls));
        co_await wait_until([&] { return calls->started == i; });
        stuck.cancel();
        EXPECT_TRUE((co_await weir::settle(stuck)).is_cancelled());
        EXPECT_EQ(heard, i);
      }
    });
    EXPECT_EQ(calls->done, 0);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      full_pool full(s);
      co_await wait_until([&] { return full.inside == 64; });
      full.gate.count_down();
      co_await s.join();
    });
    EXPECT_EQ(weir::stats().counter("blocking", "blocking_abandoned") - before, 70U);
    calls->gate.count_down();
    co_await wait_until([&] { return calls->done == 70; });
    EXPECT_EQ(co_await weir::blocking([] { return 1; }), 1);
  });
}

TEST(blocking, an_abandoned_call_gives_its_place_to_the_next_in_the_queue) {
  const auto calls = std::make_shared<stuck_calls>();
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::vector<weir::child<void>> stuck;
      for (int i = 0; i < 64; ++i)
        stuck.push_back(s.spawn(weir::blocking(weir::may_abandon, get_stuck, calls)));
      co_await wait_until([&] { return calls->started == 64; });
      auto next = s.spawn(weir::blocking([] { return 8; }));
      co_await weir::sleep(2ms);
      EXPECT_FALSE(next.done());
      stuck[17].cancel();
      EXPECT_EQ(co_await next, 8);
      calls->gate.count_down();
      co_await s.join();
    });
  });
}

TEST(blocking, run_does_not_wait_for_an_abandoned_call_whose_result_is_destroyed_by_its_thread) {
  static std::atomic<int> alive{0};
  struct counted {
    counted() { ++alive; }
    counted(counted&&) noexcept { ++alive; }
    counted& operator=(counted&&) = delete;
    ~counted() { --alive; }
  };
  const auto calls = std::make_shared<stuck_calls>();
  auto slow = [](const stuck_ref& stuck, counted given) {
    get_stuck(stuck);
    return given;
  };
  weir::run([&]() -> task<> {
    auto limited = [&]() -> task<> {
      auto op = weir::blocking(weir::may_abandon, slow, calls, counted());
      (void)co_await weir::with_timeout(20ms, std::move(op));
    };
    EXPECT_TRUE(holds<weir::timeout_error>(co_await attempt(limited)));
  });
  // If no thread began it within the limit, it was removed from the queue.
  const int begun = calls->started;
  calls->gate.count_down();
  while (calls->done != begun || alive != 0) std::this_thread::yield();
  EXPECT_EQ(alive, 0);
}

TEST(blocking, calls_of_many_loops_and_cancellations_at_any_moment_lose_nothing) {
  std::atomic<int> called{0};
  std::atomic<int> delivered{0};
  auto program = [&]() -> task<> {
    for (int round = 0; round < 30; ++round) {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (int i = 0; i < 20; ++i) {
          auto call = [&]() -> task<> {
            delivered += co_await weir::blocking([&] { return ++called, 1; });
          };
          auto child = s.spawn(call);
          if (i % 3 == 0) s.spawn(weir::blocking(weir::may_abandon, [] { return 1; })).cancel();
          if (i % 4 == 0) co_await weir::yield();
          if (i % 5 == 0) child.cancel();
        }
        co_await s.join();
      });
    }
  };
  std::vector<std::thread> loops;
  for (int i = 0; i < 4; ++i) loops.emplace_back([&] { weir::run(program); });
  for (std::thread& t : loops) t.join();
  EXPECT_EQ(called, delivered);
  EXPECT_GT(called, 0);
}
