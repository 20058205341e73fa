// SPDX-License-Identifier: MIT
// event and latch: waiters are released; cancelling one does not affect the others.
#include "flow_support.hpp"

using namespace weir_test;

namespace {

template <class Gate>
task<> pass(Gate& through, text_log& log, std::string name) {
  co_await through.wait();
  log.push_back(std::move(name));
}

}  // namespace

TEST(event, lets_everybody_through_who_waits_and_runs_nobody_itself) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      weir::event e;
      EXPECT_FALSE(e.is_set());
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (const char* name : {"a", "b", "c"}) s.spawn(pass(e, log, name));
        co_await settled();
        EXPECT_TRUE(log.empty());
        e.set();
        EXPECT_TRUE(e.is_set());
        EXPECT_TRUE(log.empty());
        co_await s.join();
      });
    });
    std::sort(log.begin(), log.end());
    EXPECT_EQ(joined(log), "a,b,c");
  });
}

TEST(event, in_the_order_of_production_those_who_wait_run_in_the_order_of_their_arrival) {
  text_log log;
  in_order([&]() -> task<> {
    weir::event e;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (const char* name : {"a", "b", "c"}) s.spawn(pass(e, log, name));
      co_await settled();
      e.set();
      co_await s.join();
    });
  });
  EXPECT_EQ(joined(log), "a,b,c");
}

FIBER_TEST(event, that_is_set_is_not_waited_for) {
  weir::event e;
  e.set();
  e.set();
  const auto start = weir::now();
  for (int i = 0; i < 3; ++i) co_await e.wait();
  EXPECT_EQ(weir::now(), start);
}

FIBER_TEST_IN_EVERY_ORDER(event, set_and_reset_at_once_let_through_who_waited_and_stop_who_comes) {
  weir::event e;
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(pass(e, log, "early"));
    co_await settled();
    e.set();
    e.reset();
    EXPECT_FALSE(e.is_set());
    auto late = s.spawn(pass(e, log, "late"));
    co_await settled();
    EXPECT_EQ(joined(log), "early");
    EXPECT_FALSE(late.done());
    e.set();
    co_await s.join();
    EXPECT_EQ(joined(log), "early,late");
  });
}
FIBER_TEST_IN_EVERY_ORDER(event, a_cancelled_waiter_leaves_alone) {
  weir::event e;
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(pass(e, log, "a"));
    auto leaves = s.spawn(pass(e, log, "b"));
    s.spawn(pass(e, log, "c"));
    co_await settled();
    leaves.cancel();
    co_await settled();
    EXPECT_TRUE(leaves.done());
    e.set();
    co_await s.join();
  });
  EXPECT_EQ(counted(log, "a"), 1);
  EXPECT_EQ(counted(log, "b"), 0);
  EXPECT_EQ(counted(log, "c"), 1);
}

TEST(event, nobody_who_sets_is_a_deadlock_that_names_it) {
  auto error = thrown_by([] {
    weir::run([]() -> task<> {
      weir::event e("all clear");
      co_await e.wait();
    });
  });
  EXPECT_EQ(code_of(error), errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "event 'all clear'")) << what_of(error);
}

FIBER_TEST_IN_EVERY_ORDER(latch, opens_when_it_is_counted_down_and_stays_open) {
  weir::latch l(3);
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (const char* name : {"a", "b"}) s.spawn(pass(l, log, name));
    co_await settled();
    l.count_down();
    l.count_down();
    co_await settled();
    EXPECT_TRUE(log.empty());
    l.count_down();
    co_await s.join();
    EXPECT_EQ(log.size(), 2U);
  });
  co_await l.wait();
  co_await l.wait();
}

FIBER_TEST_IN_EVERY_ORDER(latch, joins_the_work_of_several_fibers) {
  weir::latch l(4);
  int done = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 4; ++i) {
      s.spawn([&]() -> task<> {
        co_await weir::yield();
        ++done;
        l.count_down();
      });
    }
    co_await l.wait();
    EXPECT_EQ(done, 4);
  });
}

FIBER_TEST(latch, of_0_is_open_at_once_and_a_negative_one_is_refused) {
  weir::latch open(0);
  co_await open.wait();
  EXPECT_EQ(code_thrown_by([] { weir::latch l(-1); }), errc::invalid_argument);
}

FIBER_TEST(latch, counting_below_0_is_refused_and_counts_nothing) {
  weir::latch l(2);
  EXPECT_EQ(code_thrown_by([&] { l.count_down(3); }), errc::invalid_argument);
  EXPECT_EQ(l.count(), 2);
  l.count_down(2);
  co_await l.wait();
  EXPECT_EQ(code_thrown_by([&] { l.count_down(); }), errc::invalid_argument);
  co_await l.wait();
}

FIBER_TEST_IN_EVERY_ORDER(latch, a_cancelled_waiter_leaves_alone) {
  weir::latch l(1);
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto leaves = s.spawn(pass(l, log, "a"));
    s.spawn(pass(l, log, "b"));
    co_await settled();
    leaves.cancel();
    l.count_down();
    co_await s.join();
  });
  EXPECT_EQ(counted(log, "b"), 1);
}
