// SPDX-License-Identifier: MIT
// rate_governor: a bucket of permits that time refills.
#include <limits>
#include <sstream>
#include <vector>

#include "governor_support.hpp"

using namespace flow_test;
using weir::rate_governor;

namespace {

/// Takes `count` permits one after the other and gives the times, in ms.
task<std::vector<long>> times_of_permits(rate_governor& g, int count) {
  std::vector<long> times;
  for (int i = 0; i < count; ++i) {
    auto permit = co_await g.acquire();
    times.push_back(now_ms());
  }
  co_return times;
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(rate_governor, it_starts_full_and_then_grants_at_its_rate) {
  rate_governor g({.per_second = 10, .burst = 3});
  EXPECT_EQ(g.available(), 3);
  auto times = co_await times_of_permits(g, 6);
  EXPECT_EQ(times, (std::vector<long>{0, 0, 0, 100, 200, 300}));
  EXPECT_EQ(live_timers(), 0);
}

FIBER_TEST(rate_governor, what_nobody_takes_is_saved_up_to_the_burst) {
  rate_governor g({.per_second = 10, .burst = 3});
  (void)co_await times_of_permits(g, 3);
  co_await weir::sleep(250ms);
  EXPECT_EQ(g.available(), 2);
  co_await weir::sleep(1h);
  EXPECT_EQ(g.available(), 3);
  const long start = now_ms();
  auto times = co_await times_of_permits(g, 4);
  EXPECT_EQ(times.at(2), start);
  EXPECT_EQ(times.at(3), start + 100);
}

FIBER_TEST(rate_governor, a_release_gives_nothing_back) {
  rate_governor g({.per_second = 1, .burst = 2});
  auto a = co_await g.acquire();
  EXPECT_EQ(g.active(), 1);
  a.release();
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(g.available(), 1);
  auto b = g.try_acquire();
  EXPECT_TRUE(b.has_value());
  EXPECT_FALSE(g.try_acquire().has_value());
  b.reset();
  EXPECT_FALSE(g.try_acquire().has_value());
}

FIBER_TEST(rate_governor, a_rate_that_does_not_divide_a_second_does_not_drift) {
  rate_governor g({.per_second = 3, .burst = 1});
  for (int i = 0; i <= 3000; ++i) (void)co_await g.acquire();
  EXPECT_EQ(weir::now().time_since_epoch(), 1000s);
  rate_governor slow({.per_second = 0.5, .burst = 1});
  for (int i = 0; i <= 10; ++i) (void)co_await slow.acquire();
  EXPECT_EQ(weir::now().time_since_epoch(), 1020s);
}

TEST(rate_governor, waiters_are_served_in_order_and_only_the_first_has_a_timer) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      rate_governor g({.per_second = 1, .burst = 1});
      auto first = g.try_acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        const text_log names{"a", "b", "c"};
        for (const std::string& name : names) {
          s.spawn(user(g, log, name, 0ms));
          co_await weir::sleep(1ms);
        }
        EXPECT_EQ(g.waiting(), 3);
        EXPECT_EQ(live_timers(), 1);
        EXPECT_FALSE(g.try_acquire().has_value());
        co_await s.join();
      });
      EXPECT_EQ(now_ms(), 3000);
    });
    EXPECT_EQ(joined(log), "a,b,c");
  });
}

FIBER_TEST_IN_EVERY_ORDER(rate_governor, weights_cost_so_many_permits_and_are_not_overtaken) {
  text_log log;
  rate_governor g({.per_second = 10, .burst = 4});
  auto three = co_await g.acquire(3);
  EXPECT_EQ(three.weight(), 3);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      auto heavy = co_await g.acquire(4);
      log.push_back("heavy " + std::to_string(now_ms()));
    });
    co_await weir::sleep(1ms);
    s.spawn([&]() -> task<> {
      auto light = co_await g.acquire();
      log.push_back("light " + std::to_string(now_ms()));
    });
    co_await s.join();
  });
  EXPECT_EQ(joined(log), "heavy 300,light 400");
  auto never = co_await attempt([&] { return g.acquire(5); });
  EXPECT_EQ(code_of(never), errc::invalid_argument);
  auto nothing = co_await attempt([&] { return g.acquire(0); });
  EXPECT_EQ(code_of(nothing), errc::invalid_argument);
}

FIBER_TEST_IN_EVERY_ORDER(rate_governor, a_cancelled_waiter_spends_nothing_and_leaves_no_timer) {
  text_log log;
  rate_governor g({.per_second = 1, .burst = 2});
  auto both = g.try_acquire(2);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto heavy = s.spawn([&]() -> task<> { (void)co_await g.acquire(2); });
    co_await weir::sleep(1ms);
    auto light = s.spawn(user(g, log, "light", 0ms));
    co_await weir::sleep(1ms);
    heavy.cancel();
    co_await light;
    EXPECT_EQ(now_ms(), 1000);  // not 2000: its timer is that of the first in the queue
    auto last = s.spawn(user(g, log, "never", 0ms));
    co_await weir::sleep(1ms);
    last.cancel();
  });
  EXPECT_EQ(live_timers(), 0);
  EXPECT_EQ(joined(log), "light");
  EXPECT_EQ(g.waiting(), 0);
}

FIBER_TEST_IN_EVERY_ORDER(rate_governor,
                          a_permit_that_is_granted_to_somebody_who_is_cancelled_is_not_spent) {
  rate_governor g({.per_second = 1, .burst = 1});
  auto first = g.try_acquire();
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto waiter = s.spawn(user(g, log, "waiter", 0ms));
    s.spawn([&]() -> task<> {
      co_await weir::sleep(1s);  // the instant of the grant
      waiter.cancel();
    });
    co_await s.join();
  });
  EXPECT_EQ(g.available(), log.empty() ? 1 : 0);
  EXPECT_EQ(g.active(), 1);
}

FIBER_TEST_IN_EVERY_ORDER(rate_governor,
                          a_permit_that_is_due_in_the_instant_of_a_timeout_is_granted) {
  rate_governor g({.per_second = 1, .burst = 1});
  auto first = g.try_acquire();
  auto second = co_await g.acquire_for(1s);
  EXPECT_TRUE(static_cast<bool>(second));
  auto late = co_await error_of(g.acquire_for(999ms));
  EXPECT_TRUE(holds<weir::timeout_error>(late));
}

FIBER_TEST(rate_governor, closing_fails_waiters_and_stops_its_timer) {
  rate_governor g({.name = "api", .per_second = 1, .burst = 1});
  auto first = g.try_acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      auto error = co_await error_of(g.acquire());
      EXPECT_EQ(code_of(error), errc::governor_closed);
    });
    co_await weir::sleep(1ms);
    g.close();
    EXPECT_EQ(live_timers(), 0);
  });
  EXPECT_EQ(now_ms(), 1);
}

TEST(rate_governor, options_that_make_no_sense_are_refused_with_their_name) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double bad : {0.0, -1.0, nan}) {
    auto error = thrown_by([&] { rate_governor g({.name = "api", .per_second = bad}); });
    EXPECT_EQ(code_of(error), errc::invalid_argument) << bad;
    EXPECT_TRUE(contains(what_of(error), "rate_governor 'api': per_second")) << what_of(error);
  }
  EXPECT_EQ(refused([] { rate_governor g({.per_second = 1, .burst = 0}); }),
            errc::invalid_argument);
  EXPECT_EQ(refused([] { rate_governor g({.per_second = 1, .max_waiting = -1}); }),
            errc::invalid_argument);
  rate_governor fine({.per_second = 10, .burst = 5});
  static_assert(std::is_trivially_destructible_v<weir::rate_options>);
}

// A home that has ended passes on, also to a loop whose clock shows an earlier time.
TEST(rate_governor, on_a_loop_with_another_clock_it_goes_on_with_what_is_in_the_bucket) {
  rate_governor g({.per_second = 1, .burst = 3});
  simulate([&]() -> task<> {
    co_await weir::sleep(1h);
    (void)co_await g.acquire(2);
  });
  simulate([&]() -> task<> {
    EXPECT_EQ(g.available(), 1);
    (void)co_await g.acquire(2);
    EXPECT_EQ(now_ms(), 1000);
  });
}

FIBER_TEST(rate_governor, the_dump_says_when_the_next_one_is_due) {
  rate_governor g({.name = "api", .per_second = 2, .burst = 1});
  auto first = g.try_acquire();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    text_log log;
    auto waiter = s.spawn(user(g, log, "a", 0ms));
    co_await weir::sleep(100ms);
    std::ostringstream tree;
    weir::dump(tree);
    EXPECT_TRUE(contains(tree.str(), "acquire of governor 'api' (the next in 400 ms)"))
        << tree.str();
    waiter.cancel();
  });
}
