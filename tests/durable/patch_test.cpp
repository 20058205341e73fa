// SPDX-License-Identifier: MIT
// The promises of weir::patch: a run that gets to the place for the first time takes the new
// branch, and keeps to it; a run that was past it repeats its journal unchanged.
#include "durable/support/crashes.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// The code before the patch; it can be killed in each of its steps.
task<std::string> unpatched(int) {
  const int a = co_await give("a", 1);
  co_await weir::sleep(1h);
  const int b = co_await give("b", 2);
  co_return row(a, b);
}

/// The same with a patch between its commands.
task<std::string> patched(int) {
  const int a = co_await give("a", 1);
  int extra = 0;
  if (weir::patch("extra")) extra = co_await give("extra", 10);
  co_await weir::sleep(1h);
  const int b = co_await give(weir::patch("late") ? "late b" : "b", 2);
  co_return row(a, extra, b);
}

/// The patches are part of the code by now.
task<std::string> without_old_branches(int) {
  const int a = co_await give("a", 1);
  const int extra = co_await give("extra", 10);
  co_await weir::sleep(1h);
  const int b = co_await give("late b", 2);
  co_return row(a, extra, b);
}

/// In a life the run dies in this effect; the next life has `patched`.
std::string after_a_crash_in(const std::string& name) {
  const stage on;
  life_that_dies_in(name, [&] { (void)ending(on, unpatched); });
  std::string end;
  whole_life([&] { note("ended " + ending(on, patched)); });
  return noted("ended ").empty() ? "" : noted("ended ").front();
}

}  // namespace

TEST(durable_patch, is_taken_by_new_runs_and_kept_over_crashes) { survives(patched, "1,10,2"); }

TEST(durable_patch, is_not_taken_by_a_run_that_was_past_it) {
  EXPECT_EQ(after_a_crash_in("b"), "1,0,2");
}

TEST(durable_patch, is_taken_by_an_old_run_that_was_not_yet_there) {
  EXPECT_EQ(after_a_crash_in("a"), "1,10,2");
}

TEST(durable_patch, of_a_parked_run_is_decided_by_where_it_is_parked) {
  const stage on;
  whole_life([&] {
    session_of(on, unpatched, [](durable::engine& e) -> task<> {
      (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
      co_await weir::sleep(1min);
    });
  });
  whole_life([&] { EXPECT_EQ(ending(on, patched, 1min), "1,0,2"); });
  EXPECT_EQ(times("extra"), 0);
  EXPECT_EQ(times("late b"), 1);  // it had not been there yet
}

TEST(durable_patch, may_be_removed_with_the_old_branch) {
  const stage on;
  life_that_dies_in("late b", [&] { (void)ending(on, patched); });
  whole_life([&] { EXPECT_EQ(ending(on, without_old_branches, 2h), "1,10,2"); });
}

TEST(durable_patch, has_one_answer_in_all_fibers_and_turns_of_loops) {
  auto fiber = [](int n, bool is_new) -> task<int> {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
      co_await weir::sleep(1min);
      const bool taken = is_new && weir::patch("in a loop");
      const std::string name = (taken ? "new " : "old ") + std::to_string(n) + std::to_string(i);
      sum += co_await give(name, taken ? 10 : 1);
    }
    co_return sum;
  };
  auto with = [fiber](bool is_new) {
    return [fiber, is_new](int) -> task<std::string> {
      auto [a, b] = co_await weir::all(fiber(1, is_new), fiber(2, is_new));
      co_return row(a, b);
    };
  };
  survives(with(true), "30,30", at_once_and_late, steps::concurrent);
  const stage on;
  life_that_dies_in("old 11", [&] { (void)ending(on, with(false)); });
  whole_life([&] { EXPECT_EQ(ending(on, with(true), 1min), "3,3"); });
}

TEST(durable_patch, is_taken_by_a_new_run_that_got_a_signal_before_it_began) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    const bool taken = weir::patch("first");
    const int heard = co_await weir::signal<int>("go").wait();
    co_return std::string(taken ? "new " : "old ") + std::to_string(heard);
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_TRUE(co_await e.signal("r", "go", 5));
    EXPECT_EQ(co_await run.result(), "new 5");
  });
}

TEST(durable_patch, is_refused_in_a_step_and_true_outside_of_runs) {
  EXPECT_TRUE(weir::patch("anywhere"));
  const stage on;
  auto handler = [](int) -> task<std::string> {
    const bool refused = co_await weir::step("s", [] {
      const auto error = test_support::thrown_by([] { return weir::patch("p"); });
      return test_support::code_of(error) == errc::inside_step;
    });
    co_return refused ? "refused" : "allowed";
  };
  EXPECT_EQ(ending(on, handler), "refused");
}

// The answer was true, and the step that follows from it has begun: the next life takes the same
// branch.
TEST(durable_patch, is_on_the_disk_before_its_branch_has_effects) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  auto handler = [](int) -> task<std::string> {
    if (!weir::patch("p")) co_return "old";
    co_return std::to_string(co_await give("new", 1));
  };
  w.run([&]() -> task<> {
    co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
      auto starts = [](durable::engine& e) -> task<> {
        (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
        co_await weir::sleep(1000h);
      };
      auto lives = [&] {
        return weir::on(w.loop("process"), with_open_engine(on_disk(w), as_h(handler), starts));
      };
      auto process = s.spawn(weir::settle(lives));
      co_await until_noted("new");
      w.crash("process");
      (void)co_await process;
    });
  });
  w.run(with_open_engine(on_disk(w), as_h(handler), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "1");
  }));
}
