// SPDX-License-Identifier: MIT
// test_clock, beyond tests/core/test_clock_test.cpp: one clock under every timer, monotonic, and
// driven by idleness.
#include "sim_support.hpp"

using namespace weir_test;

namespace {

task<> let_others_run() {
  for (int i = 0; i < 100; ++i) co_await weir::yield();
}

}  // namespace
TEST(test_clock, a_cancelled_sleep_takes_its_timer_off_the_clock) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    long timers = live_timers();
    text_log log;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto child = s.spawn([&]() -> task<> {
        co_await weir::sleep(10ms);
        log.push_back("WOKE");
      });
      co_await let_others_run();
      EXPECT_EQ(live_timers(), timers + 1);
      child.cancel();
      co_await s.idle();
      EXPECT_EQ(live_timers(), timers);
      clock.advance(1h);
      co_await let_others_run();
      EXPECT_EQ(weir::now() - t0, 1h);
    });
    EXPECT_EQ(joined(log), "");
  });
}
TEST(test_clock, between_two_timers_everything_ready_runs_however_long_it_takes) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    int turns = 0, turns_at_second = -1;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        co_await weir::sleep(10ms);
        for (; turns < 20'000; ++turns) co_await weir::yield();
        EXPECT_EQ(weir::now() - t0, 10ms);
      });
      s.spawn([&]() -> task<> {
        co_await weir::sleep(10ms + 1ns);
        turns_at_second = turns;
        EXPECT_EQ(weir::now() - t0, 10ms + 1ns);
      });
      co_await let_others_run();
      clock.advance(1h);
      co_await s.join();
    });
    EXPECT_EQ(turns_at_second, 20'000);
  });
}
TEST(test_clock, a_fiber_that_starts_during_an_advance_sleeps_within_it) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::vector<weir::duration> woke;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        co_await weir::sleep(10ms);
        s.spawn([&]() -> task<> {
          co_await weir::sleep(5ms);
          woke.push_back(weir::now() - t0);
        });
      });
      s.spawn([&]() -> task<> {
        co_await weir::sleep(20ms);
        woke.push_back(weir::now() - t0);
      });
      co_await let_others_run();
      clock.advance(20ms);
      co_await s.join();
    });
    EXPECT_EQ(woke, (std::vector<weir::duration>{15ms, 20ms}));
  });
}
TEST(test_clock, timers_of_one_instant_all_fire_although_one_fiber_throws) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::vector<int> woke;
    auto outcome = co_await weir::settle(
        weir::with_scope({.failure = weir::failure::wait_for_all}, [&](weir::scope& s) -> task<> {
          auto waker = [&](int id) -> task<> {
            co_await weir::sleep(10ms);
            woke.push_back(id);
            if (id == 1) throw boom(1);
          };
          for (int id : {0, 1, 2}) s.spawn(waker(id));
          co_await let_others_run();
          clock.advance(10ms);
          co_await s.idle();
        }));
    EXPECT_EQ(boom_of(outcome.error()), 1);
    EXPECT_EQ(woke, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(weir::now() - t0, 10ms);
  });
}
TEST(test_clock, it_never_goes_back) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto last = weir::now();
    bool monotonic = true;
    auto look = [&] {
      monotonic = monotonic && weir::now() >= last && clock.now() >= last;
      last = weir::now();
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto pusher = [&](weir::duration d) -> task<> {
        for (int i = 0; i < 20; ++i) {
          co_await weir::sleep(d);
          look();
          clock.advance(d);
          look();
        }
      };
      for (weir::duration d : {3ms, 5ms, 7ms}) s.spawn(pusher(d));
      co_await let_others_run();
      clock.advance(1ms);
      clock.advance(1s);
      co_await s.join();
    });
    EXPECT_TRUE(monotonic);
  });
}

TEST(test_clock, advances_add_up_and_nothing_passes_before_the_turn_is_given_up) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    clock.advance(10ms);
    clock.advance(0ms);
    clock.advance(20ms);
    EXPECT_EQ(weir::now(), t0);
    co_await let_others_run();
    EXPECT_EQ(weir::now() - t0, 30ms);
    EXPECT_EQ(clock.now(), weir::now());
  });
}

TEST(test_clock, sleepers_of_one_instant_all_see_that_instant_within_a_longer_advance) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::vector<weir::duration> woke;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 100; ++i) {
        s.spawn([&]() -> task<> {
          co_await weir::sleep(1h);
          woke.push_back(weir::now() - t0);
        });
      }
      co_await let_others_run();
      clock.advance(2h);
      co_await s.join();
    });
    EXPECT_EQ(woke, std::vector<weir::duration>(100, 1h));
    co_await weir::yield();
    EXPECT_EQ(weir::now() - t0, 2h);
  });
}

TEST(test_clock, without_timers_one_turn_is_enough_for_an_advance) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::yield();
    for (int hours = 1; hours <= 3; ++hours) {
      auto before = weir::now();
      clock.advance(1h);
      EXPECT_EQ(weir::now(), before);
      co_await weir::yield();
      EXPECT_EQ(weir::now() - before, 1h);
    }
  });
}

TEST(test_clock, in_the_first_turn_of_a_run_too) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto before = weir::now();
    clock.advance(1h);
    co_await weir::yield();
    EXPECT_EQ(weir::now() - before, 1h);
  });
}

TEST(test_clock, a_negative_advance_is_an_invalid_argument) {
  weir::test_clock clock;
  auto before = clock.now();
  auto error = thrown_by([&] { clock.advance(-1ns); });
  EXPECT_EQ(code_of(error), weir::errc::invalid_argument);
  EXPECT_EQ(clock.now(), before);
}

TEST(test_clock, it_goes_on_from_one_run_to_the_next) {
  weir::test_clock clock;
  clock.auto_advance(true);
  auto sleep_and_look = []() -> task<weir::time_point> {
    co_await weir::sleep(1h);
    co_return weir::now();
  };
  auto first = weir::run({.clock = &clock}, sleep_and_look);
  auto second = weir::run({.clock = &clock}, sleep_and_look);
  EXPECT_EQ(second - first, 1h);
  EXPECT_EQ(clock.now(), second);
}

TEST(test_clock, auto_advance_can_be_switched_off_again) {
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, [&]() -> task<> {
    co_await weir::sleep(1h);
    clock.auto_advance(false);
    auto t0 = weir::now();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto child = s.spawn(after(1h, 1));
      co_await let_others_run();
      EXPECT_FALSE(child.done());
      EXPECT_EQ(weir::now(), t0);
      clock.advance(30min);
      co_await let_others_run();
      EXPECT_FALSE(child.done());
      clock.auto_advance(true);
      co_await s.join();
    });
    EXPECT_EQ(weir::now() - t0, 1h);
  });
}
TEST(test_clock, deadlines_and_shield_limits_are_on_it_too) {
  weir::test_clock clock;
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto t0 = weir::now();
    std::exception_ptr late;
    weir::duration shielded{};
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        late = co_await error_of(weir::with_deadline(t0 + 10ms, after(1h, 1)));
      });
      auto stubborn = s.spawn([&]() -> task<> {
        auto left = weir::scope_exit([&] { shielded = weir::now() - t0; });
        (void)co_await weir::shield(5ms, after(1h, 1));
      });
      co_await let_others_run();
      stubborn.cancel();
      clock.advance(10ms);
      co_await s.join();
    });
    EXPECT_TRUE(holds<weir::timeout_error>(late));
    EXPECT_EQ(shielded, 5ms);
    EXPECT_EQ(weir::now() - t0, 10ms);
  });
}

TEST(test_clock, a_deadlock_is_one_on_it_too) {
  weir::test_clock clock;
  auto error = thrown_by([&] {
    weir::run({.clock = &clock}, []() -> task<> {
      weir::counting_governor gate(0, {.name = "gate"});
      (void)co_await gate.acquire();
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
}
