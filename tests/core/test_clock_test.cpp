// SPDX-License-Identifier: MIT
// Time and random numbers: virtual time is exact, test_clock is advanced by the test, and wall
// time, random numbers and uuids come from the loop's environment.
#include <chrono>
#include <optional>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

/// Sleeps `times` times for `d` and writes down when it woke.
task<> ticker(weir::duration d, int times, weir::time_point t0, std::vector<weir::duration>& woke) {
  for (int i = 0; i < times; ++i) {
    co_await weir::sleep(d);
    woke.push_back(weir::now() - t0);
  }
}

/// Gives up the turn often enough for everything that is ready to run.
task<> let_others_run() {
  for (int i = 0; i < 100; ++i) co_await weir::yield();
}

}  // namespace
FIBER_TEST(clock, virtual_time_is_exact_to_the_nanosecond) {
  auto t0 = weir::now();
  co_await weir::sleep(1ns);
  EXPECT_EQ(weir::now() - t0, 1ns);
  co_await weir::sleep(24h * 365);
  EXPECT_EQ(weir::now() - t0, 24h * 365 + 1ns);
  co_await weir::sleep_until(t0 + 24h * 400);
  EXPECT_EQ(weir::now() - t0, 24h * 400);
  co_await weir::sleep_until(t0);  // the past is a yield
  EXPECT_EQ(weir::now() - t0, 24h * 400);
}

TEST(clock, sleepers_wake_in_the_order_of_their_times) {
  for_each_order([](weir::sim::world& w) {
    std::vector<int> order;
    w.run([&]() -> task<> {
      auto t0 = weir::now();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto sleeper = [&](int ms) -> task<> {
          co_await weir::sleep(ms * 1ms);
          order.push_back(ms);
        };
        for (int i = 0; i < 50; ++i) s.spawn(sleeper((i * 37) % 50 + 1));
        co_await s.join();
      });
      EXPECT_EQ(weir::now() - t0, 50ms);
    });
    EXPECT_EQ(order.size(), 50u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  });
}

// In the order of production only: an adversary may choose among timers of one instant.
TEST(clock, sleeps_of_the_same_end_wake_in_the_order_they_began) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> task<> {
    std::vector<int> order;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto sleeper = [&](int id) -> task<> {
        co_await weir::sleep(10ms);
        order.push_back(id);
      };
      for (int i = 0; i < 5; ++i) s.spawn(sleeper(i));
      co_await s.join();
    });
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  });
}

// That the other one is first holds in the order of production only.
TEST(clock, zero_and_negative_sleeps_are_yields) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> task<> {
    auto t0 = weir::now();
    text_log log;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        log.push_back("other");
        co_return;
      });
      long timers = live_timers();
      co_await weir::sleep(0ms);
      log.push_back("zero");
      co_await weir::sleep(-1h);
      log.push_back("negative");
      EXPECT_EQ(live_timers(), timers);
    });
    EXPECT_EQ(joined(log), "other,zero,negative");
    EXPECT_EQ(weir::now(), t0);
  });
}

// The order among what is ready, which an adversary does not keep.
TEST(clock, a_yield_goes_to_the_back_of_the_ready_queue) {
  weir::sim::run({.seed = 1, .strategy = weir::sim::fifo}, []() -> task<> {
    text_log log;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto twice = [&](std::string name) -> task<> {
        log.push_back(name + "1");
        co_await weir::yield();
        log.push_back(name + "2");
      };
      s.spawn(twice("a"));
      s.spawn(twice("b"));
      s.spawn(twice("c"));
      co_await s.join();
    });
    EXPECT_EQ(joined(log), "a1,b1,c1,a2,b2,c2");
  });
}

FIBER_TEST_IN_EVERY_ORDER(clock, time_stands_still_while_anything_is_ready) {
  auto t0 = weir::now();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(after(1ns, 1));
    co_await let_others_run();
    EXPECT_EQ(weir::now(), t0);
  });
  EXPECT_EQ(weir::now() - t0, 1ns);
}

TEST(clock, now_is_read_at_most_once_per_step_of_a_fiber) {
  weir::run([]() -> task<> {
    auto first = weir::now();
    auto until = std::chrono::steady_clock::now() + 1ms;
    while (std::chrono::steady_clock::now() < until) {
    }
    EXPECT_EQ(weir::now(), first);
    co_await weir::yield();
    EXPECT_GE(weir::now() - first, 1ms);
  });
}

TEST(clock, on_the_real_clock_a_sleep_is_never_too_short) {
  weir::run([]() -> task<> {
    auto began = std::chrono::steady_clock::now();
    co_await weir::sleep(1ms);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 1ms);
  });
}

TEST(clock, outside_a_fiber_everything_about_time_says_no_current_fiber) {
  std::vector<std::exception_ptr> errors{
      thrown_by([] { return weir::now(); }),
      thrown_by([] { return weir::wall_now(); }),
      thrown_by([] { return weir::random(); }),
      thrown_by([] { return weir::uuid(); }),
      thrown_by([] { (void)weir::sleep(1ms); }),
      thrown_by([] { (void)weir::sleep_until(weir::time_point{}); }),
      thrown_by([] { (void)weir::yield(); }),
      thrown_by([] { (void)weir::checkpoint(); }),
      thrown_by([] { (void)weir::this_scope(); }),
      thrown_by([] { (void)weir::this_context(); }),
  };
  for (std::size_t i = 0; i < errors.size(); ++i)
    EXPECT_EQ(code_of(errors[i]), weir::errc::no_current_fiber) << "entry " << i;
}

FIBER_TEST(clock, wall_time_moves_with_virtual_time_and_starts_in_2000) {
  auto start = weir::wall_now();
  std::chrono::sys_days day = std::chrono::year{2000} / 1 / 1;
  EXPECT_TRUE(start == day);
  co_await weir::sleep(90min);
  EXPECT_TRUE(weir::wall_now() - start == 90min);
}

TEST(clock, random_numbers_and_uuids_depend_on_the_seed_only) {
  auto draw = [](weir::sim::options options) {
    return weir::sim::run(options, []() -> task<std::vector<std::string>> {
      std::vector<std::string> drawn;
      for (int i = 0; i < 100; ++i) {
        drawn.push_back(std::to_string(weir::random()));
        auto id = weir::uuid();
        auto other = weir::uuid();
        EXPECT_FALSE(id == other);
        co_await weir::yield();
      }
      co_return drawn;
    });
  };
  auto first = draw({.seed = 1});
  EXPECT_EQ(first, draw({.seed = 1}));
  EXPECT_NE(first, draw({.seed = 2}));
  EXPECT_NE(first.front(), first.back());
  auto uuid_of = [](std::uint64_t seed) {
    return weir::sim::run({.seed = seed},
                          []() -> task<decltype(weir::uuid())> { co_return weir::uuid(); });
  };
  EXPECT_TRUE(uuid_of(1) == uuid_of(1));
  EXPECT_FALSE(uuid_of(1) == uuid_of(2));
}

TEST(test_clock, it_stands_still_until_it_is_advanced) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto sleeper = s.spawn(after(1h, 7));
      co_await let_others_run();
      EXPECT_EQ(weir::now(), t0);
      clock.advance(59min);
      co_await let_others_run();
      EXPECT_FALSE(sleeper.done());
      EXPECT_EQ(weir::now() - t0, 59min);
      clock.advance(1min);
      int value = co_await sleeper;
      EXPECT_EQ(value, 7);
      EXPECT_EQ(weir::now() - t0, 1h);
    });
  });
}
TEST(test_clock, chained_sleeps_all_fire_within_one_advance_each_at_its_time) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::vector<weir::duration> woke;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(ticker(10ms, 3, t0, woke));
      co_await let_others_run();
      clock.advance(30ms);
      co_await s.join();
    });
    EXPECT_EQ(woke, (std::vector<weir::duration>{10ms, 20ms, 30ms}));
    EXPECT_EQ(weir::now() - t0, 30ms);
  });
}
TEST(test_clock, advancing_from_a_fiber_that_a_timer_woke_never_turns_time_back) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::vector<weir::duration> woke;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        co_await weir::sleep(10ms);
        woke.push_back(weir::now() - t0);
        clock.advance(100ms);
        co_await weir::sleep(50ms);
        woke.push_back(weir::now() - t0);
      });
      s.spawn(ticker(20ms, 2, t0, woke));
      co_await let_others_run();
      clock.advance(20ms);
      co_await s.join();
    });
    EXPECT_EQ(woke, (std::vector<weir::duration>{10ms, 20ms, 40ms, 60ms}));
  });
}
TEST(test_clock, a_fiber_that_throws_does_not_stop_the_clock) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::vector<weir::duration> woke;
    auto o = co_await weir::settle(
        weir::with_scope({.failure = weir::failure::wait_for_all}, [&](weir::scope& s) -> task<> {
          s.spawn(fails_after(5ms, 1));
          s.spawn(ticker(10ms, 2, t0, woke));
          co_await let_others_run();
          clock.advance(20ms);
        }));
    EXPECT_EQ(boom_of(o.error()), 1);
    EXPECT_EQ(woke, (std::vector<weir::duration>{10ms, 20ms}));
  });
}
TEST(test_clock, timeouts_and_graces_are_on_it_too) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::exception_ptr timed, overdue;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(
          [&]() -> task<> { timed = co_await error_of(weir::with_timeout(10ms, after(1h, 1))); });
      s.spawn([&]() -> task<> {
        overdue =
            co_await error_of(weir::with_scope({.grace = 20ms}, [](weir::scope& inner) -> task<> {
              inner.defer([]() -> task<> { co_await weir::sleep(1h); });
              co_return;
            }));
      });
      co_await let_others_run();
      clock.advance(20ms);
      co_await s.join();
    });
    EXPECT_TRUE(holds<weir::timeout_error>(timed));
    EXPECT_TRUE(holds<weir::timeout_error>(overdue));
    EXPECT_EQ(weir::now() - t0, 20ms);
  });
}
TEST(test_clock, with_auto_advance_it_jumps_when_everything_sleeps) {
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, []() -> task<> {
    auto t0 = weir::now();
    co_await weir::sleep(1000h);
    EXPECT_EQ(weir::now() - t0, 1000h);
    std::vector<weir::duration> woke;
    auto t1 = weir::now();
    co_await ticker(7ms, 3, t1, woke);
    EXPECT_EQ(woke, (std::vector<weir::duration>{7ms, 14ms, 21ms}));
  });
}
