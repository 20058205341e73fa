// SPDX-License-Identifier: MIT
// run: what it returns and throws, its options, nesting, and the detection of a deadlocked
// loop.
#include <memory>
#include <optional>
#include <type_traits>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

/// Two children that wait for each other.
task<> deadlocked(text_log& log) {
  std::optional<weir::future<void>> left, right;
  auto wait_for = [&](std::optional<weir::future<void>>& other, std::string name) -> task<> {
    end_note gone(log, name);
    co_await weir::yield();
    co_await *other;
  };
  co_await weir::with_scope({.name = "crossroads"}, [&](weir::scope& s) -> task<> {
    s.defer([&]() -> task<> {
      log.push_back("defer");
      co_await weir::sleep(1h);
      log.push_back("NEVER");
    });
    left = s.spawn(wait_for(right, "left"), {.name = "left car"});
    right = s.spawn(wait_for(left, "right"), {.name = "right car"});
    co_await s.join();
  });
}

}  // namespace
TEST(run, it_returns_the_value_of_a_task_or_callable) {
  EXPECT_EQ(weir::run(ready(4)), 4);
  EXPECT_EQ(weir::run([]() -> task<int> { co_return 5; }), 5);
  EXPECT_EQ(weir::run([](weir::context&) -> task<int> { co_return 6; }), 6);
  std::unique_ptr<int> box = weir::run([]() -> task<std::unique_ptr<int>> {
    co_await weir::yield();
    co_return std::make_unique<int>(7);
  });
  EXPECT_EQ(*box, 7);
  bool ran = false;
  weir::run([&]() -> task<> {
    ran = true;
    co_return;
  });
  EXPECT_TRUE(ran);
}
TEST(run, it_throws_the_error_unchanged) {
  auto error = thrown_by([] {
    weir::run([]() -> task<> {
      co_await weir::yield();
      throw boom(3);
    });
  });
  EXPECT_EQ(boom_of(error), 3);
  auto number = thrown_by([] {
    weir::run([]() -> task<> {
      throw 42;
      co_return;
    });
  });
  EXPECT_TRUE(holds<int>(number));
}
TEST(run, inside_a_running_loop_is_refused_and_the_loop_goes_on) {
  bool inner_ran = false, went_on = false;
  auto inner = [&]() -> task<int> {
    inner_ran = true;
    co_return 1;
  };
  weir::run([&]() -> task<> {
    auto error = thrown_by([&] { return weir::run(inner); });
    EXPECT_EQ(code_of(error), weir::errc::nested_run);
    auto simulated = thrown_by([&] { return weir::sim::run({.seed = 1}, inner); });
    EXPECT_EQ(code_of(simulated), weir::errc::nested_run);
    co_await weir::yield();
    went_on = true;
  });
  EXPECT_FALSE(inner_ran);
  EXPECT_TRUE(went_on);
}

TEST(run, options_are_trivially_destructible_aggregates) {
  static_assert(std::is_aggregate_v<weir::run_options>);
  static_assert(std::is_trivially_destructible_v<weir::run_options>);
  static_assert(std::is_trivially_destructible_v<weir::scope_options>);
  static_assert(std::is_trivially_destructible_v<weir::spawn_options>);
  static_assert(std::is_trivially_destructible_v<weir::governor_options>);
  static_assert(std::is_trivially_copyable_v<weir::loop_ref>);
  weir::run({.name = "app"}, []() -> task<> {
    EXPECT_TRUE(contains(weir::this_scope().name(), "app"));
    co_return;
  });
}

TEST(run, an_empty_callable_is_refused_as_empty_job) {
  task<int> (*nothing)() = nullptr;
  auto error = thrown_by([&] { return weir::run(nothing); });
  EXPECT_EQ(code_of(error), weir::errc::empty_job);
}

TEST(run, loops_can_follow_each_other_on_one_thread) {
  long sum = 0;
  for (int i = 0; i < 100; ++i) sum += weir::run(ready(i));
  EXPECT_EQ(sum, 4950);
}
TEST(run, when_nothing_can_ever_wake_it_the_verdict_is_deadlock_with_the_tree) {
  text_log log;
  auto error = thrown_by([&] { weir::run(deadlocked(log)); });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  std::string what = what_of(error);
  for (const char* part : {"crossroads", "left car", "right car", "future"})
    EXPECT_TRUE(contains(what, part)) << part << " is not in:\n" << what;
}

// Everything is cancelled without grace, so the defer is started but may not park
TEST(run, a_deadlocked_loop_is_unwound_before_the_verdict_is_thrown) {
  for_each_seed([](weir::sim::options options) {
    text_log log;
    auto error = thrown_by([&] { weir::sim::run(options, deadlocked(log)); });
    EXPECT_EQ(code_of(error), weir::errc::deadlock);
    std::sort(log.begin(), log.begin() + std::min<std::ptrdiff_t>(2, std::ssize(log)));
    EXPECT_EQ(joined(log), "left,right,defer");
  });
}

TEST(run, a_timer_anywhere_prevents_the_verdict) {
  weir::run([]() -> task<> {
    std::optional<weir::future<int>> slow;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      slow = s.spawn(after(1ms, 1));
      int value = co_await *slow;
      EXPECT_EQ(value, 1);
    });
  });
}

TEST(run, a_wait_on_a_governor_without_capacity_is_a_deadlock) {
  auto error = thrown_by([] {
    weir::run([]() -> task<> {
      weir::counting_governor g(0, {.name = "bridge"});
      (void)co_await g.acquire();
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "bridge")) << what_of(error);
}
TEST(run, the_error_of_the_root_comes_after_its_children_are_unwound) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    auto error = thrown_by([&] {
      w.run([&]() -> task<> {
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          s.spawn([&]() -> task<> {
            end_note gone(log, "child");
            co_await weir::sleep(1h);
          });
          co_await weir::sleep(1ms);
          throw boom(1);
        });
      });
    });
    log.push_back("thrown");
    EXPECT_EQ(boom_of(error), 1);
    EXPECT_EQ(joined(log), "child,thrown");
  });
}
