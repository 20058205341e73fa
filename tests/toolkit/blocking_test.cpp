// SPDX-License-Identifier: MIT
// blocking in a simulation: the function is a step of its own on the one thread.
#include <functional>
#include <memory>
#include <thread>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

int simulated_calls = 0;  // of functions without captures

int twice(int n) { return 2 * n; }

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(blocking, a_function_gives_its_value_on_the_one_thread_of_a_simulation) {
  const auto home = std::this_thread::get_id();
  const auto start = weir::now();
  int seen = 0;
  auto answer = co_await weir::blocking([&] {
    EXPECT_EQ(std::this_thread::get_id(), home);
    return ++seen;
  });
  EXPECT_EQ(answer, 1);
  co_await weir::blocking([&] { ++seen; });
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(ms_since(start), 0);
}

FIBER_TEST_IN_EVERY_ORDER(blocking, an_error_is_thrown_to_the_caller_unchanged) {
  auto fail = []() -> int { throw boom(7); };
  EXPECT_EQ(boom_of(co_await error_of(weir::blocking(fail))), 7);
}

FIBER_TEST_IN_EVERY_ORDER(blocking, a_result_that_can_only_be_moved_comes_home) {
  auto made = co_await weir::blocking([] { return std::make_unique<int>(5); });
  EXPECT_EQ(*made, 5);
}

FIBER_TEST_IN_EVERY_ORDER(blocking, an_empty_callable_is_refused) {
  std::function<int()> none;
  int (*null)(int) = nullptr;
  auto plain = [&] { return weir::blocking(none); };
  auto abandonable = [&] { return weir::blocking(weir::may_abandon, null, 1); };
  EXPECT_EQ(code_of(co_await attempt(plain)), errc::empty_job);
  EXPECT_EQ(code_of(co_await attempt(abandonable)), errc::empty_job);
}

FIBER_TEST_IN_EVERY_ORDER(blocking, arguments_of_one_that_may_be_abandoned_are_kept_by_value) {
  auto join = [](std::string a, std::unique_ptr<int> b) { return a + std::to_string(*b); };
  auto op = weir::blocking(weir::may_abandon, join, std::string("x"), std::make_unique<int>(3));
  EXPECT_EQ(co_await std::move(op), "x3");
  EXPECT_EQ(co_await weir::blocking(weir::may_abandon, twice, 4), 8);
  EXPECT_EQ(co_await weir::blocking(weir::may_abandon, &twice, 5), 10);
}

FIBER_TEST_IN_EVERY_ORDER(blocking, the_function_is_destroyed_before_the_caller_goes_on) {
  auto token = std::make_shared<int>(1);
  auto fn = [token] { return *token; };
  auto op = weir::blocking(std::move(fn));
  EXPECT_EQ(token.use_count(), 2);
  auto run = [&]() -> task<> {
    EXPECT_EQ(co_await std::move(op), 1);
    EXPECT_EQ(token.use_count(), 1);
  };
  co_await run();
}

FIBER_TEST(blocking, an_operation_that_is_never_awaited_calls_nothing) {
  bool called = false;
  {
    auto op = weir::blocking([&] { called = true; });
  }
  co_await weir::sleep(1s);
  EXPECT_FALSE(called);
}

TEST(blocking, cancelled_before_its_moment_it_is_never_called_and_after_it_is_complete) {
  bool ever_called = false;
  bool ever_removed = false;
  in_every_order([&]() -> task<> {
    int called = 0;
    bool went_on = false;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto child = s.spawn([&]() -> task<> {
        co_await weir::blocking([&] { ++called; });
        went_on = true;
      });
      co_await weir::yield();
      child.cancel();
      co_await s.join();
    });
    EXPECT_LE(called, 1);
    EXPECT_TRUE(called == 1 || !went_on);
    (called == 1 ? ever_called : ever_removed) = true;
    const int before = called;
    co_await weir::sleep(1h);
    EXPECT_EQ(called, before);
  });
  EXPECT_TRUE(ever_called);
  EXPECT_TRUE(ever_removed);
}

FIBER_TEST_IN_EVERY_ORDER(blocking,
                          one_that_may_be_abandoned_is_removed_before_its_moment_without_an_event) {
  simulated_calls = 0;
  int abandoned = 0;
  auto watch = weir::on_event(
      [&](const weir::event_info& e) { abandoned += e.name == "blocking_abandoned" ? 1 : 0; });
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto child = s.spawn(weir::blocking(weir::may_abandon, [] { ++simulated_calls; }));
    child.cancel();
    co_await s.join();
  });
  co_await weir::sleep(1h);
  EXPECT_LE(simulated_calls, 1);
  EXPECT_EQ(abandoned, 0);
}

TEST(blocking, the_moments_of_two_calls_are_a_choice_of_the_adversary) {
  bool first = false;
  bool second = false;
  in_every_order([&]() -> task<> {
    std::string log;
    auto fiber = [&](char name) -> task<> { co_await weir::blocking([&] { log += name; }); };
    auto yields = [&]() -> task<> {
      co_await weir::yield();
      log += 'y';
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(fiber('a'));
      s.spawn(yields());
      co_await s.join();
    });
    EXPECT_EQ(log.size(), 2U);
    (log == "ay" ? first : second) = true;
  });
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

FIBER_TEST_IN_EVERY_ORDER(blocking, in_a_race_exactly_one_result_counts) {
  int called = 0;
  auto won = co_await weir::race(weir::blocking([&] { return ++called; }),
                                 weir::blocking([&] { return ++called; }));
  (void)won;
  EXPECT_GE(called, 1);
  EXPECT_LE(called, 2);
  const int before = called;
  co_await weir::sleep(1s);
  EXPECT_EQ(called, before);
}

FIBER_TEST(blocking, a_timeout_in_virtual_time_does_not_strike) {
  EXPECT_EQ(co_await weir::with_timeout(1ms, weir::blocking([] { return 3; })), 3);
}

TEST(blocking, of_a_loop_that_crashes_nothing_is_called_any_more) {
  for_each_seed([](weir::sim::options options) {
    weir::sim::world w(options);
    auto a = w.loop("a");
    int called = 0;
    auto token = std::make_shared<int>(1);
    w.run([&]() -> task<> {
      auto far = [&]() -> task<> {
        auto fn = [&called, token] { ++called; };
        auto op = weir::blocking(std::move(fn));
        co_await std::move(op);
        co_await weir::sleep(1h);
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto caller = s.spawn(weir::settle(weir::on(a, far)));
        for (int i = 0; i < 3; ++i) co_await weir::yield();
        w.crash("a");
        const int before = called;
        auto end = co_await std::move(caller);
        EXPECT_EQ(code_of(end.error()), errc::loop_gone);
        co_await weir::sleep(2h);
        EXPECT_EQ(called, before);
      });
    });
    EXPECT_EQ(token.use_count(), 1);
  });
}
