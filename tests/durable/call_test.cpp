// SPDX-License-Identifier: MIT
// Runs that call and send to other runs.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

/// Doubles; 13 fails, 99 waits for ever with something to clean up.
task<int> child(int n) {
  const int v = co_await give("child " + std::to_string(n), n * 2);
  if (n == 13) throw weir::terminal_error("unlucky");
  if (n == 99) {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.defer([]() -> task<> {
        co_await weir::sleep(1h);
        (void)co_await give("child undone", 0);
      });
      co_await give("child waits", 0);
      co_await weir::sleep(100'000h);
    });
  }
  co_return v;
}

template <class H>
void family_survives(H parent, const std::string& want, const births& born = at_once_and_late) {
  all_crashes(with_child(parent, child), want, born, steps::one_at_a_time);
}

task<int> calls(int n) { co_return co_await weir::call<int>("child", n); }

}  // namespace

TEST(durable_call, gives_the_value_of_a_run_of_its_own_once_over_all_crashes) {
  family_survives(
      [](int) -> task<std::string> {
        const int a = co_await weir::call<int>("child", 4);
        co_await give("parent", 0);
        const int b = co_await weir::call<int>("child", a);
        co_return row(a, b);
      },
      "8,16");
}

TEST(durable_call, gives_the_failure_as_a_terminal_error) {
  family_survives(
      [](int) -> task<std::string> {
        const std::string heard = co_await value_or(calls(13), "unlucky");
        co_await give("parent", 0);
        co_return heard;
      },
      "!unlucky");
}

TEST(durable_call, several_at_once_keep_their_places) {
  auto parent = [](int) -> task<std::string> {
    auto [a, b, c] = co_await weir::all(calls(1), weir::call<int>("child", 2), calls(3));
    co_await give("parent", 0);
    co_return row(a, b, c);
  };
  all_crashes(with_child(parent, child), "2,4,6", at_once_and_late, steps::concurrent);
}

TEST(durable_call, names_the_run_that_it_starts) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    const int a = co_await weir::call<int>("child", 5, {.id = "my-child"});
    const int b = co_await weir::call<int>("child", 6, {.id = "my-child"});
    co_return row(a, b);
  };
  session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "10,10");
    const auto info = e.get("my-child");
    EXPECT_TRUE(info && info->handler == "child" && info->state == durable::run_state::completed);
    auto attached = co_await e.start<int>("child", {.id = "my-child"}, 0);
    EXPECT_EQ(co_await attached.result(), 10);
  });
  EXPECT_EQ(times("child 5"), 1);
  EXPECT_EQ(times("child 6"), 0);
}

TEST(durable_call, with_an_idempotency_key_attaches_to_the_run_that_has_it) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    const int a = co_await weir::call<int>("child", 5, {.idempotency = "k"});
    const int b = co_await weir::call<int>("child", 6, {.idempotency = "k"});
    const int c = co_await weir::call<int>("child", 7, {.idempotency = "other"});
    co_return row(a, b, c);
  };
  session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "10,10,14");
  });
}

TEST(durable_call, of_a_handler_that_nobody_added_names_it) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    const auto error =
        co_await test_support::attempt([]() -> task<> { co_await weir::call("nobody at all", 1); });
    co_return test_support::contains(test_support::what_of(error), "nobody at all")
        ? "named"
        : test_support::what_of(error);
  };
  session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await ending_of(run), "named");
  });
}

TEST(durable_call, may_call_further_runs) {
  const stage on;
  auto down = [](int n) -> task<int> {
    if (n == 0) co_return co_await give("bottom", 1);
    co_return co_await weir::call<int>("down", n - 1) + 1;
  };
  session(
      on, [&](durable::engine& e) { e.add("down", down); },
      [](durable::engine& e) -> task<> {
        auto run = co_await e.start<int>("down", {.id = "r"}, 10);
        EXPECT_EQ(co_await run.result(), 11);
        EXPECT_EQ(e.list({.handler = "down"}).size(), 11u);
      });
}

TEST(durable_call, cancelling_the_caller_cancels_the_called_run_with_its_cleanup) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    co_return std::to_string(co_await weir::call<int>("child", 99, {.id = "c"}));
  };
  session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("child waits");
    run.cancel();
    EXPECT_EQ(co_await ending_of(run), "cancelled");
    co_await until([&] { return e.get("c")->state == durable::run_state::cancelled; });
  });
  EXPECT_EQ(times("child undone"), 1);
}

TEST(durable_call, that_a_timeout_gives_up_is_cancelled_and_joined) {
  family_survives(
      [](int) -> task<std::string> {
        std::string side = "value";
        try {
          (void)co_await weir::with_timeout(5h, weir::call<int>("child", 99));
        } catch (const weir::timeout_error&) {
          side = "late";
        }
        co_await give("parent", 0);
        co_return side;
      },
      "late", at_once);
}

TEST(durable_call, whose_run_somebody_else_cancels_throws_cancelled_error) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    std::string heard = "value";
    try {
      (void)co_await weir::call<int>("child", 99, {.id = "c"});
    } catch (const weir::cancelled_error&) {
      heard = "child cancelled";
    }
    co_await give("goes on", 0);
    co_return heard;
  };
  session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("child waits");
    e.cancel("c");
    EXPECT_EQ(co_await ending_of(run), "child cancelled");
  });
  EXPECT_EQ(times("goes on"), 1);
}

FIBER_TEST(durable_call, is_for_runs_only) {
  const auto error =
      co_await test_support::attempt([]() -> task<> { co_await weir::call("h", 1); });
  EXPECT_EQ(test_support::code_of(error), errc::not_durable);
  const auto other =
      co_await test_support::attempt([]() -> task<> { (void)co_await weir::send("h", 1); });
  EXPECT_EQ(test_support::code_of(other), errc::not_durable);
}

// -------------------------------------------------------------------------------------------- send

TEST(durable_send, starts_a_run_once_and_does_not_wait_for_it) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    (void)co_await weir::send("child", 99, {.id = "sent"});
    co_await give("parent", 0);
    co_return "done";
  };
  for (int i = 0; i < 2; ++i) {
    session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await run.result(), "done");
      co_await until_noted("child waits");
      EXPECT_TRUE(e.get("sent").has_value());
    });
  }
  EXPECT_EQ(times("child 99"), 1);
}

TEST(durable_send, is_done_once_whatever_crash_follows) {
  auto parent = [](int) -> task<std::string> {
    (void)co_await weir::send("child", 4);
    co_await give("parent", 0);
    co_return "done";
  };
  const stage on;
  life_that_dies_in("parent", [&] { (void)ending_of_h(on, with_child(parent, child), 0ns); });
  whole_life([&] {
    session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      (void)co_await run.result();
      co_await until([&] { return e.list({.handler = "child"}).size() == 1; });
      co_await weir::sleep(1h);
      EXPECT_EQ(e.list({.handler = "child"}).size(), 1u);
    });
  });
  EXPECT_EQ(times("child 4"), 1);
}

TEST(durable_send, with_a_delay_begins_later_and_in_a_later_life) {
  auto parent = [](int) -> task<std::string> {
    (void)co_await weir::send("child", 4, {.delay = 24h, .id = "later"});
    co_return "sent";
  };
  const stage on;
  EXPECT_EQ(life([&] {
              session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
                auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
                EXPECT_EQ(co_await run.result(), "sent");
                co_await weir::sleep(23h);
                EXPECT_EQ(times("child 4"), 0);
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] {
    auto use = [](durable::engine&) -> task<> {
      co_await weir::sleep(59min);
      EXPECT_EQ(times("child 4"), 0);
      co_await weir::sleep(2min);
      EXPECT_EQ(times("child 4"), 1);
    };
    session(on, with_child(parent, child), use, 23h);
  });
  EXPECT_EQ(times("child 4"), 1);
}

TEST(durable_send, leaves_the_sender_alone_when_the_run_fails) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    (void)co_await weir::send("child", 13, {.id = "sent"});
    co_await weir::sleep(5h);
    co_return "fine";
  };
  session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await ending_of(run), "fine");
    EXPECT_EQ(e.get("sent")->state, durable::run_state::failed);
    EXPECT_TRUE(test_support::contains(e.get("sent")->message, "unlucky"));
  });
}

TEST(durable_send, is_not_cancelled_with_its_sender) {
  const stage on;
  auto parent = [](int) -> task<std::string> {
    (void)co_await weir::send("child", 99, {.id = "sent"});
    co_await weir::sleep(1000h);
    co_return "never";
  };
  session(on, with_child(parent, child), [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("child waits");
    run.cancel();
    EXPECT_EQ(co_await ending_of(run), "cancelled");
    co_await weir::sleep(10h);
    const auto state = e.get("sent")->state;
    EXPECT_TRUE(state == durable::run_state::running || state == durable::run_state::suspended);
  });
  EXPECT_EQ(times("child undone"), 0);
}
