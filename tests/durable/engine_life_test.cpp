// SPDX-License-Identifier: MIT
// How runs leave memory and come back: close, the end of a scope, suspension, recovery.
#include <set>

#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

int evicted_frames = 0;
int other_frames = 0;

/// Says how it was destroyed.
struct witness {
  witness() = default;
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;
  ~witness() {
    const weir::cancel_reason* why = weir::unwinding();
    ++(why != nullptr && why->kind == weir::cancel_kind::evicted ? evicted_frames : other_frames);
  }
};

/// Parks in a defer's scope, in a finally, in a catch, with a child.
task<std::string> well_guarded(int) {
  const witness outer;
  try {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.defer([] { note("CLEANUP"); });
      s.defer([]() -> task<> { (void)co_await give("CLEANUP", 0); });
      auto parks = []() -> task<> {
        const witness inner;
        co_await give("ready", 0);
        co_await weir::sleep(24h);
      };
      auto guarded = weir::op(parks) | weir::finally([] { note("CLEANUP"); });
      auto child = s.spawn(guarded);
      co_await child;
    });
  } catch (...) {
    note("CLEANUP");
    throw;
  }
  co_return std::to_string(co_await give("end", 7));
}

/// Starts run "r" and leaves it parked.
task<> leave_parked(durable::engine& e) {
  (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
  co_await until_noted("ready");
  co_await weir::sleep(1h);
}

void check_evicted() {
  EXPECT_EQ(evicted_frames, 2);
  EXPECT_EQ(other_frames, 0);
  EXPECT_EQ(times("CLEANUP"), 0);
}

}  // namespace

TEST(durable_close, destroys_the_frames_of_unfinished_runs_without_cleanup_and_open_resumes_them) {
  const stage on;
  evicted_frames = other_frames = 0;
  session_of(on, well_guarded, [](durable::engine& e) -> task<> {
    co_await leave_parked(e);
    co_await e.close();
    check_evicted();
  });
  check_evicted();
  session_of(
      on, well_guarded,
      [](durable::engine& e) -> task<> {
        auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
        EXPECT_EQ(co_await run.result(), "7");
      },
      2h);
  EXPECT_EQ(times("ready"), 1);
  EXPECT_EQ(times("end"), 1);
  EXPECT_EQ(times("CLEANUP"), 3);
}

TEST(durable_close, happens_at_the_end_of_with_engine_too) {
  const stage on;
  evicted_frames = other_frames = 0;
  session_of(on, well_guarded, leave_parked);
  check_evicted();
  EXPECT_EQ(ending(on, well_guarded, 2h), "7");
}

TEST(durable_close, happens_when_the_function_of_with_engine_throws) {
  const stage on;
  evicted_frames = other_frames = 0;
  const auto error = test_support::thrown_by([&] {
    session_of(on, well_guarded, [](durable::engine& e) -> task<> {
      co_await leave_parked(e);
      throw test_support::boom(4);
    });
  });
  EXPECT_EQ(test_support::boom_of(error), 4);
  check_evicted();
  EXPECT_EQ(ending(on, well_guarded, 2h), "7");
}

TEST(durable_close, of_an_engine_that_is_a_child_of_a_scope_happens_at_its_end) {
  const stage on;
  evicted_frames = other_frames = 0;
  auto app = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      durable::engine e(s, options_for(on));
      e.add("h", well_guarded);
      co_await e.open();
      co_await leave_parked(e);
    });
    check_evicted();
  };
  sim::run({.seed = 1, .start_time = day0}, app());
  EXPECT_EQ(ending(on, well_guarded, 2h), "7");
}

TEST(durable_close, joins_the_task_bodies_of_steps_with_their_own_cleanup_and_records_nothing) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto body = []() -> task<int> {
      co_return co_await weir::with_scope([](weir::scope& s) -> task<int> {
        s.defer([]() -> task<> {
          co_await weir::sleep(1s);
          note("body cleaned up");
        });
        note("ready");
        co_return co_await nap(2h, 1);
      });
    };
    co_return std::to_string(co_await weir::step("body", body));
  };
  session_of(on, handler, leave_parked);
  EXPECT_EQ(ledger(), (lines{"ready", "body cleaned up"}));
  EXPECT_EQ(ending(on, handler, 1h), "1");
  EXPECT_EQ(times("ready"), 2);
}

TEST(durable_close, tells_those_who_wait_for_a_result) {
  const stage on;
  session_of(on, well_guarded, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto waits = [&]() -> task<std::string> { co_return co_await ending_of(run); };
      auto waiter = s.spawn(waits);
      co_await until_noted("ready");
      co_await e.close();
      const std::string end = co_await waiter;
      EXPECT_NE(end, "7");
    });
    const auto later =
        co_await test_support::attempt([&] { return e.start<std::string>("h", {.id = "s"}, 1); });
    EXPECT_EQ(test_support::code_of(later), errc::not_open) << test_support::what_of(later);
  });
}

TEST(durable_close, may_be_called_twice_and_without_runs) {
  const stage on;
  session_of(on, well_guarded, [](durable::engine& e) -> task<> {
    co_await e.close();
    co_await e.close();
  });
}

TEST(durable_close, at_any_moment_changes_no_result) {
  // An engine lives for a few minutes of virtual time, again and again.
  auto handler = [](int) -> task<std::string> {
    int sum = 0;
    for (int i = 0; i < 6; ++i) {
      auto [a, b] = co_await weir::all(give_after(7min, "a" + std::to_string(i), i),
                                       give_after(11min, "b" + std::to_string(i), i));
      sum += a + b;
    }
    co_return std::to_string(sum);
  };
  const stage on;
  std::string end;
  auto lives = [&]() -> task<> {
    for (int i = 0; i < 100 && end.empty(); ++i) {
      auto use = [&](durable::engine& e) -> task<> {
        auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
        auto waits = [&]() -> task<> { end = co_await run.result(); };
        (void)co_await weir::settle(weir::with_timeout(3min + 1s * i, waits()));
      };
      co_await with_open_engine(options_for(on), as_h(handler), use);
    }
  };
  sim::run({.seed = 1, .start_time = day0}, lives());
  EXPECT_EQ(end, "30");
  const lines all = ledger();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(all.size(), 12u);
}

// -------------------------------------------------------------------------------------- many runs

TEST(durable_recovery, resumes_hundreds_of_runs_a_few_at_a_time) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    (void)co_await give("begun " + std::to_string(n), 0);
    co_await weir::sleep(24h);
    (void)co_await give("woken " + std::to_string(n), 0);
    co_return "done";
  };
  auto options = options_for(on);
  options.max_resume = 8;
  auto starts = [&](durable::engine& e) -> task<> {
    for (int n = 0; n < 300; ++n) {
      const std::string id = "r" + std::to_string(n);
      (void)co_await e.start<std::string>("h", {.id = id}, n);
    }
    co_await weir::sleep(1h);
    ::_exit(crashed);
  };
  auto waits = [&](durable::engine& e) -> task<> {
    co_await until([] { return noted("woken ").size() == 300; });
    co_await weir::sleep(1s);
    EXPECT_EQ(e.list({.state = run_state::completed}).size(), 300u);
  };
  EXPECT_EQ(life([&] {
              sim::run({.seed = 1, .start_time = day0},
                       with_open_engine(options, as_h(handler), starts));
            }),
            crashed);
  whole_life([&] {
    sim::run({.seed = 1, .start_time = day0 + 48h},
             with_open_engine(options, as_h(handler), waits));
  });
  const lines woken = noted("woken ");
  EXPECT_EQ(std::set<std::string>(woken.begin(), woken.end()).size(), 300u);
  EXPECT_EQ(noted("begun ").size(), 300u);
}

TEST(durable_suspension, runs_beyond_max_live_are_parked_without_frames_and_come_back) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    auto answer = weir::awakeable<int>("answer");
    co_await weir::step("publish",
                        [&] { note("id" + std::to_string(n) + " " + std::string(answer.id())); });
    const int v = co_await answer.wait();
    co_return std::to_string(v);
  };
  auto options = options_for(on);
  options.max_live = 4;
  auto use = [](durable::engine& e) -> task<> {
    std::vector<durable::run_handle<std::string>> runs;
    for (int n = 0; n < 20; ++n) {
      const std::string id = "r" + std::to_string(n);
      runs.push_back(co_await e.start<std::string>("h", {.id = id}, n));
      (void)co_await last_noted("id" + std::to_string(n) + " ");
      co_await weir::sleep(1min);
    }
    co_await weir::sleep(1h);
    EXPECT_GE(e.list({.state = run_state::suspended}).size(), 16u);
    // Longest parked first: the last ones are still alive.
    EXPECT_EQ(e.get("r0")->state, run_state::suspended);
    EXPECT_EQ(e.get("r19")->state, run_state::running);
    for (int n = 0; n < 20; ++n) {
      const std::string id = noted("id" + std::to_string(n) + " ").front();
      EXPECT_TRUE(co_await e.resolve(id, n * n));
    }
    for (int n = 0; n < 20; ++n) {
      EXPECT_EQ(co_await runs[static_cast<std::size_t>(n)].result(), std::to_string(n * n));
    }
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, as_h(handler), use));
}

TEST(durable_suspension, timers_signals_and_cancellations_wake_suspended_runs) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    if (n == 0) co_return std::to_string(co_await give_after(100h, "timer", 1));
    if (n == 1) co_return std::to_string(co_await weir::signal<int>("s").wait());
    if (n == 2) {
      co_await weir::with_scope([](weir::scope& s) -> task<> {
        s.defer([]() -> task<> { (void)co_await give("undone", 0); });
        co_await weir::sleep(1000h);
      });
    }
    co_await weir::sleep(1000h);
    co_return "never";
  };
  auto options = options_for(on);
  options.max_live = 1;
  auto use = [](durable::engine& e) -> task<> {
    std::vector<durable::run_handle<std::string>> runs;
    for (int n = 0; n < 6; ++n) {
      const std::string id = "r" + std::to_string(n);
      runs.push_back(co_await e.start<std::string>("h", {.id = id}, n));
      co_await weir::sleep(1min);
    }
    EXPECT_EQ(e.get("r1")->state, run_state::suspended);
    EXPECT_TRUE(co_await e.signal("r1", "s", 5));
    EXPECT_EQ(co_await runs[1].result(), "5");
    EXPECT_EQ(e.get("r2")->state, run_state::suspended);
    runs[2].cancel();
    EXPECT_EQ(co_await ending_of(runs[2]), "cancelled");
    EXPECT_EQ(times("undone"), 1);
    EXPECT_EQ(e.get("r0")->state, run_state::suspended);
    EXPECT_EQ(co_await runs[0].result(), "1");
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, as_h(handler), use));
}

TEST(durable_suspension, a_crash_while_runs_are_suspended_or_delayed_lets_them_come_back) {
  sim::world w({.seed = 1, .start_time = day0});
  auto options = [&] {
    durable::engine_options o;
    o.path = "/journal";
    o.segment_bytes = smallest_segment;
    o.disk = &w.disk();
    o.max_live = 1;
    return o;
  };
  auto setup = [](durable::engine& e) {
    e.add("h", [](int n) -> task<int> {
      (void)co_await weir::send("later", n, {.delay = 100h});
      auto woken = weir::signal<int>("wake up");
      (void)co_await weir::race(woken.wait(), nap(10h, n));
      co_return co_await nap(std::chrono::hours(10 + n), n);
    });
    e.add("later", [](int n) -> task<int> { co_return n; });
  };
  auto starts = [](durable::engine& e) -> task<> {
    for (int n = 0; n < 6; ++n) {
      const std::string id = "r" + std::to_string(n);
      (void)co_await e.start<int>("h", {.id = id}, n);
      co_await weir::sleep(1min);
    }
    EXPECT_TRUE(co_await e.signal("r0", "wake up", 1));  // the first is the last that is alive
    co_await weir::sleep(1000h);
  };
  w.run([&]() -> task<> {
    co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
      auto lives = [&] {
        return weir::on(w.loop("process"), with_open_engine(options(), setup, starts));
      };
      auto process = s.spawn(weir::settle(lives));
      co_await weir::sleep(1h);
      w.crash("process");
      const auto& how = co_await process;
      EXPECT_EQ(test_support::code_of(how.error()), errc::loop_gone);
    });
  });
  w.run(with_open_engine(options(), setup, [](durable::engine& e) -> task<> {
    for (int n = 0; n < 6; ++n) {
      const std::string id = "r" + std::to_string(n);
      auto run = co_await e.start<int>("h", {.id = id}, n);
      EXPECT_EQ(co_await run.result(), n);
    }
    co_await weir::sleep(101h);
    EXPECT_EQ(e.list({.state = run_state::completed, .handler = "later"}).size(), 6u);
  }));
}

// What an engine has in the ready queue when it ends goes with it, whichever order the queue is
// taken in. (A leak is found by the sanitizer.)
TEST(durable_life, engine_that_ends_with_work_in_the_ready_queue_leaves_nothing) {
  auto sleeps = [](int n) -> task<int> {
    co_await weir::sleep(1h);
    co_return n;
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    sim::world w({.seed = seed, .strategy = sim::random});
    durable::engine_options options;
    options.path = "/journal";
    options.segment_bytes = smallest_segment;
    options.disk = &w.disk();
    w.run(with_open_engine(options, as_h(sleeps), [](durable::engine& e) -> task<> {
      (void)co_await e.start<int>("h", {.id = "r"}, 1);
      EXPECT_TRUE(e.cancel("r"));
    }));
  }
}
