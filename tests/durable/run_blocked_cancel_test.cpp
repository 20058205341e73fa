// SPDX-License-Identifier: MIT
// Blocked runs that are cancelled while they are about to be replayed. Promises: a run that has
// ended stays as it ended, and nothing of it runs again; `cancel` ends a blocked run without its
// cleanup, and one whose code is there again with it.
#include <set>

#include "durable/support/sources.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

task<std::string> pays(int n) {
  const std::string name = std::to_string(n);
  auto body = [&](weir::scope& s) -> task<> {
    s.defer([&]() -> task<> { (void)co_await give("refund " + name, 0); });
    (void)co_await give("charge " + name, 1);
    (void)co_await weir::signal<int>("go").wait();
  };
  co_await weir::with_scope(body);
  co_return "paid";
}

std::string id_of(int n) { return "r" + std::to_string(n); }

/// A journal with `n` runs of `pays` that wait for their signal.
void leave_waiting(const stage& on, int n) {
  session_of(on, pays, [n](durable::engine& e) -> task<> {
    for (int i = 0; i < n; ++i) (void)co_await e.start<std::string>("h", {.id = id_of(i)}, i);
    co_await weir::sleep(1s);
  });
}

/// An engine that does not have the handler, so that they are blocked.
void without_handler(const stage& on, int runs, const user& use, std::int64_t max_resume = 256) {
  auto options = options_for(on);
  options.max_resume = max_resume;
  auto when_blocked = [&](durable::engine& e) -> task<> {
    for (int i = 0; i < runs; ++i)
      co_await until([&] { return e.get(id_of(i))->state == run_state::blocked; });
    co_await use(e);
  };
  const installer none = [](durable::engine&) {};
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, none, when_blocked));
}

/// Every state of every run that is told after its end.
lines states_after_the_end(const std::vector<durable::run_event>& told) {
  std::set<std::string> ended;
  lines late;
  for (const durable::run_event& event : told) {
    if (ended.contains(event.id))
      late.push_back(event.id + " " + std::string(to_string(event.state)));
    const bool ends = event.state == run_state::completed || event.state == run_state::failed ||
                      event.state == run_state::cancelled;
    if (ends) ended.insert(event.id);
  }
  return late;
}

/// Whatever comes, the run stays cancelled: in this life and in the next.
task<> expect_stays_cancelled(durable::engine& e, std::string id) {
  co_await weir::sleep(1min);
  EXPECT_EQ(e.get(id)->state, run_state::cancelled) << e.get(id)->message;
  EXPECT_FALSE(e.cancel(id));
  EXPECT_FALSE(co_await e.signal(id, "go", 1));
  co_await weir::sleep(1min);
  EXPECT_EQ(e.get(id)->state, run_state::cancelled);
}

void expect_cancelled_in_the_next_life(const stage& on, int runs) {
  session_of(on, pays, [runs](durable::engine& e) -> task<> {
    for (int i = 0; i < runs; ++i) co_await expect_stays_cancelled(e, id_of(i));
  });
}

}  // namespace

TEST(durable_blocked_cancel,
     of_a_run_whose_code_was_just_added_runs_its_cleanup_and_no_step_again) {
  const stage on;
  leave_waiting(on, 1);
  without_handler(on, 1, [](durable::engine& e) -> task<> {
    e.add("h", pays);
    EXPECT_TRUE(e.cancel("r0", "not needed any more"));
    EXPECT_TRUE(e.cancel("r0"));
    co_await expect_stays_cancelled(e, "r0");
    EXPECT_EQ(e.get("r0")->message, "not needed any more");
  });
  expect_cancelled_in_the_next_life(on, 1);
  EXPECT_EQ(ledger(), (lines{"charge 0", "refund 0"}));
}

TEST(durable_blocked_cancel, of_a_run_without_code_ends_it_also_after_a_signal_in_the_same_turn) {
  const stage on;
  leave_waiting(on, 1);
  without_handler(on, 1, [](durable::engine& e) -> task<> {
    // The signal lets the engine look for the code again.
    auto signals = [&]() -> task<> { EXPECT_TRUE(co_await e.signal("r0", "go", 1)); };
    auto cancels = [&]() -> task<> {
      EXPECT_TRUE(e.cancel("r0", "not needed any more"));
      co_return;
    };
    co_await weir::all(signals(), cancels());
    co_await until([&] { return e.get("r0")->state == run_state::cancelled; });
    const std::string message = e.get("r0")->message;
    EXPECT_TRUE(
        test_support::contains(message, "so its cleanup did not run (not needed any more)"));
    EXPECT_TRUE(test_support::contains(message, "it was blocked because no handler 'h'"))
        << message;
    e.add("h", pays);
    co_await expect_stays_cancelled(e, "r0");
  });
  expect_cancelled_in_the_next_life(on, 1);
  EXPECT_EQ(ledger(), (lines{"charge 0"}));
}

TEST(durable_blocked_cancel, of_a_run_that_is_blocked_again_by_other_code_ends_it) {
  const stage on;
  leave_waiting(on, 1);
  without_handler(on, 1, [](durable::engine& e) -> task<> {
    e.add("h", [](int) -> task<std::string> { co_return "wrong"; });
    EXPECT_TRUE(e.cancel("r0"));
    co_await expect_stays_cancelled(e, "r0");
    const std::string message = e.get("r0")->message;
    EXPECT_TRUE(
        test_support::contains(message, "cleanup did not run; it was blocked because the code"))
        << message;
  });
  expect_cancelled_in_the_next_life(on, 1);
  EXPECT_EQ(ledger(), (lines{"charge 0"}));
}

TEST(durable_blocked_cancel, of_runs_that_wait_for_their_turn_to_be_replayed) {
  constexpr int runs = 20;
  const stage on;
  leave_waiting(on, runs);
  auto use = [](durable::engine& e) -> task<> {
    std::vector<durable::run_event> told;
    auto listens = [&]() -> task<> {
      auto events = e.events();
      for (;;) told.push_back(*co_await events.next());
    };
    auto body = [&](weir::scope& s) -> task<> {
      auto listener = s.spawn(listens());
      co_await weir::yield();
      e.add("h", pays);
      for (int i = 0; i < runs; ++i) EXPECT_TRUE(e.cancel(id_of(i)));
      for (int i = 0; i < runs; ++i) co_await expect_stays_cancelled(e, id_of(i));
      listener.cancel();
    };
    co_await weir::with_scope(body);
    EXPECT_GE(told.size(), std::size_t{runs});
    EXPECT_EQ(states_after_the_end(told), lines{});
  };
  without_handler(on, runs, use, 1);
  expect_cancelled_in_the_next_life(on, runs);
  for (int i = 0; i < runs; ++i) {
    EXPECT_EQ(times("charge " + std::to_string(i)), 1);
    EXPECT_EQ(times("refund " + std::to_string(i)), 1);
  }
}

TEST(durable_blocked_cancel, of_one_run_leaves_the_next_request_to_a_run_that_goes_on) {
  // The replay succeeds, and its cleanup is interrupted by nothing that was remembered.
  const stage on;
  auto absorbs = [](int) -> task<std::string> {
    const auto first = co_await weir::absorb(weir::signal<int>("go").wait());
    (void)co_await give(first.is_cancelled() ? "absorbed" : "heard", 0);
    co_return std::to_string(co_await weir::signal<int>("go").wait());
  };
  session_of(on, absorbs, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r0"}, 0);
    co_await weir::sleep(1s);
  });
  without_handler(on, 1, [&](durable::engine& e) -> task<> {
    e.add("h", absorbs);
    EXPECT_TRUE(e.cancel("r0"));
    co_await until_noted("absorbed");
    EXPECT_TRUE(co_await e.signal("r0", "go", 7));
    auto run = co_await e.start<std::string>("h", {.id = "r0"}, 0);
    EXPECT_EQ(co_await ending_of(run), "7");
  });
}

namespace {

const std::string long_why(200'000, 'w');

durable::engine_options quietly_on(sim::world& w) {
  durable::engine_options options = on_disk(w);
  options.report_blocked = false;
  return options;
}

}  // namespace

// A reason of that length needs a file of its own, and there is no space for one.
TEST(durable_blocked_cancel, for_a_reason_that_cannot_be_written_ends_the_run_with_a_part_of_it) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(with_open_engine(quietly_on(w), as_h(pays), [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r0"}, 0);
    co_await weir::sleep(1s);
  }));
  const installer none = [](durable::engine&) {};
  auto use = [&w](durable::engine& e) -> task<> {
    co_await until([&] { return e.get("r0")->state == run_state::blocked; });
    w.disk().set({.space = 1});
    EXPECT_TRUE(e.cancel("r0", long_why));
    co_await until([&] { return e.get("r0")->state == run_state::cancelled; });
    EXPECT_TRUE(test_support::contains(e.get("r0")->message, "cleanup did not run (www"));
    EXPECT_LT(e.get("r0")->message.size(), 10'000u);
  };
  w.run(with_open_engine(quietly_on(w), none, use));
  w.disk().set({});
  w.run(with_open_engine(quietly_on(w), as_h(pays),
                         [](durable::engine& e) { return expect_stays_cancelled(e, "r0"); }));
}

TEST(durable_blocked_cancel, for_such_a_reason_ends_also_a_run_whose_steps_end_first) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(with_open_engine(quietly_on(w), as_h(hears_during_a_step),
                         [&w](durable::engine& e) -> task<> {
                           auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
                           const std::string text = "five";
                           EXPECT_TRUE(co_await e.signal("r", "x", text));
                           co_await weir::sleep(1h + 1s);
                           EXPECT_EQ(e.get("r")->state, run_state::blocked);
                           w.disk().set({.space = 1});
                           EXPECT_TRUE(e.cancel("r", long_why));
                           EXPECT_EQ(co_await ending_of(run), "cancelled");
                           w.disk().set({});
                         }));
}
