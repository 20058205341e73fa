// SPDX-License-Identifier: MIT
// The promise: the message of a blocked run has both sides, the cause and a line of the user's
// code; a blocked run is an event and, unless turned off, a line on stderr; `cancel` ends it as
// cancelled, without its cleanup, and its message says so.
#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

int line_of_throw = 0;
int line_of_wait = 0;
int line_of_sleep = 0;

std::string this_file(int line) { return "run_blocked_test.cpp:" + std::to_string(line); }

/// The code that wrote the journal; it dies in "last".
task<std::string> right_with_cleanup(int) {
  auto body = [](weir::scope& s) -> task<> {
    s.defer([]() -> task<> { (void)co_await give("cleanup", 0); });
    (void)co_await give("one", 1);
    (void)co_await give("two", 2);
    (void)co_await give("last", 3);
  };
  co_await weir::with_scope(body);
  co_return "right";
}

task<int> throws() {
  co_await weir::yield();
  line_of_throw = __LINE__ + 1;
  co_await weir::yield();
  throw std::runtime_error("the new code fails");
}

/// A journal with a run of `right_with_cleanup` that is not finished.
template <class H>
void leave_unfinished(const stage& on, H handler) {
  life_that_dies_in("last", [&] { (void)ending(on, handler); });
}

/// The message of run "r" under other code.
template <class H>
std::string message_under(const stage& on, H wrong) {
  std::string message;
  session_of(on, wrong, [&](durable::engine& e) -> task<> {
    co_await weir::sleep(1h);
    EXPECT_EQ(e.get("r")->state, run_state::blocked);
    message = e.get("r")->message;
  });
  return message;
}

void expect_says(const std::string& message, const lines& parts) {
  for (const std::string& part : parts)
    EXPECT_TRUE(test_support::contains(message, part)) << part << " in: " << message;
}

}  // namespace

TEST(durable_blocked, message_has_the_exception_of_the_new_code_its_line_and_what_was_not_found) {
  const stage on;
  leave_unfinished(on, right_with_cleanup);
  auto wrong = [](int) -> task<std::string> {
    (void)co_await give("one", 1);
    co_return std::to_string(co_await throws());
  };
  const std::string message = message_under(on, wrong);
  expect_says(message, {"step 'two'", "command 2 of the handler", "the new code fails",
                        this_file(line_of_throw), "nothing is lost"});
}

TEST(durable_blocked, message_of_a_handler_that_ends_early_has_a_line_of_it) {
  const stage on;
  leave_unfinished(on, right_with_cleanup);
  auto nothing = [](int) -> task<std::string> { co_return "wrong"; };
  const int line = __LINE__ - 1;
  expect_says(message_under(on, nothing), {"step 'one'", "ended", this_file(line)});
  int last = 0;
  auto less = [&last](int) -> task<std::string> {
    last = __LINE__ + 1;
    co_await weir::step("one", [] { return 1; });
    co_return "wrong";
  };
  const std::string message = message_under(on, less);
  expect_says(message, {"step 'two'", "ended", this_file(last)});
}

TEST(durable_blocked, message_of_a_handler_that_waits_for_something_else_has_the_line_of_the_wait) {
  const stage on;
  leave_unfinished(on, right_with_cleanup);
  auto waits = [](int) -> task<std::string> {
    (void)co_await give("one", 1);
    auto p = weir::promise<int>("p");
    line_of_wait = __LINE__ + 1;
    co_return std::to_string(co_await p.wait());
  };
  const std::string waiting = message_under(on, waits);
  expect_says(waiting, {"step 'two'", this_file(line_of_wait)});
}

TEST(durable_blocked, message_names_the_line_of_timers_and_of_what_is_inside_policies) {
  const stage on;
  leave_unfinished(on, right_with_cleanup);
  auto sleeps = [](int) -> task<std::string> {
    (void)co_await give("one", 1);
    line_of_sleep = __LINE__ + 1;
    co_await weir::sleep(1h);
    co_return "wrong";
  };
  const std::string sleeping = message_under(on, sleeps);
  expect_says(sleeping, {"step 'two'", "sleep", this_file(line_of_sleep)});
  auto limited = [](int) -> task<std::string> {
    (void)co_await give("one", 1);
    line_of_sleep = __LINE__ + 1;
    co_await weir::with_timeout(1h, weir::promise<int>("p").wait());
    co_return "wrong";
  };
  const std::string limiting = message_under(on, limited);
  expect_says(limiting, {"step 'two'", "time limit", this_file(line_of_sleep)});
  auto periodic = [](int) -> task<std::string> {
    (void)co_await give("one", 1);
    line_of_sleep = __LINE__ + 1;
    co_await weir::every(1h, []() -> task<> { co_return; });
    co_return "wrong";
  };
  const std::string every = message_under(on, periodic);
  expect_says(every, {"step 'two'", "sleep", this_file(line_of_sleep)});
}

TEST(durable_blocked, message_of_a_missing_command_of_a_child_names_where_the_code_is) {
  const stage on;
  auto both = [](int) -> task<std::string> {
    auto [a, b] = co_await weir::all(give("left", 1), give("right", 2));
    (void)co_await give("last", 0);
    co_return row(a, b);
  };
  leave_unfinished(on, both);
  auto neither = [](int) -> task<std::string> {
    line_of_wait = __LINE__ + 1;
    auto [a, b] = co_await weir::all(nap(1h, 1), weir::promise<int>("p").wait());
    co_return row(a, b);
  };
  expect_says(message_under(on, neither), {"'left'", "sleep", "durable"});
}

TEST(durable_blocked, run_is_an_event_and_a_line_on_stderr_unless_that_is_turned_off) {
  const stage on;
  leave_unfinished(on, right_with_cleanup);
  auto wrong = [](int) -> task<std::string> { co_return "wrong"; };
  for (const bool report : {true, false}) {
    auto options = options_for(on);
    options.report_blocked = report;
    auto body = [&](durable::engine& e) -> task<> {
      e.add("h", wrong);
      auto events = e.events();
      co_await e.open();
      for (;;) {
        const auto event = co_await events.next();
        if (event->state != run_state::blocked) continue;
        EXPECT_EQ(event->id, "r");
        EXPECT_TRUE(test_support::contains(event->message, "step 'one'")) << event->message;
        co_return;
      }
    };
    testing::internal::CaptureStderr();
    sim::run({.seed = 1, .start_time = day0}, durable::with_engine(options, body));
    const std::string printed = testing::internal::GetCapturedStderr();
    if (report) {
      expect_says(printed, {"weir: durable run 'r' of handler 'h' is blocked", "step 'one'"});
      EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1) << printed;
    } else {
      EXPECT_EQ(printed, "");
    }
  }
}

TEST(durable_blocked, run_that_is_cancelled_ends_without_its_cleanup_and_says_so) {
  const stage on;
  leave_unfinished(on, right_with_cleanup);
  auto wrong = [](int) -> task<std::string> { co_return "wrong"; };
  whole_life([&] {
    session_of(on, wrong, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      co_await until([&] { return e.get("r")->state == run_state::blocked; });
      EXPECT_TRUE(e.cancel("r", "not needed any more"));
      EXPECT_EQ(co_await ending_of(run), "cancelled");
      EXPECT_FALSE(e.cancel("r"));
      EXPECT_EQ(e.get("r")->state, run_state::cancelled);
      expect_says(e.get("r")->message, {"blocked", "cleanup", "not needed any more", "step 'one'"});
    });
  });
  whole_life([&] {  // and stays so, whatever the code is
    session_of(on, right_with_cleanup, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await ending_of(run), "cancelled");
      expect_says(e.get("r")->message, {"blocked", "cleanup"});
    });
  });
  EXPECT_EQ(times("cleanup"), 0);
}

TEST(durable_blocked, run_without_a_handler_is_ended_by_cancel_too) {
  const stage on;
  leave_unfinished(on, right_with_cleanup);
  auto none = [](durable::engine&) {};
  session(on, none, [](durable::engine& e) -> task<> {
    co_await until([&] { return e.get("r")->state == run_state::blocked; });
    EXPECT_TRUE(e.cancel("r"));
    co_await until([&] { return e.get("r")->state == run_state::cancelled; });
  });
}

TEST(durable_blocked,
     run_that_is_cancelled_cancels_the_runs_that_it_has_called_and_ends_its_caller) {
  const stage on;
  static bool changed = false;
  auto setup = [](durable::engine& e) {
    e.add("h", [](int) -> task<std::string> {
      try {
        co_return co_await weir::call<std::string>("middle", 1, {.id = "middle"});
      } catch (const weir::cancelled_error&) {
        co_return "callee cancelled";
      }
    });
    e.add("middle", [](int) -> task<std::string> {
      (void)co_await give(changed ? "other" : "one", 1);
      co_return co_await weir::call<std::string>("leaf", 1, {.id = "leaf"});
    });
    e.add("leaf", [](int) -> task<std::string> {
      (void)co_await give("leaf waits", 0);
      co_return std::to_string(co_await weir::signal<int>("x").wait());
    });
  };
  EXPECT_EQ(life([&] {
              session(on, setup, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                co_await until_noted("leaf waits");
                co_await weir::sleep(1h);
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] {
    changed = true;
    session(on, setup, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      co_await until([&] { return e.get("middle")->state == run_state::blocked; });
      EXPECT_TRUE(e.cancel("middle"));
      EXPECT_EQ(co_await ending_of(run), "callee cancelled");
      co_await until([&] { return e.get("leaf")->state == run_state::cancelled; });
    });
  });
}

TEST(durable_blocked, run_whose_steps_are_still_ending_is_ended_by_cancel_when_they_have) {
  // It is blocked by an answer of the wrong type while another fiber is in a step.
  const stage on;
  session_of(on, hears_during_a_step, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string text = "five";
    EXPECT_TRUE(co_await e.signal("r", "x", text));
    co_await weir::sleep(1h + 1s);
    EXPECT_EQ(e.get("r")->state, run_state::blocked);
    EXPECT_TRUE(e.cancel("r"));
    EXPECT_TRUE(e.cancel("r"));
    EXPECT_EQ(co_await ending_of(run), "cancelled");
  });
}

TEST(durable_blocked, the_line_about_it_has_no_control_characters_of_its_id) {
  const stage on;
  const std::string id = "a\x1b[31mb\nc";
  session_of(on, asks, [&](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = id}, 1);
  });
  durable::engine_options options = options_for(on);
  options.report_blocked = true;
  testing::internal::CaptureStderr();
  auto use = [&](durable::engine& e) -> task<> {
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get(id)->state, durable::run_state::blocked);
  };
  sim::run({.seed = 1, .start_time = day0},
           with_open_engine(options, [](durable::engine&) {}, use));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(test_support::contains(said, "'a\\u001b[31mb\\nc'")) << said;
}
