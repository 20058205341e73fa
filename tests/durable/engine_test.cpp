// SPDX-License-Identifier: MIT
// The engine: starting, attaching, getting results, listing; its errors for misuse.
#include <csignal>

#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

struct order {
  std::string id;
  int cents = 0;
};
WEIR_DESCRIBE(order, id, cents);

task<std::string> echo(int n) {
  co_return co_await weir::step("echo", [&] {
    effect("echo " + std::to_string(n));
    return "got " + std::to_string(n);
  });
}

task<std::string> sleeper(int) {
  co_await weir::sleep(1000h);
  co_return "woken";
}

task<std::string> failing(int n) {
  co_await give_after(1h, "failing", 0);
  if (n == 1) throw test_support::boom(7);
  throw weir::terminal_error("final words");
}

void add_echo_and_others(durable::engine& e) {
  e.add("echo", echo);
  e.add("sleeper", sleeper);
  e.add("failing", failing);
}

}  // namespace

TEST(durable_engine, the_same_id_attaches_whatever_the_input_also_after_the_end) {
  const stage on;
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("echo", {.id = "x"}, 1);
    auto b = co_await e.start<std::string>("echo", {.id = "x"}, 2);
    EXPECT_EQ(co_await a.result(), "got 1");
    EXPECT_EQ(co_await b.result(), "got 1");
    auto c = co_await e.start<std::string>("echo", {.id = "x"}, 3);
    EXPECT_EQ(co_await c.result(), "got 1");
    EXPECT_EQ(std::string(c.id()), "x");
  });
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    auto d = co_await e.start<std::string>("echo", {.id = "x"}, 4);
    EXPECT_EQ(co_await d.result(), "got 1");
  });
  EXPECT_EQ(ledger(), lines{"echo 1"});
}

TEST(durable_engine, many_starts_of_one_id_at_once_are_one_run) {
  const stage on;
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto starts = [&](int n) -> task<> {
        auto run = co_await e.start<std::string>("echo", {.id = "x"}, n);
        EXPECT_TRUE((co_await run.result()).starts_with("got "));
      };
      for (int i = 0; i < 30; ++i) s.spawn(starts(i));
      co_await s.join();
    });
    EXPECT_EQ(e.list().size(), 1u);
  });
  EXPECT_EQ(ledger().size(), 1u);
}

TEST(durable_engine, an_id_of_another_handler_is_in_use) {
  const stage on;
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("echo", {.id = "x"}, 1);
    auto other = [&] { return e.start<std::string>("sleeper", {.id = "x"}, 1); };
    EXPECT_EQ(co_await code_after(other), errc::id_in_use);
    (void)co_await a.result();
    EXPECT_EQ(co_await code_after(other), errc::id_in_use);
  });
}

TEST(durable_engine, an_empty_id_is_made_up_and_is_unique) {
  const stage on;
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("echo", {}, 1);
    auto b = co_await e.start<std::string>("echo", {}, 2);
    EXPECT_FALSE(std::string(a.id()).empty());
    EXPECT_NE(std::string(a.id()), std::string(b.id()));
    EXPECT_EQ(co_await a.result(), "got 1");
    EXPECT_EQ(co_await b.result(), "got 2");
    const std::string id(a.id());
    EXPECT_EQ(e.get(id)->handler, "echo");
  });
}

TEST(durable_engine, an_idempotency_key_attaches_on_the_same_handler_only_and_in_later_lives) {
  const stage on;
  for (int i = 1; i <= 2; ++i) {
    session(on, add_echo_and_others, [i](durable::engine& e) -> task<> {
      auto a = co_await e.start<std::string>("echo", {.idempotency = "k"}, i);
      EXPECT_EQ(co_await a.result(), "got 1");
      auto b = co_await e.start<std::string>("sleeper", {.idempotency = "k"}, i);
      EXPECT_NE(std::string(a.id()), std::string(b.id()));
      EXPECT_EQ(e.list().size(), 2u);
    });
  }
}

TEST(durable_engine, an_acknowledged_start_is_resumed_by_open_without_being_asked) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    co_return std::to_string(co_await give_after(24h, "work", n));
  };
  EXPECT_EQ(life([&] {
              session_of(on, handler, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 5);
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] {
    session_of(on, handler, [](durable::engine& e) -> task<> {
      co_await weir::sleep(25h);
      EXPECT_EQ(times("work"), 1);
      EXPECT_EQ(e.get("r")->state, run_state::completed);
    });
  });
}

TEST(durable_engine, inputs_and_results_are_described_types) {
  const stage on;
  auto handler = [](order o) -> task<order> {
    co_await weir::step("touch", [&] { effect("touch"); });
    co_return order{o.id + "!", o.cents + 1};
  };
  auto use = [](durable::engine& e) -> task<> {
    const order o{"o-17", 900};
    auto run = co_await e.start<order>("h", {.id = "r"}, o);
    const order back = co_await run.result();
    EXPECT_EQ(back.id, "o-17!");
    EXPECT_EQ(back.cents, 901);
  };
  life_that_dies_in("touch", [&] { session_of(on, handler, use); });
  whole_life([&] { session_of(on, handler, use); });
}

TEST(durable_engine, a_failed_run_gives_the_original_error_to_those_who_wait) {
  const stage on;
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("failing", {.id = "f"}, 1);
    const auto error = co_await test_support::attempt([&] { return run.result(); });
    EXPECT_EQ(test_support::boom_of(error), 7) << test_support::what_of(error);
    const auto info = e.get("f");
    EXPECT_TRUE(info && info->state == run_state::failed);
    EXPECT_TRUE(test_support::contains(info->message, "boom 7")) << info->message;
  });
}

TEST(durable_engine, a_failed_run_gives_late_askers_a_terminal_error_with_the_same_message) {
  const stage on;
  auto late = [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("failing", {.id = "f"}, 1);
    const auto error = co_await test_support::attempt([&] { return run.result(); });
    EXPECT_TRUE(test_support::holds<weir::terminal_error>(error)) << test_support::what_of(error);
    EXPECT_TRUE(test_support::contains(test_support::what_of(error), "boom 7"));
  };
  session(on, add_echo_and_others, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("failing", {.id = "f"}, 1);
    (void)co_await ending_of(run);
    co_await weir::sleep(1h);
    co_await late(e);
  });
  session(on, add_echo_and_others, late);
  EXPECT_EQ(times("failing"), 1);
}

TEST(durable_engine, get_and_list_tell_about_runs) {
  const stage on;
  auto use = [](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("echo", {.id = "a"}, 1);
    (void)co_await e.start<std::string>("sleeper", {.id = "b"}, 1);
    auto c = co_await e.start<std::string>("failing", {.id = "c"}, 2);
    auto d = co_await e.start<std::string>("sleeper", {.id = "d"}, 1);
    (void)co_await ending_of(a);
    (void)co_await ending_of(c);
    d.cancel();
    (void)co_await ending_of(d);
    EXPECT_FALSE(e.get("nobody").has_value());
    const auto info = e.get("a");
    EXPECT_TRUE(info.has_value());
    EXPECT_EQ(info->id, "a");
    EXPECT_EQ(info->handler, "echo");
    EXPECT_EQ(info->version, 1);
    EXPECT_EQ(info->state, run_state::completed);
    EXPECT_EQ(e.get("b")->state, run_state::running);
    EXPECT_EQ(e.get("c")->state, run_state::failed);
    EXPECT_EQ(e.get("d")->state, run_state::cancelled);
    EXPECT_EQ(e.list().size(), 4u);
    EXPECT_EQ(e.list({.handler = "sleeper"}).size(), 2u);
    EXPECT_EQ(e.list({.state = run_state::failed}).size(), 1u);
    EXPECT_EQ(e.list({.state = run_state::cancelled, .handler = "sleeper"}).size(), 1u);
    EXPECT_EQ(e.list({.state = run_state::blocked}).size(), 0u);
  };
  session(on, add_echo_and_others, use);
  // The ended ones are known in the next life.
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    EXPECT_EQ(e.get("a")->state, run_state::completed);
    EXPECT_EQ(e.get("c")->state, run_state::failed);
    EXPECT_TRUE(test_support::contains(e.get("c")->message, "final words"));
    EXPECT_EQ(e.get("d")->state, run_state::cancelled);
    EXPECT_EQ(e.list().size(), 4u);
    co_return;
  });
}

TEST(durable_engine, events_tell_when_runs_end) {
  const stage on;
  session(on, add_echo_and_others, [](durable::engine& e) -> task<> {
    lines seen;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto watches = [&]() -> task<> {
        auto events = e.events();
        while (auto event = co_await events.next()) {
          if (event->state == run_state::completed) seen.push_back(event->id + " completed");
          if (event->state == run_state::failed) {
            seen.push_back(event->id + " " + event->message);
          }
          if (seen.size() == 2) break;
        }
      };
      auto watcher = s.spawn(watches);
      co_await weir::sleep(1s);
      auto a = co_await e.start<std::string>("echo", {.id = "a"}, 1);
      (void)co_await a.result();
      auto f = co_await e.start<std::string>("failing", {.id = "f"}, 2);
      (void)co_await ending_of(f);
      co_await watcher;
    });
    EXPECT_EQ(seen.size(), 2u);
    EXPECT_EQ(seen.at(0), "a completed");
    EXPECT_TRUE(test_support::contains(seen.at(1), "final words")) << seen.at(1);
  });
}

TEST(durable_engine, misuse_has_its_code) {
  const stage on;
  auto app = [&]() -> task<> {
    auto body = [&](durable::engine& e) -> task<> {
      add_echo_and_others(e);
      auto early = [&] { return e.start<std::string>("echo", {.id = "x"}, 1); };
      EXPECT_EQ(co_await code_after(early), errc::not_open);
      co_await e.open();
      EXPECT_EQ(co_await code_after([&] { return e.open(); }), errc::already_open);
      auto unknown = [&] { return e.start<std::string>("no such thing", {.id = "y"}, 1); };
      const auto error = co_await test_support::attempt(unknown);
      EXPECT_EQ(test_support::code_of(error), errc::unknown_handler);
      EXPECT_TRUE(test_support::contains(test_support::what_of(error), "no such thing"))
          << test_support::what_of(error);
      EXPECT_TRUE(e.list().empty());
    };
    co_await durable::with_engine(options_for(on), body);
  };
  sim::run({.seed = 1}, app());
}

TEST(durable_engine, small_segments_are_refused) {
  const stage on;
  auto options = options_for(on);
  options.segment_bytes = 64 * 1024 - 1;
  auto nothing = [](durable::engine&) -> task<> { co_return; };
  const auto error = test_support::thrown_by(
      [&] { sim::run({.seed = 1}, with_open_engine(options, add_echo_and_others, nothing)); });
  EXPECT_EQ(test_support::code_of(error), errc::invalid_argument) << test_support::what_of(error);
}

TEST(durable_engine, a_path_that_is_a_file_is_refused_and_not_harmed) {
  const stage on;
  note("a plain file");
  const std::string path = on.ledger();
  auto options = options_for(on);
  options.path = path;
  auto nothing = [](durable::engine&) -> task<> { co_return; };
  const auto error = test_support::thrown_by(
      [&] { sim::run({.seed = 1}, with_open_engine(options, add_echo_and_others, nothing)); });
  EXPECT_TRUE(test_support::holds<weir::error>(error)) << test_support::what_of(error);
  EXPECT_EQ(ledger(), lines{"a plain file"});
}

TEST(durable_engine, a_second_one_on_the_same_journal_is_locked_out) {
  const stage on;
  auto nothing = [](durable::engine&) -> task<> { co_return; };
  session(on, add_echo_and_others, [&](durable::engine& e) -> task<> {
    auto second = [&] { return with_open_engine(options_for(on), add_echo_and_others, nothing); };
    EXPECT_EQ(co_await code_after(second), errc::journal_locked);
    auto run = co_await e.start<std::string>("echo", {.id = "x"}, 1);
    EXPECT_EQ(co_await run.result(), "got 1");
  });
  session(on, add_echo_and_others, nothing);
}

TEST(durable_engine, one_in_another_process_is_locked_out_until_that_process_dies) {
  const stage on;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::alarm(60);
    session(on, add_echo_and_others, [&](durable::engine&) -> task<> {
      if (::write(ready[1], "x", 1) == 1) ::pause();
      co_return;
    });
    ::_exit(1);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  auto nothing = [](durable::engine&) -> task<> { co_return; };
  const auto error = test_support::thrown_by([&] { session(on, add_echo_and_others, nothing); });
  EXPECT_EQ(test_support::code_of(error), errc::journal_locked) << test_support::what_of(error);
  ::kill(owner, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(owner, &status, 0), owner);
  session(on, add_echo_and_others, nothing);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(durable_engine, with_engine_gives_the_value_of_its_function_and_its_error) {
  const stage on;
  auto app = [&](bool fails) -> task<int> {
    auto body = [&](durable::engine& e) -> task<int> {
      add_echo_and_others(e);
      co_await e.open();
      if (fails) throw test_support::boom(3);
      co_return 42;
    };
    co_return co_await durable::with_engine(options_for(on), body);
  };
  EXPECT_EQ(sim::run({.seed = 1}, app(false)), 42);
  EXPECT_EQ(test_support::boom_of(
                test_support::thrown_by([&] { return sim::run({.seed = 1}, app(true)); })),
            3);
}
