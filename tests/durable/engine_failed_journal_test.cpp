// SPDX-License-Identifier: MIT
// Engines whose journal fails while something is under way.
#include <optional>

#include "durable/support/troubled_disk.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

// ----------------------------------------------------------------- the window of a failed journal

/// Calls `inside` when a commit (of the start of run "lost") has begun; it has still to fail.
task<> during_a_commit(durable::engine& e, trouble& t, std::function<task<>()> inside) {
  auto body = [&](weir::scope& s) -> task<> {
    auto starts = [&]() -> task<std::error_code> {
      return code_after([&] { return e.start<std::string>("at once", {.id = "lost"}, 1); });
    };
    t.armed = true;
    auto lost = s.spawn(starts);
    while (!t.entered) co_await weir::yield();
    co_await inside();
    const std::error_code code = co_await lost;
    EXPECT_EQ(code, errc::journal_failed) << code.message();
  };
  co_await weir::with_scope(body);
}

/// A call that must not be acknowledged.
using asking = std::function<task<>(durable::engine&, const std::string& awakeable)>;

/// A life of real threads in which the call is made when the journal has failed and the engine has
/// not heard of it.
void ask_in_the_window(const stage& on, asking ask) {
  whole_life([&] {
    trouble t;
    troubled_disk disk(t);
    auto use = [&](durable::engine& e) -> task<> {
      (void)co_await e.start<std::string>("hears", {.id = "hears"}, 1);
      (void)co_await e.start<std::string>("asks", {.id = "asks"}, 1);
      while (noted("id ").empty()) co_await weir::yield();
      const std::string id = noted("id ").back();
      co_await during_a_commit(e, t, [&]() -> task<> {
        t.fail_behind_the_back_of_the_loop();
        const std::error_code code = co_await code_after([&] { return ask(e, id); });
        EXPECT_EQ(code, errc::journal_failed) << code.message();
      });
      EXPECT_EQ(co_await code_after([&] { return ask(e, id); }), errc::journal_failed);
    };
    weir::run(with_open_engine(options_with(on, disk), add_waiting, use));
  });
}

/// Then, in a life on a good disk, none of it has happened, and the runs wait for it still.
void expect_still_waiting(const stage& on) {
  whole_life([&] {
    session(on, add_waiting, [](durable::engine& e) -> task<> {
      co_await weir::sleep(1h);
      EXPECT_EQ(e.get("hears")->state, run_state::running);
      EXPECT_EQ(e.get("asks")->state, run_state::running);
      EXPECT_FALSE(e.get("new").has_value());
      EXPECT_TRUE(co_await e.signal("hears", "x", 8));
      EXPECT_TRUE(co_await e.resolve(noted("id ").back(), std::string("yes")));
      auto heard = co_await e.start<std::string>("hears", {.id = "hears"}, 1);
      auto asked = co_await e.start<std::string>("asks", {.id = "asks"}, 1);
      EXPECT_EQ(co_await ending_of(heard), "8");
      EXPECT_EQ(co_await ending_of(asked), "yes");
    });
  });
}

void expect_not_acknowledged(const asking& ask) {
  const stage on;
  ask_in_the_window(on, ask);
  expect_still_waiting(on);
}

/// A life in which the code of a run is at work when the journal fails; then it goes on with
/// `then`. It must end (rather than die), and whoever waits for the run hears of the failure.
template <class H>
void go_on_in_the_window(const stage& on, H then) {
  whole_life([&] {
    trouble t;
    troubled_disk disk(t);
    auto setup = [&](durable::engine& e) {
      add_waiting(e);
      e.add("h", [&t, then](int n) -> task<std::string> {
        t.fail_behind_the_back_of_the_loop();
        return then(n);
      });
    };
    auto use = [&](durable::engine& e) -> task<> {
      co_await during_a_commit(e, t, [&]() -> task<> {
        auto runs = [&]() -> task<std::string> {
          auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
          co_return co_await run.result();
        };
        EXPECT_EQ(co_await code_after(runs), errc::journal_failed);
      });
    };
    weir::run(with_open_engine(options_with(on, disk), setup, use));
  });
}

/// The same, and in a life on a good disk the run ends as if nothing had been.
template <class H>
void fails_and_goes_on_later(H then, const std::string& want) {
  const stage on;
  go_on_in_the_window(on, then);
  auto setup = [&](durable::engine& e) {
    add_waiting(e);
    e.add("h", then);
  };
  whole_life([&] { EXPECT_EQ(ending_of_h(on, setup, 0ns), want); });
}

}  // namespace

TEST(durable_failed_journal, does_not_acknowledge_a_signal_that_it_did_not_record) {
  expect_not_acknowledged([](durable::engine& e, const std::string&) -> task<> {
    (void)co_await e.signal("hears", "x", 7);
  });
}

TEST(durable_failed_journal, does_not_acknowledge_the_answer_to_an_awakeable) {
  expect_not_acknowledged([](durable::engine& e, const std::string& id) -> task<> {
    (void)co_await e.resolve(id, std::string("lost"));
  });
}

TEST(durable_failed_journal, does_not_acknowledge_the_rejection_of_an_awakeable) {
  expect_not_acknowledged([](durable::engine& e, const std::string& id) -> task<> {
    (void)co_await e.reject(id, "lost");
  });
}

TEST(durable_failed_journal, does_not_acknowledge_a_cancellation) {
  expect_not_acknowledged([](durable::engine& e, const std::string&) -> task<> {
    (void)e.cancel("hears");
    co_return;
  });
}

TEST(durable_failed_journal, does_not_acknowledge_a_start) {
  expect_not_acknowledged([](durable::engine& e, const std::string&) -> task<> {
    (void)co_await e.start<std::string>("at once", {.id = "new"}, 1);
  });
}

TEST(durable_failed_journal, stops_a_run_that_sends) {
  fails_and_goes_on_later(
      [](int) -> task<std::string> { co_return co_await weir::send("at once", 1, {.id = "sent"}); },
      "sent");
}

TEST(durable_failed_journal, stops_a_run_that_calls) {
  fails_and_goes_on_later(
      [](int) -> task<std::string> { co_return co_await weir::call<std::string>("at once", 1); },
      "at once");
}

TEST(durable_failed_journal, stops_a_run_that_sleeps) {
  fails_and_goes_on_later(
      [](int) -> task<std::string> {
        co_await weir::sleep(1ms);
        co_return "slept";
      },
      "slept");
}

TEST(durable_failed_journal, stops_a_run_that_ends) { fails_and_goes_on_later(quick, "at once"); }

TEST(durable_failed_journal, stops_a_run_that_takes_a_step) {
  fails_and_goes_on_later(
      [](int) -> task<std::string> {
        co_return co_await weir::step("s", [] { return std::string("done"); });
      },
      "done");
}

TEST(durable_failed_journal, begins_no_step_once_without_its_intent) {
  const stage on;
  auto pays = [](int) -> task<std::string> {
    co_return co_await weir::step_once("pay", [] {
      note("pay");
      return std::string("paid");
    });
  };
  go_on_in_the_window(on, pays);
  EXPECT_EQ(times("pay"), 0);
  whole_life([&] { EXPECT_EQ(ending(on, pays), "paid"); });
  EXPECT_EQ(times("pay"), 1);
}

TEST(durable_failed_journal, begins_no_second_attempt_of_a_step_once) {
  const stage on;
  auto setup = [](durable::engine& e) {
    e.add("at once", quick);
    e.add("h", [](int) -> task<std::string> {
      auto pay = []() -> std::string {
        note("pay");
        if (times("pay") == 1) throw std::runtime_error("busy");
        return "paid";
      };
      weir::step_options slowly;
      slowly.retry.attempts = 5;
      slowly.retry.base = 10s;
      slowly.retry.jitter = weir::jitter::none;
      co_return co_await weir::step_once("pay", pay, slowly);
    });
  };
  trouble t;
  troubled_disk disk(t);
  auto use = [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("pay");
    co_await weir::sleep(1s);
    t.no_sync = true;
    auto starts = [&] { return e.start<std::string>("at once", {.id = "o"}, 1); };
    EXPECT_EQ(co_await code_after(starts), errc::journal_failed);
    co_await weir::sleep(1h);
    EXPECT_EQ(times("pay"), 1);
    EXPECT_EQ(co_await code_after([&] { return run.result(); }), errc::journal_failed);
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options_with(on, disk), setup, use));
  // That the first attempt failed is recorded: it is no attempt whose outcome is unknown.
  EXPECT_EQ(ending_of_h(on, setup, 2h), "paid");
  EXPECT_EQ(times("pay"), 2);
}

TEST(durable_failed_journal, is_told_by_every_call) {
  const stage on;
  trouble t;
  troubled_disk disk(t);
  auto use = [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("hears", {.id = "hears"}, 1);
    t.no_sync = true;
    auto signals = [&] { return e.signal("hears", "x", 1); };
    EXPECT_EQ(co_await code_after(signals), errc::journal_failed);
    t.no_sync = false;
    EXPECT_EQ(co_await code_after(signals), errc::journal_failed);
    EXPECT_EQ(co_await code_after([&] { return run.result(); }), errc::journal_failed);
    EXPECT_EQ(code_of_plain([&] { return run.cancel(); }), errc::journal_failed);
    EXPECT_EQ(code_of_plain([&] { return e.cancel("hears"); }), errc::journal_failed);
    EXPECT_EQ(code_of_plain([&] { return e.get("hears"); }), errc::journal_failed);
    EXPECT_EQ(code_of_plain([&] { return e.list(); }), errc::journal_failed);
  };
  sim::run({.seed = 1, .start_time = day0},
           with_open_engine(options_with(on, disk), add_waiting, use));
}

TEST(durable_failed_journal, that_cannot_be_read_blocks_the_run_that_needs_it) {
  const stage on;
  trouble t;
  troubled_disk disk(t);
  auto setup = [](durable::engine& e) {
    add_waiting(e);
    e.add("h", [](int) -> task<std::string> {
      co_return co_await weir::call<std::string>("at once", 1, {.id = "early"});
    });
  };
  auto use = [&](durable::engine& e) -> task<> {
    auto early = co_await e.start<std::string>("at once", {.id = "early"}, 1);
    EXPECT_EQ(co_await early.result(), "at once");
    t.no_read = true;
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until([&] { return e.get("r")->state == run_state::blocked; });
    EXPECT_TRUE(test_support::contains(e.get("r")->message, "pread")) << e.get("r")->message;
    t.no_read = false;
    auto other = co_await e.start<std::string>("at once", {.id = "other"}, 1);
    EXPECT_EQ(co_await ending_of(other), "at once");
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options_with(on, disk), setup, use));
  EXPECT_EQ(ending_of_h(on, setup, 0ns), "at once");
}
