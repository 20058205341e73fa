// SPDX-License-Identifier: MIT
// world::pause: a loop that does not run while time goes on, as after SIGSTOP.
#include "sim_support.hpp"

using namespace weir_test;

namespace {

/// Adds to `log` every `d`, on its loop.
task<> ticks(std::string& log, char name, weir::duration d, int times) {
  for (int i = 0; i < times; ++i) {
    co_await weir::sleep(d);
    log += name;
  }
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(world_pause, a_paused_loop_does_not_run_while_time_goes_on) {
  std::string log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("a"), [&] { return ticks(log, 'a', 2s, 5); });
    s.spawn_on(w.loop("b"), [&] { return ticks(log, 'b', 2s, 5); });
    co_await weir::sleep(3s);
    EXPECT_EQ(log.size(), 2u) << log;
    w.pause("a", 6s);
    co_await weir::sleep(5500ms);
    EXPECT_EQ(log.substr(2), "bbb");
    co_await s.join();
  });
  // The timer of 4 s fires at 9 s.
  EXPECT_EQ(log.substr(2), "bbbabaaa");
}

FIBER_TEST_IN_EVERY_ORDER(world_pause, messages_wait_for_the_end_of_the_pause) {
  weir::duration took{};
  w.loop("a");
  w.pause("a", 10s);
  const weir::time_point start = weir::now();
  co_await weir::on(w.loop("a"), [&]() -> task<> {
    took = weir::now() - start;
    co_return;
  });
  EXPECT_EQ(took, 10s);
}

FIBER_TEST_IN_EVERY_ORDER(world_pause, what_was_ready_runs_after_the_pause_and_once) {
  std::string log;
  const weir::time_point start = weir::now();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (const char name : {'1', '2', '3'})
      s.spawn_on(w.loop("a"), [&, name] { return talker(log, name, 3); });
    co_await weir::yield();
    co_await weir::yield();
    w.pause("a", 1s);
    const std::string before = log;
    co_await weir::sleep(999ms);
    EXPECT_EQ(log, before);
    co_await s.join();
    if (before.size() < 9) {
      EXPECT_EQ(weir::now() - start, 1s);
    }
  });
  EXPECT_EQ(log.size(), 9u);
}

FIBER_TEST_IN_EVERY_ORDER(world_pause, a_loop_may_pause_itself) {
  const weir::time_point start = weir::now();
  w.pause("main", 3s);
  EXPECT_EQ(weir::now(), start);
  co_await weir::yield();
  EXPECT_EQ(weir::now() - start, 3s);
}

FIBER_TEST(world_pause, a_second_pause_can_only_prolong_the_first) {
  const weir::time_point start = weir::now();
  w.pause("main", 3s);
  w.pause("main", 1s);
  co_await weir::yield();
  EXPECT_EQ(weir::now() - start, 3s);
  w.pause("main", 1s);
  w.pause("main", 2s);
  w.pause("main", 0s);
  co_await weir::yield();
  EXPECT_EQ(weir::now() - start, 5s);
}

FIBER_TEST_IN_EVERY_ORDER(world_pause, a_paused_loop_can_crash) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto hosted = [&]() -> task<> {
      EXPECT_EQ(co_await code_after([&] { return weir::on(w.loop("a"), weir::sleep(1h)); }),
                weir::errc::loop_gone);
    };
    s.spawn(hosted());
    co_await weir::sleep(1s);
    w.pause("a", 1h);
    co_await weir::sleep(1s);
    w.crash("a");
    co_await s.join();
    const weir::time_point start = weir::now();
    co_await weir::on(w.loop("a"), []() -> task<> { co_return; });
    EXPECT_EQ(weir::now(), start) << "a fresh loop is not paused";
  });
}

TEST(world_pause, bad_arguments_are_refused) {
  sim::world w;
  w.loop("a");
  const auto refusal = [](auto&& call) { return code_of(thrown_by(call)); };
  EXPECT_EQ(refusal([&] { w.pause("b", 1s); }), weir::errc::invalid_argument);
  EXPECT_EQ(refusal([&] { w.pause("main", 1s); }), weir::errc::invalid_argument) << "nothing runs";
  EXPECT_EQ(refusal([&] { w.pause("a", -1ns); }), weir::errc::invalid_argument);
}

TEST(world_pause, an_endless_pause_of_a_loop_that_is_waited_for_is_a_deadlock) {
  const auto error = thrown_by([] {
    sim::run({}, [](sim::world& w) -> task<> {
      w.loop("a");
      w.pause("a", weir::unbounded);
      co_await weir::on(w.loop("a"), []() -> task<> { co_return; });
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
}

TEST(world_pause, a_deadlock_of_a_paused_program_is_found) {
  const auto error = thrown_by([] {
    sim::run({}, [](sim::world& w) -> task<> {
      w.pause("main", 1h);
      co_await weir::suspend<void>([](weir::resumer<void>) {});
    });
  });
  EXPECT_TRUE(code_of(error) == weir::errc::deadlock || code_of(error) == weir::errc::abandoned)
      << what_of(error);
}
