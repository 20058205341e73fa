// SPDX-License-Identifier: MIT
// Delayed runs and a wall clock that is set back. Promises: a delayed run begins at its wall-clock
// time, not before; one that has begun continues, and is cancelled with its cleanup, whatever the
// clock says.
#include "durable/support/crashes.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

task<std::string> pays(int) {
  auto body = [](weir::scope& s) -> task<std::string> {
    s.defer([]() -> task<> { (void)co_await give("refund", 0); });
    (void)co_await give("charge", 1);
    co_return std::to_string(co_await weir::signal<int>("go").wait());
  };
  co_return co_await weir::with_scope(body);
}

task<std::string> waits(int) { co_return std::to_string(co_await weir::signal<int>("x").wait()); }

task<std::string> sends(int seconds) {
  (void)co_await weir::send("pays", 0, {.delay = std::chrono::seconds(seconds), .id = "r"});
  co_return "sent";
}

void add_all(durable::engine& e) {
  e.add("pays", pays);
  e.add("waits", waits);
  e.add("sends", sends);
}

/// Lets `use` have an engine that keeps one run in memory, in a world whose clock it may set.
void in_world(const stage& on, const std::function<task<>(durable::engine&, sim::world&)>& use,
              weir::duration later = 0ns) {
  sim::world w({.seed = 1, .start_time = day0 + later});
  auto options = options_for(on);
  options.max_live = 1;
  w.run(with_open_engine(options, add_all, [&](durable::engine& e) { return use(e, w); }));
}

/// Starts run "r", at once or by a delayed send, and lets other runs push it out of the memory.
task<> begin_and_suspend(durable::engine& e, bool delayed) {
  if (delayed) {
    auto sender = co_await e.start<std::string>("sends", {.id = "sender"}, 10);
    EXPECT_EQ(co_await sender.result(), "sent");
  } else {
    (void)co_await e.start<std::string>("pays", {.id = "r"}, 0);
  }
  co_await until_noted("charge");
  for (const char* id : {"a", "b", "c"}) {
    (void)co_await e.start<std::string>("waits", {.id = id}, 0);
    co_await weir::sleep(1s);
  }
  EXPECT_EQ(e.get("r")->state, run_state::suspended);
}

task<> begin_and_jump_back(durable::engine& e, sim::world& w, bool delayed) {
  co_await begin_and_suspend(e, delayed);
  w.shift_wall_clock(-1h);
  co_await weir::sleep(1s);
}

}  // namespace

TEST(durable_delayed, run_that_has_begun_is_cancelled_with_its_cleanup_after_a_jump_back) {
  for (const bool delayed : {false, true}) {
    const stage on;
    in_world(on, [delayed](durable::engine& e, sim::world& w) -> task<> {
      co_await begin_and_jump_back(e, w, delayed);
      EXPECT_TRUE(e.cancel("r"));
      co_await weir::sleep(1min);
      EXPECT_EQ(e.get("r")->state, run_state::cancelled) << e.get("r")->message;
    });
    EXPECT_EQ(ledger(), (lines{"charge", "refund"})) << delayed;
  }
}

TEST(durable_delayed, run_that_has_begun_hears_what_it_waits_for_after_a_jump_back) {
  for (const bool delayed : {false, true}) {
    const stage on;
    in_world(on, [delayed](durable::engine& e, sim::world& w) -> task<> {
      co_await begin_and_jump_back(e, w, delayed);
      EXPECT_TRUE(co_await e.signal("r", "go", 7));
      co_await weir::sleep(1min);
      EXPECT_EQ(e.get("r")->state, run_state::completed) << delayed;
    });
  }
}

TEST(durable_delayed, run_that_has_begun_goes_on_in_a_life_with_an_earlier_clock) {
  for (const bool cancelled : {false, true}) {
    const stage on;
    in_world(on, [](durable::engine& e, sim::world&) { return begin_and_suspend(e, true); }, 1h);
    in_world(on, [cancelled](durable::engine& e, sim::world&) -> task<> {
      co_await weir::sleep(1s);
      if (cancelled) {
        EXPECT_TRUE(e.cancel("r"));
      } else {
        EXPECT_TRUE(co_await e.signal("r", "go", 7));
      }
      co_await weir::sleep(1min);
      EXPECT_EQ(e.get("r")->state, cancelled ? run_state::cancelled : run_state::completed);
    });
    EXPECT_EQ(ledger(), (lines{"charge", "refund"})) << cancelled;
  }
}

TEST(durable_delayed, run_that_was_told_something_before_its_time_begins_at_its_time) {
  const stage on;
  in_world(on, [](durable::engine& e, sim::world&) -> task<> {
    auto sender = co_await e.start<std::string>("sends", {.id = "sender"}, 600);
    EXPECT_EQ(co_await sender.result(), "sent");
    EXPECT_TRUE(co_await e.signal("r", "go", 7));
    co_await weir::sleep(1min);
    EXPECT_EQ(times("charge"), 0);
  });
  in_world(
      on,
      [](durable::engine& e, sim::world&) -> task<> {
        co_await weir::sleep(1min);
        EXPECT_EQ(times("charge"), 0);
        co_await until([&] { return e.get("r")->state == run_state::completed; });
      },
      2min);
  EXPECT_EQ(ledger(), (lines{"charge", "refund"}));
}

TEST(durable_delayed, run_that_was_told_something_and_is_cancelled_before_its_time_never_begins) {
  const stage on;
  in_world(on, [](durable::engine& e, sim::world&) -> task<> {
    auto sender = co_await e.start<std::string>("sends", {.id = "sender"}, 600);
    EXPECT_EQ(co_await sender.result(), "sent");
    EXPECT_TRUE(co_await e.signal("r", "go", 7));
    EXPECT_TRUE(e.cancel("r"));
    co_await until([&] { return e.get("r")->state == run_state::cancelled; });
  });
  EXPECT_EQ(ledger(), lines{});
}
