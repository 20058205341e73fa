// SPDX-License-Identifier: MIT
// The promises of restart (the same id and input, from the beginning, nothing of the earlier life)
// and of skip (the command that a run is blocked on fails, in every replay).
#include "durable/support/crashes.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// The steps of one life return its number.
int number_of_life = 1;

task<std::string> life_counting(int n) {
  const int a = co_await weir::step("a", [] { return effect("a"), number_of_life; });
  auto answer = weir::awakeable<int>("answer");
  co_await weir::step("publish", [&] { note("id " + std::string(answer.id())); });
  const int b = co_await answer.wait();
  co_return row(n, a, b);
}

template <class F>
task<std::error_code> code_of_attempt(F f) {
  const auto error = co_await test_support::attempt(f);
  co_return test_support::code_of(error);
}

}  // namespace

TEST(durable_restart, begins_again_with_the_same_id_and_input_and_late_answers_do_not_reach_it) {
  const stage on;
  number_of_life = 1;
  session_of(on, life_counting, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 9);
    const std::string old = co_await last_noted("id ");
    number_of_life = 2;
    co_await e.restart("r");
    const std::string now = co_await last_noted("id ", 2);
    EXPECT_NE(old, now);
    EXPECT_FALSE(co_await e.resolve(old, 1));
    EXPECT_TRUE(co_await e.resolve(now, 5));
    EXPECT_EQ(co_await run.result(), "9,2,5");  // the handle is to the run, whichever life
    EXPECT_EQ(e.list().size(), 1u);
  });
  session_of(on, life_counting, [](durable::engine& e) -> task<> {
    EXPECT_EQ(e.list().size(), 1u);
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "9,2,5");
    number_of_life = 3;
    co_await e.restart("r");  // it had ended
    const std::string id = co_await last_noted("id ", 3);
    EXPECT_TRUE(co_await e.resolve(id, 6));
    EXPECT_EQ(co_await run.result(), "9,3,6");
  });
}

TEST(durable_restart, wakes_those_who_wait_for_the_result_and_the_run_that_called_it) {
  const stage on;
  auto caller = [](int n) -> task<std::string> {
    co_return "called " + co_await weir::call<std::string>("child", n, {.id = "c"});
  };
  session(on, with_child(caller, life_counting), [](durable::engine& e) -> task<> {
    number_of_life = 1;
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 9);
    (void)co_await last_noted("id ");
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto asks_child = [&]() -> task<> {
        auto child = co_await e.start<std::string>("child", {.id = "c"}, 9);
        EXPECT_EQ(co_await child.result(), "9,2,5");
      };
      s.spawn(asks_child);
      co_await weir::sleep(1s);
      number_of_life = 2;
      co_await e.restart("c");
      const std::string id = co_await last_noted("id ", 2);
      EXPECT_TRUE(co_await e.resolve(id, 5));
      EXPECT_EQ(co_await run.result(), "called 9,2,5");
      co_await s.join();
    });
  });
}

TEST(durable_restart, ends_the_steps_of_the_earlier_life_first_and_cancels_what_it_called) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto slow = []() -> task<int> {
      auto body = []() -> task<int> {
        note("slow begins");
        const auto left = weir::scope_exit([] { note("slow ends"); });
        co_await weir::sleep(100h);
        co_return 1;
      };
      co_return co_await weir::step("slow", body, {.retry = {.attempts = 1}});
    };
    auto calls = []() -> task<int> { co_return co_await weir::call<int>("child", 1); };
    if (number_of_life == 2) co_return std::to_string(co_await calls());
    auto [a, b] = co_await weir::all(slow(), calls());
    co_return row(a, b);
  };
  auto child = [](int) -> task<int> {
    note("child of life " + std::to_string(number_of_life));
    if (number_of_life == 2) co_return 2;
    co_await weir::sleep(100h);
    co_return 1;
  };
  session(on, with_child(handler, child), [](durable::engine& e) -> task<> {
    number_of_life = 1;
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("slow begins");
    number_of_life = 2;
    co_await e.restart("r");
    EXPECT_EQ(co_await run.result(), "2");
    EXPECT_EQ(times("slow ends"), 1);
    co_await weir::sleep(1s);
    EXPECT_EQ(e.list({.state = run_state::cancelled, .handler = "child"}).size(), 1u);
    EXPECT_EQ(e.list({.state = run_state::completed, .handler = "child"}).size(), 1u);
  });
}

TEST(durable_restart, of_a_blocked_run_takes_the_highest_version) {
  const stage on;
  life_that_dies_in("b", [&] {
    (void)ending(on, [](int) -> task<std::string> {
      co_return row(co_await give("a", 1), co_await give("b", 2));
    });
  });
  auto other = [](int n) -> task<std::string> { co_return row(n, co_await give("other", 3)); };
  whole_life([&] {
    session_of(on, other, [](durable::engine& e) -> task<> {
      co_await weir::sleep(1s);
      EXPECT_EQ(e.get("r")->state, run_state::blocked);
      co_await e.restart("r");
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 2);
      EXPECT_EQ(co_await run.result(), "1,3");
    });
  });
  whole_life([&] { EXPECT_EQ(ending(on, other), "1,3"); });
  EXPECT_EQ(times("other"), 1);
}

TEST(durable_restart, of_an_unknown_run_or_handler_is_refused) {
  const stage on;
  session_of(on, twice, [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await code_of_attempt([&] { return e.restart("nobody"); }),
              errc::invalid_argument);
    auto run = co_await e.start<int>("h", {.id = "r"}, 2);
    EXPECT_EQ(co_await run.result(), 4);
  });
  session(
      on, [](durable::engine&) {},
      [](durable::engine& e) -> task<> {
        EXPECT_EQ(co_await code_of_attempt([&] { return e.restart("r"); }), errc::unknown_handler);
        EXPECT_EQ(e.get("r")->state, run_state::completed);
      });
}

// ------------------------------------------------------------------------------------------- skip

TEST(durable_skip, lets_a_command_that_does_not_match_fail_in_every_replay) {
  const stage on;
  auto before = [](int) -> task<std::string> {
    (void)co_await give("old", 1);
    (void)co_await give("next", 2);
    co_return row(co_await give("last", 3));
  };
  auto now = [](int) -> task<std::string> {
    std::string text;
    try {
      text = row(co_await give("new", 1));
    } catch (const weir::terminal_error& e) {
      text = e.what();
    }
    const int next = co_await give("next", 2);
    co_return text + " " + row(next, co_await give("last", 3));
  };
  life_that_dies_in("last", [&] { (void)ending(on, before); });
  whole_life([&] {
    session_of(on, now, [](durable::engine& e) -> task<> {
      co_await weir::sleep(1s);
      EXPECT_EQ(e.get("r")->state, run_state::blocked);
      co_await e.skip("r", "skipped by hand");
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await run.result(), "skipped by hand 2,3");
      EXPECT_EQ(co_await code_of_attempt([&] { return e.skip("r", "again"); }),
                errc::invalid_argument);
    });
  });
  EXPECT_EQ(times("new"), 0);
  EXPECT_EQ(times("next"), 1);
}

TEST(durable_skip, survives_a_crash_after_it) {
  const stage on;
  auto handler = [](const char* name) {
    return [name](int) -> task<std::string> {
      std::string text;
      try {
        text = row(co_await give(name, 1));
      } catch (const weir::terminal_error& e) {
        text = e.what();
      }
      co_return text + " " + row(co_await give("last", 3));
    };
  };
  life_that_dies_in("last", [&] { (void)ending(on, handler("old")); });
  life_that_dies_in("last", [&] {
    session_of(on, handler("new"), [](durable::engine& e) -> task<> {
      co_await weir::sleep(1s);
      co_await e.skip("r", "no");
      co_await weir::sleep(1h);
    });
  });
  whole_life([&] { EXPECT_EQ(ending(on, handler("new")), "no 3"); });
}

TEST(durable_skip, answers_an_awakeable_or_a_signal_whose_value_cannot_be_read) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto a = weir::awakeable<int>("a");
    note("id " + std::string(a.id()));
    std::string text;
    try {
      text = row(co_await a.wait());
    } catch (const weir::terminal_error& e) {
      text = e.what();
    }
    try {
      text += " " + row(co_await weir::signal<int>("s").wait());
    } catch (const weir::terminal_error& e) {
      text += std::string(" ") + e.what();
    }
    co_return text + " " + row(co_await weir::signal<int>("s").wait());
  };
  std::string id;
  session_of(on, handler, [&](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    id = co_await last_noted("id ");
  });
  session(
      on, [](durable::engine&) {}, [&](durable::engine& e) -> task<> {  // types are not known
        EXPECT_TRUE(co_await e.resolve(id, "a text"));
        co_return;
      });
  session_of(on, handler, [](durable::engine& e) -> task<> {
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("r")->state, run_state::blocked);
    co_await e.skip("r", "bad answer");
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("r")->state, run_state::running);
  });
  session(
      on, [](durable::engine&) {},
      [&](durable::engine& e) -> task<> {
        EXPECT_TRUE(co_await e.signal("r", "s", "a text"));
        EXPECT_TRUE(co_await e.signal("r", "s", 8));
      });
  session_of(on, handler, [](durable::engine& e) -> task<> {
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("r")->state, run_state::blocked);
    co_await e.skip("r", "bad signal");
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "bad answer bad signal 8");
  });
}

TEST(durable_skip, of_a_send_throws_there_and_sends_nothing) {
  const stage on;
  auto before = [](int) -> task<std::string> {
    (void)co_await give("first", 1);
    co_return row(co_await give("last", 3));
  };
  auto now = [](int) -> task<std::string> {
    std::string text;
    try {
      text = co_await weir::send("child", 1);
    } catch (const weir::terminal_error& e) {
      text = e.what();
    }
    co_return text + " " + row(co_await give("last", 3));
  };
  life_that_dies_in("last", [&] { (void)ending(on, before); });
  whole_life([&] {
    session(on, with_child(now, gives_its_input), [](durable::engine& e) -> task<> {
      co_await weir::sleep(1s);
      co_await e.skip("r", "");
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await run.result(), " 3");
      EXPECT_TRUE(e.list({.handler = "child"}).empty());
    });
  });
}

TEST(durable_skip, of_a_run_that_is_not_blocked_on_a_command_is_refused) {
  const stage on;
  auto sleeps = [](int) -> task<std::string> {
    co_await weir::sleep(1h);
    co_return row(co_await give("x", 1));
  };
  session_of(on, sleeps, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::sleep(1s);
    EXPECT_EQ(co_await code_of_attempt([&] { return e.skip("r", "no"); }), errc::invalid_argument);
    EXPECT_EQ(co_await code_of_attempt([&] { return e.skip("nobody", "no"); }),
              errc::invalid_argument);
  });
  session(
      on, [](durable::engine&) {},
      [](durable::engine& e) -> task<> {
        co_await weir::sleep(1s);
        EXPECT_EQ(e.get("r")->state, run_state::blocked);  // no handler
        EXPECT_EQ(co_await code_of_attempt([&] { return e.skip("r", "no"); }),
                  errc::invalid_argument);
      });
}
