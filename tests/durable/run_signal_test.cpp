// SPDX-License-Identifier: MIT
// Signals, which are sent to a run from outside, and promises, which the fibers of a run share.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

task<std::string> listens(int) {
  co_await give("ready", 0);
  const int a = co_await weir::signal<int>("a").wait();
  co_await give("between", 0);
  const std::string b = co_await weir::signal<std::string>("b").wait();
  co_await give("after", 0);
  co_return std::to_string(a) + b;
}

}  // namespace

TEST(durable_signal, wakes_the_run_that_waits_for_its_name) {
  const stage on;
  session_of(on, listens, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("ready");
    co_await weir::sleep(1h);
    EXPECT_TRUE(co_await e.signal("r", "a", 1));
    co_await until_noted("between");
    EXPECT_TRUE(co_await e.signal("r", "b", std::string("x")));
    EXPECT_EQ(co_await run.result(), "1x");
  });
}

TEST(durable_signal, that_comes_early_is_kept) {
  const stage on;
  session_of(on, listens, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_TRUE(co_await e.signal("r", "b", std::string("y")));
    EXPECT_TRUE(co_await e.signal("r", "a", 2));
    EXPECT_EQ(co_await run.result(), "2y");
  });
}

TEST(durable_signal, is_durable_when_it_is_acknowledged) {
  const stage on;
  EXPECT_EQ(life([&] {
              session_of(on, listens, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                EXPECT_TRUE(co_await e.signal("r", "b", std::string("z")));
                EXPECT_TRUE(co_await e.signal("r", "a", 3));
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, listens), "3z"); });
}

TEST(durable_signal, is_the_same_again_after_crashes) {
  for (const char* at : {"between", "after"}) {
    const stage on;
    auto use = [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      (void)co_await e.signal("r", "b", std::string("w"));
      (void)co_await e.signal("r", "a", 4);
      (void)co_await run.result();
    };
    life_that_dies_in(at, [&] { session_of(on, listens, use); });
    whole_life([&] { EXPECT_EQ(ending(on, listens), "4w"); });
    EXPECT_EQ(times("ready"), 1);
  }
}

TEST(durable_signal, several_of_one_name_are_taken_one_by_one_in_their_order) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    std::vector<int> seen;
    for (int i = 0; i < 3; ++i) seen.push_back(co_await weir::signal<int>("n").wait());
    co_await give("after", 0);
    co_return text(seen);
  };
  life_that_dies_in("after", [&] {
    session_of(on, handler, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      for (const int n : {7, 8, 9}) EXPECT_TRUE(co_await e.signal("r", "n", n));
      (void)co_await run.result();
    });
  });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "7,8,9"); });
}

TEST(durable_signal, ends_a_wait_with_a_timeout_or_the_timeout_does) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    std::string seen;
    for (int i = 0; i < 2; ++i) {
      auto s = weir::signal<int>("stop");
      const auto won = co_await weir::race(weir::sleep(2h), s.wait());
      seen += std::to_string(won.index());
      co_await give("round " + std::to_string(i), 0);
    }
    co_return seen;
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::sleep(150min);
    EXPECT_TRUE(co_await e.signal("r", "stop", 1));
    EXPECT_EQ(co_await run.result(), "01");
  });
}

TEST(durable_signal, to_an_ended_run_is_not_taken) {
  const stage on;
  auto handler = [](int) -> task<std::string> { co_return "done"; };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    (void)co_await run.result();
    EXPECT_FALSE(co_await e.signal("r", "a", 1));
  });
}

// ---------------------------------------------------------------------------------------- promises

TEST(durable_promise, is_resolved_once_and_seen_by_every_fiber) {
  survives(
      [](int) -> task<std::string> {
        auto p = weir::promise<int>("p");
        const bool empty = !p.peek();
        auto waits = [&](int plus) -> task<int> {
          auto same = weir::promise<int>("p");
          co_return co_await same.wait() + plus;
        };
        auto resolves = [&]() -> task<int> {
          co_await weir::sleep(1h);
          const bool first = co_await p.resolve(10);
          const bool second = co_await p.resolve(20);
          (void)co_await give("resolved", 0);
          co_return first && !second;
        };
        auto [a, b, c] = co_await weir::all(waits(1), resolves(), waits(2));
        co_return row(empty, a, b, c, *p.peek(), co_await p.wait());
      },
      "1,11,1,12,10,10");
}

TEST(durable_promise, that_is_rejected_raises_a_terminal_error_at_every_wait) {
  survives(
      [](int) -> task<std::string> {
        auto p = weir::promise<int>("p");
        const bool first = co_await p.reject("no such luck");
        const bool second = co_await p.resolve(1);
        co_await give("rejected", 0);
        auto waits = [&]() -> task<int> { co_return co_await p.wait(); };
        const std::string a = co_await value_or(waits(), "no such luck");
        const std::string b = co_await value_or(waits(), "no such luck");
        co_return row(first, second) + a + b;
      },
      "1,0!no such luck!no such luck");
}

TEST(durable_promise, peek_sees_the_same_again) {
  survives(
      [](int) -> task<std::string> {
        std::string seen;
        auto resolves = []() -> task<> {
          co_await weir::sleep(90min);
          auto p = weir::promise<int>("p");
          (void)co_await p.resolve(1);
        };
        auto looks = [&]() -> task<> {
          auto p = weir::promise<int>("p");
          for (int i = 0; i < 3; ++i) {
            seen += p.peek() ? "y" : "n";
            (void)co_await give("look " + std::to_string(i), 0);
            co_await weir::sleep(1h);
          }
        };
        co_await weir::all(looks(), resolves());
        co_return seen;
      },
      "nny", at_once);
}

TEST(durable_promise, belongs_to_its_run) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    auto p = weir::promise<int>("p");
    const bool first = co_await p.resolve(n);
    co_await weir::sleep(1h);
    co_return std::to_string(first) + std::to_string(co_await p.wait());
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("h", {.id = "a"}, 1);
    auto b = co_await e.start<std::string>("h", {.id = "b"}, 2);
    EXPECT_EQ(co_await a.result(), "11");
    EXPECT_EQ(co_await b.result(), "12");
  });
}

FIBER_TEST(durable_promise, signals_and_promises_are_for_runs_only) {
  const auto error = co_await test_support::attempt(
      []() -> task<int> { co_return co_await weir::signal<int>("s").wait(); });
  EXPECT_EQ(test_support::code_of(error), errc::not_durable);
  const auto other = test_support::thrown_by([] { return weir::promise<int>("p").peek(); });
  EXPECT_EQ(test_support::code_of(other), errc::not_durable);
}
