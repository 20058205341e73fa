// SPDX-License-Identifier: MIT
// Bounded stack and memory: long-lived periodic jobs, and groups of many jobs.
#include "support/small_stack.hpp"
#include "toolkit_support.hpp"

using namespace weir_test;
using test_support::on_a_small_stack;

TEST(every_stack, three_hundred_thousand_runs_leave_no_stack_timer_or_fiber_behind) {
  on_a_small_stack([] {
    in_order([]() -> task<> {
      const long timers = live_timers();
      const long fibers = live_fibers();
      int runs = 0;
      auto job = [&]() -> task<> {
        if (++runs == 300'000) throw boom(1);
        co_return;
      };
      const auto error = co_await error_of(weir::every(1ms, job));
      EXPECT_EQ(boom_of(error), 1);
      EXPECT_EQ(runs, 300'000);
      EXPECT_EQ(live_timers(), timers);
      EXPECT_EQ(live_fibers(), fibers);
    });
  });
}

TEST(every_stack, a_handle_may_see_as_many_runs) {
  on_a_small_stack([] {
    in_order([]() -> task<> {
      int runs = 0;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto job = [&]() -> task<> {
          ++runs;
          co_await weir::yield();
        };
        auto h = weir::start_every(s, 1ms, {.fixed_rate = true}, job);
        co_await weir::sleep(100s + 1us);
        h.stop();
        co_await h.wait();
      });
      EXPECT_EQ(runs, 100'000);
    });
  });
}

TEST(group_stack, two_hundred_thousand_jobs_run_once_each_and_are_released_meanwhile) {
  on_a_small_stack([] {
    in_order([]() -> task<> {
      long sum = 0;
      long most = 0;
      co_await weir::with_group([&](weir::group& g) -> task<> {
        for (int i = 1; i <= 200'000; ++i) {
          g.go([&sum, i]() -> task<> {
            sum += i;
            co_return;
          });
          if (i % 1000 != 0) continue;
          most = std::max(most, live_fibers());
          co_await weir::yield();
        }
        co_await g.wait();
      });
      EXPECT_EQ(sum, 200'000L * 200'001 / 2);
      EXPECT_LE(most, 2001);
    });
  });
}

TEST(group_stack, a_failure_stops_a_hundred_thousand_siblings_in_its_instant) {
  on_a_small_stack([] {
    in_order([]() -> task<> {
      const auto start = weir::now();
      long unwound = 0;
      int caught = 0;
      co_await weir::with_group([&](weir::group& g) -> task<> {
        for (int i = 0; i < 100'000; ++i) {
          g.go([&]() -> task<> {
            auto count = weir::scope_exit([&] { ++unwound; });
            co_await weir::sleep(1h);
          });
        }
        g.go(fails_after(1ms, 5));
        caught = boom_of(co_await error_of(g.wait()));
      });
      EXPECT_EQ(caught, 5);
      EXPECT_EQ(unwound, 100'000);
      EXPECT_EQ(ms_since(start), 1);
    });
  });
}
