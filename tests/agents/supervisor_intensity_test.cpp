// SPDX-License-Identifier: MIT
// supervisor: how many restarts in which time are too many, and what happens then.
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

using booms = std::vector<int>;

constexpr int lives_in_all = test_support::sanitized ? 10'000 : 100'000;
constexpr int sample = 1'000;

/// Crashes the child with boom(1), boom(2), ... at these times from now on.
task<> crash_at(worker_ref child, std::vector<weir::duration> times) {
  const auto start = weir::now();
  int n = 0;
  for (weir::duration t : times) {
    co_await weir::sleep_until(start + t);
    child.cast(&worker::crash_with, ++n);
    for (int i = 0; i < 50; ++i) co_await weir::yield();  // it is restarted at the same time
  }
  co_await settle();
}

/// Whether the supervisor lives through crashes of one child at these times.
bool lives_through(int max_restarts, weir::duration within, std::vector<weir::duration> times) {
  bool alive = false;
  simulate(options_of(strategy::one_for_one, max_restarts, within), [&](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    co_await crash_at(a, times);
    alive = !r.result.ended;
    EXPECT_EQ(holds<weir::restart_limit_error>(r.result.error), !alive);
  });
  return alive;
}

}  // namespace
TEST(supervisor_intensity, it_is_counted_per_supervisor_and_a_group_restart_is_one_charge) {
  for (strategy how : all_strategies) {
    in_every_order(options_of(how), [&](rig& r) -> task<> {
      std::vector<worker_ref> refs;
      for (const char* name : {"a", "b", "c", "d"}) refs.push_back(r.add(name));
      co_await r.start();
      for (std::size_t i = 0; i < 3; ++i) {
        refs[i].cast(&worker::crash_with, static_cast<int>(i));
        co_await settle();
        EXPECT_FALSE(r.result.ended);
        EXPECT_EQ(counts(r.sup), "4 4 0 4");
      }
      refs[3].cast(&worker::crash_with, 3);
      co_await settle();
      EXPECT_TRUE(r.result.ended);
      EXPECT_EQ(booms_in(r.result.error), (booms{0, 1, 2, 3}));
    });
  }
}
TEST(supervisor_intensity, an_earlier_restart_counts_in_the_half_open_window_before) {
  EXPECT_TRUE(lives_through(1, 1s, {0s, 1s}));
  EXPECT_FALSE(lives_through(1, 1s, {0s, 1s - 1ns}));
  EXPECT_FALSE(lives_through(1, 1s, {0s, 0s}));
  EXPECT_TRUE(lives_through(3, 5s, {0s, 1s, 2s, 5s, 6s, 7s, 10s}));
  EXPECT_FALSE(lives_through(3, 5s, {0s, 1s, 2s, 5s, 6s, 7s, 10s - 1ns}));
  EXPECT_TRUE(lives_through(1, 1ns, {0ns, 1ns, 2ns, 3ns}));
}
TEST(supervisor_intensity, its_window_slides) {
  EXPECT_FALSE(lives_through(3, 5s, {4900ms, 4950ms, 5050ms, 5100ms}));
  EXPECT_FALSE(lives_through(3, 5s, {0s, 4900ms, 4950ms, 5050ms, 5100ms}));
  EXPECT_TRUE(lives_through(3, 5s, {0s, 4900ms, 4950ms, 5050ms}));
}
TEST(supervisor_intensity, with_zero_the_first_needed_restart_is_too_many) {
  for (strategy how : all_strategies) {
    in_every_order(options_of(how, 0), [](rig& r) -> task<> {
      auto a = r.add("a");
      r.add("b");
      co_await r.start();
      a.cast(&worker::crash_with, 5);
      co_await settle();
      EXPECT_EQ(booms_in(r.result.error), (booms{5}));
      EXPECT_EQ(r.log.text(), "+a +b -a -b");
    });
  }
}
TEST(supervisor_intensity, when_it_is_exceeded_all_children_are_stopped_in_reverse_order) {
  for (strategy how : static_strategies) {
    in_every_order(options_of(how, 2, 3600s), [](rig& r) -> task<> {
      std::vector<worker_ref> refs;
      for (const char* name : {"a", "b", "c"}) refs.push_back(r.add(name));
      co_await r.start();
      refs[0].cast(&worker::crash);
      co_await settle();
      refs[2].cast(&worker::crash);
      co_await settle();
      EXPECT_FALSE(r.result.ended);
      (void)r.log.take();
      refs[1].cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(r.log.text(), "-b -c -a");
      EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
      EXPECT_EQ(code_of(r.result.error), errc::restart_limit);
      for (auto& ref : refs) EXPECT_EQ(co_await ref.monitor(), ending::escalated);
    });
  }
}
TEST(supervisor_intensity, slow_crashes_are_restarted_for_ever) {
  std::vector<weir::duration> times;
  for (int i = 1; i <= 50; ++i) times.push_back(i * 2100ms);
  EXPECT_TRUE(lives_through(1, 1s, times));
}
TEST(supervisor_intensity, starts_that_fail_are_counted) {
  for (strategy how : all_strategies) {
    in_every_order(options_of(how, 4, 3600s), [](rig& r) -> task<> {
      auto& plan = r.keep<start_plan>(&r.log, "f");
      r.add("a");
      auto f = r.sup.add<flaky>(kid("f"), &plan);
      co_await r.start();
      f.cast(&flaky::crash);
      co_await settle();
      EXPECT_EQ(plan.starts, 5);
      EXPECT_EQ(booms_in(r.result.error), (booms{1, 1002, 1003, 1004, 1005}));
      EXPECT_EQ(r.log.begun(), r.log.ended());
    });
  }
}
TEST(supervisor_intensity, group_restarts_do_not_reset_it) {
  for (strategy how : {strategy::one_for_all, strategy::rest_for_one}) {
    in_every_order(options_of(how), [](rig& r) -> task<> {
      int crashes = 0;
      r.sup.add_task(kid("t"), [&]() -> task<> {
        ++crashes;
        throw boom(crashes);
        co_return;
      });
      r.add("a");
      co_await r.start();
      EXPECT_EQ(crashes, 4);
      EXPECT_EQ(booms_in(r.result.error), (booms{1, 2, 3, 4}));
    });
  }
}

// All errors of the window
TEST(supervisor_intensity, its_error_holds_the_errors_of_the_window_only_oldest_first) {
  simulate(options_of(strategy::one_for_one, 2, 5s), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    const std::vector<weir::duration> times{0s, 1s, 6s, 7s, 10s};
    co_await crash_at(a, times);
    EXPECT_EQ(booms_in(r.result.error), (booms{3, 4, 5}));
    EXPECT_TRUE(holds<weir::error_group>(r.result.error));
    const std::string text = what_of(r.result.error);
    EXPECT_TRUE(contains(text, "boom 5")) << text;
  });
}
TEST(supervisor_intensity, a_hundred_thousand_restarts_cost_the_same_each) {
  auto options = options_of(strategy::one_for_one, 2'000'000, 3600s);
  simulate(options, [](rig& r) -> task<> {
    auto& ignored = r.keep<journal>();
    auto a = r.sup.add<worker>(kid("a"), &ignored, std::string("a"));
    co_await r.start();
    long first = 0, last = 0;
    for (int i = 0; i < lives_in_all; ++i) {
      if (i % sample == 0) test_support::begin_to_count();
      a.cast(&worker::crash);
      while (static_cast<int>(a.info().restarts) != i + 1) co_await weir::yield();
      if (i % sample != sample - 1) continue;
      last = test_support::end_count();
      (void)ignored.take();
      if (first == 0) first = last;
    }
    EXPECT_LE(last, first + first / 20 + 8);  // the window may grow by doubling
    EXPECT_EQ(restarts_of(r.sup, "a"), lives_in_all);
    EXPECT_LE(static_cast<long>(weir::live().fibers), 10);
    EXPECT_LE(static_cast<long>(weir::live().timers), 4);
  });
}
TEST(supervisor_intensity, restarts_leave_nothing_behind) {
  simulate(patient(strategy::one_for_all), [](rig& r) -> task<> {
    auto a = r.add("a");
    r.sup.add_task(kid("t"), sleeper(r.log, "t"));
    co_await r.start();
    const auto before = weir::live();
    for (int i = 0; i < 500; ++i) {
      a.cast(&worker::crash);
      co_await settle();
    }
    const auto after = weir::live();
    EXPECT_EQ(r.log.count("+t"), 501);
    EXPECT_EQ(static_cast<long>(after.fibers), static_cast<long>(before.fibers));
    EXPECT_EQ(static_cast<long>(after.scopes), static_cast<long>(before.scopes));
    EXPECT_EQ(static_cast<long>(after.timers), static_cast<long>(before.timers));
  });
}
TEST(supervisor_intensity, a_parent_restarts_a_permanent_supervisor_that_gave_up_and_no_other) {
  for (restart kind : all_kinds) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      weir::supervisor inner(options_of(strategy::one_for_one, 0));
      auto b = inner.add<worker>(kid("b"), &r.log, std::string("b"));
      r.add("a");
      r.sup.add_supervisor(kid("inner", kind), std::move(inner));
      co_await r.start();
      b.cast(&worker::crash);
      co_await settle();
      EXPECT_FALSE(r.result.ended);
      const bool again = kind == restart::permanent;
      EXPECT_EQ(r.log.text(), again ? "+a +b -b +b" : "+a +b -b");
      if (again) {
        EXPECT_EQ(counts(r.sup), "2 2 1 1");
        EXPECT_EQ(co_await b.call(&worker::seen), 0);
      } else {
        EXPECT_EQ(counts(r.sup), kind == restart::transient ? "2 1 1 1" : "1 1 0 1");
      }
    });
  }
}
TEST(supervisor_intensity, callers_that_give_up_do_not_use_it_up) {
  simulate(options_of(strategy::one_for_one, 0), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    for (int i = 0; i < 20; ++i) {
      const auto error =
          co_await error_of(weir::with_timeout(10ms, a.call(&worker::nap, weir::duration(1s))));
      EXPECT_TRUE(holds<weir::timeout_error>(error));
    }
    co_await weir::sleep(1h);
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(r.log.text(), "+a");
  });
}
TEST(supervisor_intensity, a_crash_at_the_limit_is_heard_while_another_child_is_still_stopping) {
  in_every_order(options_of(strategy::one_for_one, 1, 3600s), [](rig& r) -> task<> {
    r.sup.add_task(kid("slow"), slow_sleeper(r.log, "slow", 2s));
    auto a = r.add("a");
    auto b = r.add("b");
    co_await r.start();
    a.cast(&worker::crash_with, 1);
    co_await settle();
    a.cast(&worker::crash_with, 2);
    co_await settle();
    b.cast(&worker::crash_with, 3);  // it is stopping or stopped already
    co_await weir::sleep(3s);
    EXPECT_TRUE(r.result.ended);
    EXPECT_EQ(booms_in(r.result.error), (booms{1, 2}));
    EXPECT_EQ(r.log.count("+a"), 2);
    EXPECT_EQ(r.log.count("+b"), 1);
  });
}
