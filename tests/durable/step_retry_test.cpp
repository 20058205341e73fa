// SPDX-License-Identifier: MIT
// The errors of steps: final ones, those tried again, and step_once.
#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

constexpr weir::retry_options steady{
    .attempts = 3, .base = 1h, .factor = 1, .ceiling = 1h, .jitter = weir::jitter::none};

/// Fails with "broken <n>" where n is the number of the try in all lives.
int always_broken() {
  effect("try");
  throw std::runtime_error("broken " + std::to_string(times("try")));
}

}  // namespace

TEST(durable_step_error, a_terminal_one_is_recorded_and_never_tried_again) {
  survives(
      [](int) -> task<std::string> {
        std::string heard = "nothing";
        try {
          (void)co_await failing_step("pay");
        } catch (const weir::terminal_error& e) {
          heard = said(e, "pay failed");
        }
        co_await give("tell", 0);
        co_return heard;
      },
      "pay failed");
}

TEST(durable_step_error, a_terminal_one_has_its_code_and_its_message) {
  const weir::terminal_error error("card declined");
  EXPECT_EQ(error.code(), errc::terminal);
  EXPECT_TRUE(test_support::contains(error.what(), "card declined"));
}

TEST(durable_step_error, any_other_one_is_tried_again_until_it_succeeds) {
  auto handler = [](int) -> task<std::string> {
    auto flaky = [&]() -> int {
      note("try");
      if (times("try") < 3) throw std::runtime_error("not yet");
      return 5;
    };
    const int v = co_await weir::step("flaky", flaky, {.retry = steady});
    co_await give("after", 0);
    co_return std::to_string(v);
  };
  const stage on;
  life_that_dies_in("after", [&] { (void)ending(on, handler); });
  EXPECT_EQ(times("try"), 3);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 10h), "5"); });
  EXPECT_EQ(times("try"), 3);
}

TEST(durable_step_error, the_default_is_three_attempts) {
  auto handler = [](int) -> task<std::string> {
    try {
      (void)co_await weir::step("broken", always_broken);
    } catch (const weir::terminal_error& e) {
      co_return said(e, "broken 3");
    }
    co_return "value";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "broken 3");
  EXPECT_EQ(times("try"), 3);
}

TEST(durable_step_error, exhausted_attempts_end_with_the_last_message) {
  survives(
      [](int) -> task<std::string> {
        auto body = []() -> int { throw std::runtime_error("out of order"); };
        std::string heard = "nothing";
        try {
          (void)co_await weir::step("broken", body, {.retry = {.attempts = 1}});
        } catch (const weir::terminal_error& e) {
          heard = said(e, "out of order");
        }
        co_await give("after", 0);
        co_return heard;
      },
      "out of order");
}

TEST(durable_step_error, attempts_are_as_far_apart_as_the_policy_says) {
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> int {
      note("at " + std::to_string((weir::wall_now() - day0) / 1s));
      throw std::runtime_error("no");
    };
    try {
      (void)co_await weir::step(
          "broken", body,
          {.retry = {.attempts = 4, .base = 1s, .factor = 2, .jitter = weir::jitter::none}});
    } catch (const weir::terminal_error&) {
      co_return "over";
    }
    co_return "value";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "over");
  EXPECT_EQ(noted("at "), (lines{"0", "1", "3", "7"}));
}

TEST(durable_step_error, attempts_survive_a_crash_between_them) {
  auto handler = [](int) -> task<std::string> {
    try {
      (void)co_await weir::step("broken", always_broken, {.retry = steady});
    } catch (const weir::terminal_error& e) {
      co_return said(e, "broken 3");
    }
    co_return "value";
  };
  const stage on;
  EXPECT_EQ(life([&] {
              session_of(on, handler, [&](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                co_await weir::sleep(90min);
                ::_exit(crashed);
              });
            }),
            crashed);
  EXPECT_EQ(times("try"), 2);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 90min), "broken 3"); });
  EXPECT_EQ(times("try"), 3);
}

TEST(durable_step_error, an_attempt_cut_short_by_a_crash_does_not_count) {
  auto handler = [](int) -> task<std::string> {
    try {
      (void)co_await weir::step("broken", always_broken, {.retry = steady});
    } catch (const weir::terminal_error& e) {
      co_return said(e, "broken 5");
    }
    co_return "value";
  };
  const stage on;
  // Dies in the second attempt, then in its repetition; then the second and third are made.
  EXPECT_EQ(life([&] {
              plan = {.at = 1};
              (void)ending(on, handler);
            }),
            crashed);
  EXPECT_EQ(life([&] {
              plan = {.at = 0};
              (void)ending(on, handler, 5h);
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 10h), "broken 5"); });
  EXPECT_EQ(times("try"), 5);
}

TEST(durable_step_error, a_task_body_fails_like_a_plain_one) {
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> task<int> {
      note("try");
      co_await weir::sleep(1s);
      if (times("try") < 2) throw test_support::boom(1);
      throw weir::terminal_error("never");
    };
    try {
      (void)co_await weir::step("body", body, {.retry = steady});
    } catch (const weir::terminal_error& e) {
      co_return said(e, "never");
    }
    co_return "value";
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "never");
  EXPECT_EQ(times("try"), 2);
}

TEST(durable_step_error, that_nobody_catches_fails_the_run) {
  auto handler = [](int) -> task<std::string> {
    (void)co_await failing_step("pay");
    co_return "value";
  };
  const stage on;
  EXPECT_TRUE(test_support::contains(ending(on, handler), "pay failed"));
  EXPECT_TRUE(test_support::contains(ending(on, handler), "pay failed"));
  EXPECT_EQ(times("pay"), 1);
}

TEST(durable_step_error, impossible_options_are_refused_before_the_body_runs) {
  auto handler = [](int) -> task<std::string> {
    auto f = [] { return weir::step("bad", [] { note("ran"); }, {.retry = {.attempts = 0}}); };
    const std::exception_ptr error = co_await test_support::attempt(f);
    co_return test_support::code_of(error) == errc::invalid_argument ? "refused"
                                                                     : test_support::what_of(error);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "refused");
  EXPECT_EQ(times("ran"), 0);
}

// --------------------------------------------------------------------------------------- step_once

TEST(durable_step_once, gives_its_result_like_a_step) {
  survives(
      [](int) -> task<std::string> {
        const int a = co_await weir::step_once("once", [] { return 4; });
        auto body = []() -> task<int> {
          co_await weir::sleep(1s);
          co_return 5;
        };
        const int b = co_await weir::step_once("task", body);
        co_await give("after", 0);
        co_return row(a, b);
      },
      "4,5");
}

TEST(durable_step_once, that_a_crash_cut_short_is_not_run_again_and_its_outcome_is_unknown) {
  auto handler = [](int) -> task<std::string> {
    std::string heard = "value";
    try {
      (void)co_await weir::step_once("once", [] {
        effect("once");
        return 1;
      });
    } catch (const weir::error& e) {
      heard = e.code() == errc::outcome_unknown ? "unknown" : e.what();
    }
    co_await give("after", 0);
    co_return heard;
  };
  const stage on;
  life_that_dies_in("once", [&] { (void)ending(on, handler); });
  // It stays unknown in every further life.
  life_that_dies_in("after", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "unknown"); });
  EXPECT_EQ(times("once"), 1);
  EXPECT_EQ(times("after"), 2);
}

TEST(durable_step_once, that_was_not_begun_before_the_crash_is_run) {
  auto handler = [](int) -> task<std::string> {
    co_await give("before", 0);
    const int v = co_await weir::step_once("once", [] {
      note("once");
      return 1;
    });
    co_return std::to_string(v);
  };
  const stage on;
  life_that_dies_in("before", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "1"); });
  EXPECT_EQ(times("once"), 1);
}

TEST(durable_step_once, records_its_terminal_error) {
  survives(
      [](int) -> task<std::string> {
        std::string heard = "value";
        try {
          (void)co_await weir::step_once("once",
                                         []() -> int { throw weir::terminal_error("declined"); });
        } catch (const weir::terminal_error& e) {
          heard = said(e, "declined");
        }
        co_await give("after", 0);
        co_return heard;
      },
      "declined");
}

TEST(durable_step_once, unknown_outcomes_are_final_for_the_run_if_nobody_catches_them) {
  auto handler = [](int) -> task<std::string> {
    (void)co_await weir::step_once("once", [] {
      effect("once");
      return 1;
    });
    co_return "value";
  };
  const stage on;
  life_that_dies_in("once", [&] { (void)ending(on, handler); });
  whole_life([&] {
    session_of(on, handler, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      (void)co_await ending_of(run);
      const auto info = e.get("r");
      EXPECT_TRUE(info && info->state == durable::run_state::failed);
    });
  });
  EXPECT_EQ(times("once"), 1);
}
