// SPDX-License-Identifier: MIT
// Code that does not match the journal: the run is blocked before any side effect, both sides are
// named, nothing is lost, and the right code continues.
#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// The code that wrote the journal; it dies in "last".
task<std::string> right_with_child(int) {
  (void)co_await give("one", 1);
  (void)co_await give("two", 2);
  co_await weir::sleep(1h);
  auto question = weir::awakeable<int>("question");
  (void)co_await weir::call<int>("child", 5);
  (void)co_await give("last", 3);
  co_return "right";
}

/// The wrong code is blocked and says both sides; then the right code goes on.
template <class H>
void expect_mismatch(H wrong, const lines& says) {
  const stage on;
  life_that_dies_in(
      "last", [&] { (void)ending_of_h(on, with_child(right_with_child, gives_its_input), 0ns); });
  expect_blocked(on, with_child(wrong, gives_its_input), says);
  whole_life([&] {
    EXPECT_EQ(ending_of_h(on, with_child(right_with_child, gives_its_input), 20h), "right");
  });
  EXPECT_EQ(times("one"), 1);
  EXPECT_EQ(times("two"), 1);
  EXPECT_EQ(times("last"), 2);
}

}  // namespace

TEST(durable_mismatch, a_renamed_step_blocks_the_run_and_both_names_and_the_line_are_told) {
  expect_mismatch(
      [](int) -> task<std::string> {
        (void)co_await give("one", 1);
        co_await weir::step("renamed", [] { note("x"); });
        co_return "wrong";
      },
      {"two", "renamed", "run_mismatch_test.cpp:"});
}

TEST(durable_mismatch, missing_commands_block_the_run) {
  expect_mismatch([](int) -> task<std::string> { co_return "wrong"; }, {"one"});
  expect_mismatch(
      [](int) -> task<std::string> {
        (void)co_await give("one", 1);
        co_return "wrong";
      },
      {"two"});
  expect_mismatch(
      [](int) -> task<std::string> {
        (void)co_await give("one", 1);
        throw test_support::boom(1);
      },
      {"two"});
}

TEST(durable_mismatch, a_command_of_another_kind_blocks_the_run) {
  expect_mismatch(
      [](int) -> task<std::string> {
        (void)co_await give("one", 1);
        co_await weir::sleep(1h);
        co_await weir::step("x", [] { note("x"); });
        co_return "wrong";
      },
      {"two", "step", "sleep"});
  expect_mismatch(
      [](int) -> task<std::string> {
        (void)co_await give("one", 1);
        auto a = weir::awakeable<int>("two");
        (void)co_await a.wait();
        co_return "wrong";
      },
      {"two", "step", "awakeable"});
}

TEST(durable_mismatch, an_extra_command_in_between_blocks_the_run) {
  expect_mismatch(
      [](int) -> task<std::string> {
        (void)co_await give("one", 1);
        co_await weir::step("extra", [] { note("x"); });
        (void)co_await give("two", 2);
        co_return "wrong";
      },
      {"two", "extra"});
}

TEST(durable_mismatch, swapped_commands_block_the_run) {
  expect_mismatch(
      [](int) -> task<std::string> {
        co_await weir::step("two", [] { note("x"); });
        co_await weir::step("one", [] { note("x"); });
        co_return "wrong";
      },
      {"one", "two"});
}

TEST(durable_mismatch, another_awakeable_target_or_input_of_a_call_blocks_the_run) {
  auto upto_sleep = []() -> task<> {
    (void)co_await give("one", 1);
    (void)co_await give("two", 2);
    co_await weir::sleep(1h);
  };
  expect_mismatch(
      [upto_sleep](int) -> task<std::string> {
        co_await upto_sleep();
        auto question = weir::awakeable<int>("other question");
        (void)co_await question.wait();
        co_return "wrong";
      },
      {"question", "other question"});
  expect_mismatch(
      [upto_sleep](int) -> task<std::string> {
        co_await upto_sleep();
        auto question = weir::awakeable<int>("question");
        (void)co_await weir::call<std::string>("h", 5);
        co_return "wrong";
      },
      {"child"});
  expect_mismatch(
      [upto_sleep](int) -> task<std::string> {
        co_await upto_sleep();
        auto question = weir::awakeable<int>("question");
        (void)co_await weir::call<int>("child", 6);
        co_return "wrong";
      },
      {"child"});
}

TEST(durable_mismatch, in_a_child_blocks_the_run_too) {
  const stage on;
  static bool wrong = false;
  auto handler = [](int) -> task<std::string> {
    auto [a, b] = co_await weir::all(give("left", 1), give(wrong ? "rights" : "right", 2));
    (void)co_await give("last", 0);
    co_return row(a, b);
  };
  life_that_dies_in("last", [&] { (void)ending(on, handler); });
  whole_life([&] {
    wrong = true;
    session_of(on, handler, [](durable::engine& e) -> task<> {
      co_await weir::sleep(1h);
      EXPECT_EQ(e.get("r")->state, run_state::blocked);
      EXPECT_TRUE(test_support::contains(e.get("r")->message, "rights")) << e.get("r")->message;
    });
  });
  EXPECT_EQ(times("rights"), 0);
  whole_life([&] { EXPECT_EQ(ending(on, handler), "1,2"); });
}

TEST(durable_mismatch, a_run_whose_handler_is_missing_is_listed_as_blocked_and_goes_on_later) {
  const stage on;
  life_that_dies_in(
      "last", [&] { (void)ending_of_h(on, with_child(right_with_child, gives_its_input), 0ns); });
  whole_life([&] {
    session(
        on, [](durable::engine& e) { e.add("child", gives_its_input); },
        [](durable::engine& e) -> task<> {
          co_await weir::sleep(1h);
          const auto blocked = e.list({.state = run_state::blocked});
          EXPECT_EQ(blocked.size(), 1u);
          EXPECT_EQ(e.get("r")->state, run_state::blocked);
          EXPECT_TRUE(test_support::contains(e.get("r")->message, "h")) << e.get("r")->message;
        });
  });
  whole_life([&] {
    EXPECT_EQ(ending_of_h(on, with_child(right_with_child, gives_its_input), 0ns), "right");
  });
}

TEST(durable_mismatch, result_of_a_blocked_run_waits) {
  const stage on;
  life_that_dies_in(
      "last", [&] { (void)ending_of_h(on, with_child(right_with_child, gives_its_input), 0ns); });
  whole_life([&] {
    auto shorter = [](int) -> task<std::string> { co_return "wrong"; };
    session(on, with_child(shorter, gives_its_input), [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      std::string side = "ended";
      try {
        (void)co_await weir::with_timeout(100h, run.result());
      } catch (const weir::timeout_error&) {
        side = "still waits";
      }
      EXPECT_EQ(side, "still waits");
      EXPECT_EQ(e.get("r")->state, run_state::blocked);
    });
  });
}

TEST(durable_mismatch, does_not_disturb_other_runs) {
  const stage on;
  life_that_dies_in(
      "last", [&] { (void)ending_of_h(on, with_child(right_with_child, gives_its_input), 0ns); });
  whole_life([&] {
    auto shorter = [](int) -> task<std::string> { co_return "wrong"; };
    session(on, with_child(shorter, gives_its_input), [](durable::engine& e) -> task<> {
      co_await weir::sleep(1h);
      auto fine = co_await e.start<int>("child", {.id = "fine"}, 4);
      EXPECT_EQ(co_await fine.result(), 4);
      auto fresh = co_await e.start<std::string>("h", {.id = "fresh"}, 4);
      EXPECT_EQ(co_await fresh.result(), "wrong");
    });
  });
}
