// SPDX-License-Identifier: MIT
// The promise: a record that cannot be decoded (input, result, answer of another type) blocks the
// run with the cause, and old code finishes it. If the value has another type than the run waits
// for, `resolve` and `signal` throw errc::bad_data to their caller, and the run keeps waiting.
#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// A run of `right` that dies in "last" is blocked by `wrong`, and finished by `right`.
template <class R, class W>
void expect_blocks(R right, W wrong, const std::string& end, const lines& says) {
  const stage on;
  life_that_dies_in("last", [&] { (void)ending_of_h(on, as_h(right), 0ns); });
  expect_blocked(on, as_h(wrong), says);
  expect_blocked(on, as_h(wrong), says);  // again, and again without effect
  whole_life([&] { EXPECT_EQ(ending_of_h(on, as_h(right), 20h), end); });
}

/// Has a result of type T in its journal when it dies.
template <class T>
task<std::string> of_type(int) {
  try {
    const T v = co_await weir::step("typed", []() -> T { return T(); });
    (void)v;
  } catch (...) {
    note("caught");
  }
  co_await give("last", 0);
  co_return "done";
}

struct picky {
  int n = 0;
};

}  // namespace

/// A serde that throws an error of its own.
template <>
struct weir::serde<picky> {
  static void write(weir::json_writer& out, const picky& p) { out.number(p.n); }
  static picky read(const weir::json_value&) { throw std::runtime_error("too picky"); }
};

TEST(durable_undecodable, result_of_a_step_blocks_the_run_and_old_code_finishes_it) {
  expect_blocks(of_type<int>, of_type<std::string>, "done",
                {"typed", "expected a string", "run_undecodable_test.cpp:", "nothing is lost"});
  expect_blocks(of_type<std::string>, of_type<std::vector<int>>, "done",
                {"typed", "expected an array", "run_undecodable_test.cpp:"});
}

TEST(durable_undecodable, result_blocks_the_run_also_if_user_code_throws_what_it_likes) {
  expect_blocks(of_type<int>, of_type<picky>, "done", {"typed", "too picky"});
}

TEST(durable_undecodable, last_record_blocks_the_run) {
  auto right = [](int) -> task<std::string> {
    const int v = co_await weir::step("typed", [] { return 5; });
    if (ledger().empty()) {  // nothing follows the step in the journal
      note("first life");
      for (;;) co_await weir::yield();
    }
    co_return std::to_string(v);
  };
  auto wrong = [](int) -> task<std::string> {
    co_return co_await weir::step("typed", [] { return std::string("x"); });
  };
  const stage on;
  EXPECT_EQ(life([&] {
              session_of(on, right, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                while (ledger().empty()) co_await weir::yield();
                for (int i = 0; i < 1000; ++i) co_await weir::yield();
                ::_exit(crashed);
              });
            }),
            crashed);
  expect_blocked(on, as_h(wrong), {"typed", "expected a string"});
  whole_life([&] { EXPECT_EQ(ending(on, right, 20h), "5"); });
}

TEST(durable_undecodable, input_blocks_a_run_that_has_not_begun_and_old_code_finishes_it) {
  auto old_code = [](int n) -> task<std::string> { co_return std::to_string(n); };
  auto new_code = [](std::string s) -> task<std::string> {
    note("began");
    co_return s;
  };
  auto sender = [](int) -> task<std::string> {
    (void)co_await weir::send("h", 7, {.delay = 1h, .id = "r"});
    co_return "sent";
  };
  auto with = [&](auto handler) {
    return [=](durable::engine& e) {
      e.add("h", handler);
      e.add("sender", sender);
    };
  };
  const stage on;
  whole_life([&] {
    session(on, with(old_code), [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("sender", {.id = "s"}, 1);
      EXPECT_EQ(co_await run.result(), "sent");
    });
  });
  expect_blocked(on, with(new_code),
                 {"input", "expected a string", "run_undecodable_test.cpp:", "nothing is lost"});
  EXPECT_EQ(times("began"), 0);
  whole_life([&] { EXPECT_EQ(ending_of_h(on, with(old_code), 20h), "7"); });
}

TEST(durable_undecodable, input_blocks_a_run_that_is_replayed) {
  auto old_code = [](int n) -> task<std::string> {
    co_await give("last", 0);
    co_return std::to_string(n);
  };
  auto new_code = [](std::string s) -> task<std::string> {
    co_await give("last", 0);
    co_return s;
  };
  expect_blocks(old_code, new_code, "1", {"input", "expected a string", "stage.hpp:"});  // as_h
}

TEST(durable_undecodable, result_of_a_called_run_blocks_the_caller) {
  const stage on;
  auto child = [](int) -> task<int> { co_return 5; };
  auto wrong = [](int) -> task<std::string> {
    try {
      co_return co_await weir::call<std::string>("child", 1);
    } catch (...) {
      note("caught");
      co_return "caught";
    }
  };
  auto right = [](int) -> task<std::string> {
    co_return std::to_string(co_await weir::call<int>("child", 1));
  };
  whole_life([&] {
    session(on, with_child(wrong, child), [](durable::engine& e) -> task<> {
      (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
      co_await until([&] { return e.get("r")->state == run_state::blocked; });
    });
  });
  expect_blocked(on, with_child(wrong, child),
                 {"child", "expected a string", "run_undecodable_test.cpp:"});
  EXPECT_EQ(times("caught"), 0);
  whole_life([&] { EXPECT_EQ(ending_of_h(on, with_child(right, child), 20h), "5"); });
}

TEST(durable_undecodable, answer_is_refused_to_its_caller_and_the_run_goes_on_waiting) {
  static bool waits = true;
  for (const bool waiting : {true, false}) {  // false: the awakeable was made, but is not awaited
    waits = waiting;
    const stage on;
    auto handler = [](int) -> task<std::string> {
      auto question = weir::awakeable<int>("question");
      co_await weir::step("ask", [&] { note("id " + question.id()); });
      if (!waits) co_await weir::sleep(10h);
      co_return std::to_string(co_await question.wait());
    };
    session_of(on, handler, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      const std::string id = co_await last_noted("id ");
      co_await weir::sleep(1s);
      const std::string text = "five";
      const auto error =
          co_await test_support::attempt([&]() -> task<> { (void)co_await e.resolve(id, text); });
      EXPECT_EQ(test_support::code_of(error), errc::bad_data);
      EXPECT_TRUE(test_support::contains(test_support::what_of(error), "'r'"))
          << test_support::what_of(error);
      const auto empty =
          co_await test_support::attempt([&]() -> task<> { (void)co_await e.resolve(id); });
      EXPECT_EQ(test_support::code_of(empty), errc::bad_data);
      EXPECT_NE(e.get("r")->state, run_state::blocked);
      EXPECT_TRUE(co_await e.resolve(id, 5));
      EXPECT_EQ(co_await ending_of(run), "5");
    });
  }
}

TEST(durable_undecodable, signal_is_refused_to_its_caller_and_the_run_goes_on_waiting) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    const int a = co_await weir::signal<int>("x").wait();
    const std::string b = co_await weir::signal<std::string>("x").wait();
    const int c = co_await weir::signal<int>("x").wait();
    co_return std::to_string(a) + b + std::to_string(c);
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::sleep(1s);
    const std::string text = "five";
    auto wrong = [&]() -> task<> { (void)co_await e.signal("r", "x", text); };
    EXPECT_EQ(test_support::code_of(co_await test_support::attempt(wrong)), errc::bad_data);
    EXPECT_NE(e.get("r")->state, run_state::blocked);
    // The second is for a wait whose type is not known yet: it is kept.
    auto first = e.signal("r", "x", 1);
    auto second = e.signal("r", "x", text);
    auto both = co_await weir::all(std::move(first), std::move(second));
    EXPECT_EQ(both, (std::tuple(true, true)));
    co_await weir::sleep(1s);
    EXPECT_EQ(test_support::code_of(co_await test_support::attempt(wrong)), errc::bad_data);
    EXPECT_TRUE(co_await e.signal("r", "x", 2));
    EXPECT_EQ(co_await ending_of(run), "1five2");
  });
}

TEST(durable_undecodable, rejection_needs_no_type) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto question = weir::awakeable<int>("question");
    co_await weir::step("ask", [&] { note("id " + question.id()); });
    co_return std::to_string(co_await question.wait());
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_TRUE(co_await e.reject(co_await last_noted("id "), "no"));
    EXPECT_EQ(co_await ending_of(run), "failed: no");
  });
}

TEST(durable_undecodable, answers_to_a_run_whose_types_are_not_known_block_it) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await weir::sleep(1h);
    try {
      co_return std::to_string(co_await weir::signal<int>("x").wait());
    } catch (...) {
      co_return "caught";
    }
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string text = "five";
    EXPECT_TRUE(co_await e.signal("r", "x", text));
    co_await weir::sleep(2h);
    EXPECT_EQ(e.get("r")->state, run_state::blocked);
    EXPECT_TRUE(test_support::contains(e.get("r")->message, "signal 'x'")) << e.get("r")->message;
    EXPECT_TRUE(test_support::contains(e.get("r")->message, "run_undecodable_test.cpp:"));
  });
}

TEST(durable_undecodable, promise_is_refused_to_the_fiber_that_resolves_it) {
  survives(
      [](int) -> task<std::string> {
        auto waiter = []() -> task<int> { co_return co_await weir::promise<int>("p").wait(); };
        auto resolver = []() -> task<std::string> {
          co_await weir::yield();
          const std::string text = "five";
          auto wrong = weir::promise<std::string>("p");
          std::string heard = "allowed";
          try {
            (void)co_await wrong.resolve(text);
          } catch (const weir::error& e) {
            heard = e.code() == errc::bad_data ? "refused" : e.what();
          }
          auto right = weir::promise<int>("p");
          (void)co_await right.resolve(5);
          co_return heard;
        };
        auto [v, heard] = co_await weir::all(waiter(), resolver());
        co_await give("after", 0);
        co_return heard + " " + std::to_string(v);
      },
      "refused 5");
}
