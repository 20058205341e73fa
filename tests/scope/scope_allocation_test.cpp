// SPDX-License-Identifier: MIT
// How often weir allocates, counted and not timed. Once the caches are warm, parking, waking,
// sleeping and racing waits allocate nothing, and a cancellation one reason record.
#include <cstddef>

#include "scope_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// ThreadSanitizer brings operators of its own that cannot be replaced; nothing is counted there.
#if !WEIR_TEST_TSAN

using namespace weir_test;

namespace {

// Under ASan every frame is an allocation of its own, so counts that include frames do not hold.
constexpr bool frames_are_cached = !test_support::sanitized;

using test_support::allocations;
using test_support::armed;

/// Counts the allocations of this thread from here to taken().
class counting {
 public:
  counting() {
    allocations = 0;
    armed = true;
  }
  counting(const counting&) = delete;
  counting& operator=(const counting&) = delete;
  ~counting() { armed = false; }

  long taken() const {
    armed = false;
    return allocations;
  }
};

/// Runs `op` on the scheduler of production with a clock that jumps to the next timer.
template <class Op>
void run_on_test_clock(Op op) {
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, std::move(op));
}

/// Calls `round` twice and gives the allocations of the second call, when all caches are warm.
template <class Round>
weir::task<long> allocations_when_warm(Round round) {
  co_await round();
  const counting count;
  co_await round();
  co_return count.taken();
}

}  // namespace

TEST(allocation, the_counter_counts_what_this_thread_asks_for) {
  const counting count;
  void* memory = ::operator new(1);  // a call: a new expression may be optimised away
  ::operator delete(memory);
  EXPECT_EQ(count.taken(), 1);
}

TEST(allocation, a_race_over_waits_of_several_kinds_asks_for_nothing) {
  if (!frames_are_cached) return;
  run_on_test_clock([]() -> weir::task<> {
    weir::counting_governor g(0);
    auto round = [&]() -> weir::task<> {
      co_await weir::race(weir::sleep(1ms), weir::sleep(1h));
      (void)co_await weir::race(g.acquire(), weir::sleep(1ms));
      (void)co_await weir::any(g.acquire(), weir::sleep(1ms));
      co_await weir::with_timeout(1h, weir::sleep(1ms));
    };
    const long taken = co_await allocations_when_warm(round);
    EXPECT_EQ(taken, 0);
  });
}

TEST(allocation, yielding_and_sleeping_ask_for_nothing) {
  run_on_test_clock([]() -> weir::task<> {
    co_await weir::sleep(1ms);
    const counting count;
    for (int i = 0; i < 1000; ++i) {
      co_await weir::sleep(1ms);
      co_await weir::yield();
      co_await weir::checkpoint();
      co_await weir::sleep_until(weir::now() + 1ms);
    }
    EXPECT_EQ(count.taken(), 0);
  });
}

TEST(allocation, parking_on_a_future_and_being_woken_ask_for_nothing) {
  run_on_test_clock([]() -> weir::task<> {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      int woken = 0;
      auto source = s.spawn(after(10ms, 1));
      std::vector<weir::child<void>> waiting;
      for (int i = 0; i < 100; ++i) {
        waiting.push_back(s.spawn([&]() -> weir::task<> {
          co_await weir::sleep(5ms);
          woken += co_await source;
        }));
      }
      co_await weir::sleep(1ms);
      const counting count;
      co_await weir::sleep(20ms);
      const long taken = count.taken();
      EXPECT_EQ(woken, 100);
      EXPECT_EQ(taken, 0);
      co_await s.join();
    });
  });
}

/// The statistics remember what was cancelled under which name, from the first time on.
weir::task<> cancel_once() {
  co_await weir::settle(weir::with_scope([](weir::scope& s) -> weir::task<> {
    auto child = s.spawn(sleep_for(1h));
    co_await weir::sleep(1ms);
    child.cancel();
    s.cancel();
    co_await weir::sleep(1h);
  }));
}

// One reason record for the scope that is cancelled, nothing for its fibers.
TEST(allocation, cancelling_a_scope_asks_for_one_reason_record_at_most) {
  run_on_test_clock([]() -> weir::task<> {
    co_await cancel_once();
    int gone = 0;
    long taken = -1;
    auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
      for (int i = 0; i < 1000; ++i) {
        s.spawn([&]() -> weir::task<> {
          auto guard = weir::scope_exit([&] { ++gone; });
          co_await weir::sleep(1h);
        });
      }
      auto guard = weir::scope_exit([&] {
        taken = allocations;
        armed = false;
      });
      co_await weir::sleep(1ms);
      allocations = 0;
      armed = true;
      s.cancel();
      co_await weir::sleep(1h);
    }));
    EXPECT_TRUE(ended.is_cancelled());
    EXPECT_EQ(gone, 1000);
    EXPECT_GE(taken, 0);
    EXPECT_LE(taken, 1);
  });
}

TEST(allocation, cancelling_one_child_asks_for_one_reason_record_at_most) {
  run_on_test_clock([]() -> weir::task<> {
    co_await cancel_once();
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      auto child = s.spawn(sleep_for(1h));
      co_await weir::sleep(1ms);
      const counting count;
      child.cancel();
      co_await s.idle();
      EXPECT_LE(count.taken(), 1);
      EXPECT_TRUE(child.peek()->is_cancelled());
    });
  });
}

TEST(allocation, racing_waits_ask_for_nothing_and_start_no_fiber) {
  run_on_test_clock([]() -> weir::task<> {
    auto round = []() -> weir::task<> {
      for (int i = 0; i < 100; ++i) {
        co_await weir::race(weir::sleep(1ms), weir::sleep(1h), weir::sleep(2h));
        co_await weir::with_timeout(1h, weir::sleep(1ms));
      }
    };
    const long taken = co_await allocations_when_warm(round);
    EXPECT_EQ(frames_are_cached ? taken : 0, 0);
    long fibers_inside = -1;
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      s.spawn([&]() -> weir::task<> {
        co_await weir::sleep(1ms);
        fibers_inside = live_fibers();
      });
      const long fibers = live_fibers();
      co_await weir::race(weir::sleep(2ms), weir::sleep(1h));
      EXPECT_EQ(fibers_inside, fibers);
    });
    EXPECT_EQ(live_timers(), 0);
  });
}

TEST(allocation, awaiting_ready_tasks_asks_for_nothing_once_the_caches_are_warm) {
  run_on_test_clock([]() -> weir::task<> {
    int sum = 0;
    auto round = [&]() -> weir::task<> {
      for (int i = 0; i < 1000; ++i) sum += co_await ready(1);
    };
    const long taken = co_await allocations_when_warm(round);
    EXPECT_EQ(sum, 2000);
    EXPECT_EQ(frames_are_cached ? taken : 0, 0);
  });
}

TEST(allocation, spawning_and_joining_ask_for_nothing_once_the_caches_are_warm) {
  run_on_test_clock([]() -> weir::task<> {
    int finished = 0;
    auto round = [&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        for (int i = 0; i < 500; ++i) {
          s.spawn([&]() -> weir::task<> {
            co_await weir::sleep(1ms);
            ++finished;
          });
        }
        co_await s.join();
      });
    };
    const long taken = co_await allocations_when_warm(round);
    EXPECT_EQ(finished, 1000);
    EXPECT_EQ(frames_are_cached ? taken : 0, 0);
  });
}

// Also a cold cache, and ASan, see one allocation for the frame and one for the fiber's record.
TEST(allocation, a_spawned_child_asks_for_a_frame_and_a_record_at_most) {
  run_on_test_clock([]() -> weir::task<> {
    co_await weir::with_scope([](weir::scope& s) -> weir::task<> {
      constexpr int children = 3000;
      const counting count;
      for (int i = 0; i < children; ++i) s.spawn(ready(i));
      const long taken = count.taken();
      EXPECT_LE(taken, 2 * children);
      co_await s.join();
    });
  });
}

TEST(allocation, settle_timeout_and_scope_ask_for_nothing_once_the_caches_are_warm) {
  run_on_test_clock([]() -> weir::task<> {
    auto round = []() -> weir::task<> {
      for (int i = 0; i < 100; ++i) {
        auto ended = co_await weir::settle(after(1ms, 1));
        if (!ended.is_value()) throw boom(1);
        co_await weir::with_timeout(1h, ready(1));
        co_await weir::with_scope([](weir::scope& s) -> weir::task<> { co_await s.join(); });
      }
    };
    const long taken = co_await allocations_when_warm(round);
    EXPECT_EQ(frames_are_cached ? taken : 0, 0);
  });
}

#endif
