// SPDX-License-Identifier: MIT
// shared_governor when loops crash: permits and places in the queue of a crashed loop go to the
// others.
#include <memory>

#include "core/loop.hpp"
#include "governor_support.hpp"

using namespace flow_test;
using weir::shared_governor;
namespace sim = weir::sim;

namespace {

/// What the runs of explore share; each has a governor of its own.
struct program {
  shared_governor g{1, {.name = "shared"}};
  text_log log;
};

/// Starts a user on a named loop that nobody waits for: the loop is going to crash.
void start(sim::world& w, const char* loop, program& p, const char* name, weir::duration d) {
  w.loop(loop).post([&p, name, d] {
    weir::detail::loop::here()->root_scope()->background(user(p.g, p.log, name, d));
  });
}

}  // namespace

// The release and the crash are one step: the grant is a message that is refused.
TEST(shared_governor_crash, a_grant_on_its_way_to_a_loop_that_crashes_goes_to_the_next) {
  const auto found = sim::explore({.runs = 500}, [](sim::world& w) -> task<> {
    program p;
    auto held = co_await p.g.acquire();
    start(w, "x", p, "first", 1h);
    co_await weir::sleep(1ms);
    EXPECT_EQ(p.g.waiting(), 1);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn_on(w.loop("y"), [&] { return user(p.g, p.log, "second", 1ms); });
      co_await weir::sleep(1ms);
      held.release();
      const auto yields = weir::random() % 6;
      for (std::uint64_t i = 0; i < yields; ++i) co_await weir::yield();
      w.crash("x");
      co_await s.join();
    });
    sim::always("the second one is served", counted(p.log, "second") == 1);
    sim::always("everything is back", p.g.active() == 0 && p.g.available() == 1);
    sim::sometimes("the first one never saw its grant", counted(p.log, "first") == 0);
    sim::sometimes("the first one crashed with the permit", counted(p.log, "first") == 1);
  });
  EXPECT_TRUE(found.ok()) << found;
}

FIBER_TEST_IN_EVERY_ORDER(shared_governor_crash,
                          waiters_and_holders_of_a_crashed_loop_do_not_block_the_others) {
  program p;
  start(w, "x", p, "holder", 1h);
  co_await weir::sleep(1ms);
  start(w, "x", p, "waiter 1", 1h);
  start(w, "x", p, "waiter 2", 1h);
  co_await weir::sleep(1ms);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("y"), [&] { return user(p.g, p.log, "y", 1ms); });
    co_await weir::sleep(1ms);
    s.spawn(user(p.g, p.log, "main", 1ms));
    co_await weir::sleep(1ms);
    EXPECT_EQ(p.g.waiting(), 4);
    w.crash("x");
    co_await s.join();
  });
  EXPECT_EQ(joined(p.log), "holder,y,main");
  EXPECT_EQ(p.g.active(), 0);
  EXPECT_EQ(p.g.waiting(), 0);
}

FIBER_TEST_IN_EVERY_ORDER(shared_governor_crash,
                          a_heavy_waiter_of_a_crashed_loop_lets_the_lighter_ones_in) {
  shared_governor g(2);
  auto one = co_await g.acquire();
  w.loop("x").post([&] {
    auto heavy = [&]() -> task<> { (void)co_await g.acquire(2); };
    weir::detail::loop::here()->root_scope()->background(heavy);
  });
  co_await weir::sleep(1ms);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto light = s.spawn([&]() -> task<> { (void)co_await g.acquire(); });
    co_await weir::sleep(1ms);
    EXPECT_EQ(g.waiting(), 3);
    w.crash("x");
    co_await light;
  });
  EXPECT_EQ(g.active(), 1);
}

// Home governors of a crashed loop: their waiters and permits go with it, in order.
FIBER_TEST_IN_EVERY_ORDER(governor_crash, governors_that_live_on_a_crashed_loop_end_with_it) {
  w.loop("x").post([] {
    auto all = []() -> task<> {
      weir::rate_governor rate({.per_second = 1, .burst = 1});
      weir::adaptive_governor adaptive({.initial = 1, .max = 1});
      weir::partitioned_governor parts(1, {{"a", 1}, {"b", 1}});
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        text_log log;
        for (int i = 0; i < 3; ++i) {
          s.spawn(user(rate, log, "rate", 1h));
          s.spawn(user(adaptive, log, "adaptive", 1h));
          s.spawn(user(parts.part("a"), log, "a", 1h));
          s.spawn(user(parts.part("b"), log, "b", 1h));
        }
        co_await s.join();
      });
    };
    weir::detail::loop::here()->root_scope()->background(all);
  });
  co_await weir::sleep(1500ms);
  w.crash("x");
  EXPECT_EQ(live_timers(), 0);
}
