// SPDX-License-Identifier: MIT
// Cancelling a run: recorded before it takes effect, level-triggered, everywhere, with cleanup.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

/// Starts run "r", waits for "ready" in the ledger, cancels, gives the ending.
user cancel_when_ready(std::string& end) {
  return [&end](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("ready");
    co_await weir::sleep(1h);
    run.cancel();
    end = co_await ending_of(run);
    EXPECT_EQ(e.get("r")->state,
              end == "cancelled" ? durable::run_state::cancelled : e.get("r")->state);
  };
}

template <class H>
std::string cancelled_ending(const stage& on, H handler) {
  std::string end;
  session_of(on, handler, cancel_when_ready(end));
  return end;
}

/// Dies in `at` after the cancellation; in the next life nobody cancels again.
template <class H>
std::string ending_after_crash_in(const stage& on, const std::string& at, H handler) {
  life_that_dies_in(at, [&] { (void)cancelled_ending(on, handler); });
  whole_life([&] { note("end " + ending(on, handler, 200h)); });
  const lines end = noted("end ");
  return end.empty() ? "" : end.back();
}

/// A handler that is ready and then sleeps, with cleanup of two steps.
task<std::string> cleans_up_twice(int) {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    s.defer([]() -> task<> { (void)co_await give("last cleanup", 0); });
    s.defer([]() -> task<> {
      (void)co_await give("first cleanup", 0);
      co_await weir::sleep(100h);
      (void)co_await give("second cleanup", 0);
    });
    co_await give("ready", 0);
    co_await weir::sleep(1000h);
    co_await give("NEVER", 0);
  });
  co_return "value";
}

}  // namespace

TEST(durable_cancel, ends_the_run_for_everyone_who_asks_and_asks_later) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await give("ready", 0);
    co_await weir::sleep(1000h);
    co_return "value";
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await until_noted("ready");
    e.cancel("r");
    EXPECT_EQ(co_await ending_of(run), "cancelled");
    EXPECT_EQ(co_await ending_of(run), "cancelled");
    EXPECT_EQ(e.get("r")->state, durable::run_state::cancelled);
    run.cancel();
    EXPECT_EQ(e.get("r")->state, durable::run_state::cancelled);
  });
  EXPECT_EQ(ending(on, handler), "cancelled");
}

TEST(durable_cancel, reaches_children_and_local_waits) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    weir::oneshot<int> never;
    weir::queue<int> empty(1);
    weir::mutex m;
    auto held = co_await m.lock();
    auto on_oneshot = [&]() -> task<> { (void)co_await never.receive(); };
    auto on_queue = [&]() -> task<> { (void)co_await empty.next(); };
    auto on_mutex = [&]() -> task<> { (void)co_await m.lock(); };
    auto on_timer = [&]() -> task<> {
      co_await give("ready", 0);
      co_await weir::sleep(1000h);
    };
    co_await weir::all(on_oneshot(), on_queue(), on_mutex(), on_timer());
    co_return "value";
  };
  EXPECT_EQ(cancelled_ending(on, handler), "cancelled");
}

TEST(durable_cancel, reaches_every_kind_of_journaled_wait) {
  for (int kind = 0; kind < 6; ++kind) {
    SCOPED_TRACE(kind);
    const stage on;
    auto handler = [kind](int) -> task<std::string> {
      co_await give("ready", 0);
      auto a = weir::awakeable<int>("a");
      auto s = weir::signal<int>("s");
      auto p = weir::promise<int>("p");
      auto body = []() -> task<int> { co_return co_await nap(1000h, 1); };
      if (kind == 0) (void)co_await a.wait();
      if (kind == 1) (void)co_await s.wait();
      if (kind == 2) (void)co_await weir::race(p.wait(), nap(1000h, 1));
      if (kind == 3) (void)co_await weir::step("body", body);
      if (kind == 4) (void)co_await weir::with_timeout(1000h, a.wait());
      if (kind == 5) co_await weir::every(1000h, [] { return nap(1s, 1); });
      co_return "value";
    };
    EXPECT_EQ(cancelled_ending(on, handler), "cancelled");
  }
}

TEST(durable_cancel, is_not_swallowed_by_settle_all_settled_any_or_catch) {
  for (int kind = 0; kind < 5; ++kind) {
    SCOPED_TRACE(kind);
    const stage on;
    auto handler = [kind](int) -> task<std::string> {
      co_await give("ready", 0);
      auto sleeps = []() -> task<int> { co_return co_await nap(1000h, 1); };
      if (kind == 0) (void)co_await weir::settle(sleeps);
      if (kind == 1) (void)co_await weir::all_settled(tasks(sleeps(), sleeps()));
      if (kind == 2) (void)co_await weir::any(tasks(sleeps(), sleeps()));
      if (kind == 3) {
        try {
          (void)co_await sleeps();
        } catch (...) {
          note("caught");
        }
      }
      if (kind == 4) {
        auto guarded =
            weir::op(sleeps) | weir::fallback([] { return 1; }) | weir::retry({.attempts = 3});
        (void)co_await guarded();
      }
      co_await give("went on", 0);
      co_return "value";
    };
    EXPECT_EQ(cancelled_ending(on, handler), "cancelled");
    EXPECT_EQ(times("went on") + times("caught"), 0);
  }
}

TEST(durable_cancel, runs_defers_in_reverse_order_and_to_their_ends) {
  const stage on;
  EXPECT_EQ(cancelled_ending(on, cleans_up_twice), "cancelled");
  EXPECT_EQ(ledger(), (lines{"ready", "first cleanup", "second cleanup", "last cleanup"}));
}

TEST(durable_cancel, a_crash_in_the_cleanup_goes_on_with_the_cleanup) {
  for (const std::string at : {"first cleanup", "second cleanup", "last cleanup"}) {
    SCOPED_TRACE(at);
    const stage on;
    EXPECT_EQ(ending_after_crash_in(on, at, cleans_up_twice), "cancelled");
    for (const std::string name : {"first cleanup", "second cleanup", "last cleanup"}) {
      EXPECT_EQ(times(name), name == at ? 2 : 1) << name;
    }
    EXPECT_EQ(times("NEVER"), 0);
  }
}

TEST(durable_cancel, runs_finally_as_it_runs_defers) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto work = []() -> task<int> {
      co_await give("ready", 0);
      co_return co_await nap(1000h, 1);
    };
    auto guarded =
        weir::op(work) | weir::finally([]() -> task<> { (void)co_await give("finally", 0); });
    co_return std::to_string(co_await guarded());
  };
  EXPECT_EQ(ending_after_crash_in(on, "finally", handler), "cancelled");
  EXPECT_EQ(times("finally"), 2);
}

TEST(durable_cancel, gives_cleanup_all_the_time_it_wants_unless_the_scope_says_otherwise) {
  for (const bool limited : {false, true}) {
    const stage on;
    auto handler = [limited](int) -> task<std::string> {
      auto body = [](weir::scope& s) -> task<> {
        s.defer([]() -> task<> {
          co_await weir::sleep(500h);
          (void)co_await give("cleaned", 0);
        });
        co_await give("ready", 0);
        co_await weir::sleep(1000h);
      };
      weir::scope_options options;
      if (limited) options.grace = 1h;
      co_await weir::with_scope(options, body);
      co_return "value";
    };
    EXPECT_EQ(cancelled_ending(on, handler), "cancelled");
    EXPECT_EQ(times("cleaned"), limited ? 0 : 1);
  }
}

TEST(durable_cancel, cleanup_that_fails_does_not_change_the_ending) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.defer([]() -> task<> { (void)co_await give("still run", 0); });
      s.defer([]() -> task<> { (void)co_await failing_step("cleanup"); });
      co_await give("ready", 0);
      co_await weir::sleep(1000h);
    });
    co_return "value";
  };
  EXPECT_EQ(cancelled_ending(on, handler), "cancelled");
  EXPECT_EQ(times("still run"), 1);
}

TEST(durable_cancel, of_a_run_that_is_parked_in_a_later_life) {
  const stage on;
  EXPECT_EQ(life([&] {
              session_of(on, cleans_up_twice, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                co_await until_noted("ready");
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] {
    session_of(on, cleans_up_twice, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      run.cancel();
      EXPECT_EQ(co_await ending_of(run), "cancelled");
    });
  });
  EXPECT_EQ(ledger(), (lines{"ready", "first cleanup", "second cleanup", "last cleanup"}));
}

TEST(durable_cancel, during_a_plain_body_lets_it_finish_and_records_its_result) {
  const stage on;
  static durable::engine* engine = nullptr;
  auto handler = [](int) -> task<std::string> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.defer([]() -> task<> { (void)co_await give("cleanup", 0); });
      co_await weir::step("plain", [] {
        engine->cancel("r");
        note("plain");
      });
      co_await weir::sleep(1h);
      co_await give("NEVER", 0);
    });
    co_return "value";
  };
  auto use = [](durable::engine& e) -> task<> {
    engine = &e;
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await ending_of(run), "cancelled");
  };
  life_that_dies_in("cleanup", [&] { session_of(on, handler, use); });
  whole_life([&] { session_of(on, handler, use); });
  EXPECT_EQ(times("plain"), 1);
  EXPECT_EQ(times("cleanup"), 2);
  EXPECT_EQ(times("NEVER"), 0);
}

TEST(durable_cancel, during_a_task_body_unwinds_it_and_records_the_step_as_cancelled) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.defer([]() -> task<> { (void)co_await give("cleanup", 0); });
      auto body = []() -> task<int> {
        note("body begins");
        auto g = weir::scope_exit([] { note("body unwound"); });
        note("ready");
        co_return co_await nap(1000h, 1);
      };
      (void)co_await weir::step("body", body);
      co_await give("NEVER", 0);
    });
    co_return "value";
  };
  EXPECT_EQ(ending_after_crash_in(on, "cleanup", handler), "cancelled");
  EXPECT_EQ(times("body begins"), 1);
  EXPECT_EQ(times("body unwound"), 1);
  EXPECT_EQ(times("NEVER"), 0);
}

TEST(durable_cancel, between_attempts_of_a_step_ends_it) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> int {
      note("ready");
      throw std::runtime_error("again");
    };
    (void)co_await weir::step("body", body,
                              {.retry = {.attempts = 5, .base = 500h, .ceiling = 500h}});
    co_return "value";
  };
  EXPECT_EQ(cancelled_ending(on, handler), "cancelled");
  EXPECT_LT(times("ready"), 5);
}

TEST(durable_cancel, right_after_the_start_ends_the_run_at_its_first_wait) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await weir::sleep(1h);
    co_await give("NEVER", 0);
    co_return "value";
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    run.cancel();
    EXPECT_EQ(co_await ending_of(run), "cancelled");
  });
  EXPECT_EQ(times("NEVER"), 0);
}

TEST(durable_cancel, of_an_ended_run_changes_nothing) {
  const stage on;
  auto handler = [](int) -> task<std::string> { co_return "value"; };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), "value");
    run.cancel();
    e.cancel("r");
    EXPECT_EQ(co_await run.result(), "value");
    EXPECT_EQ(e.get("r")->state, durable::run_state::completed);
  });
  EXPECT_EQ(ending(on, handler), "value");
}
