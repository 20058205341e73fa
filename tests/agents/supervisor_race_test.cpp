// SPDX-License-Identifier: MIT
// supervisor: what happens while something else is under way: during the start, during a group
// restart that waits for a slow child, and at the same moment.
#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

/// Lets the others run for a while that the adversary chooses.
task<> some_steps() {
  for (auto n = weir::random() % 12; n > 0; --n) co_await weir::yield();
}

/// Children a, slow (a task that takes a second to stop), b; one of the others crashes.
struct half_restarted {
  explicit half_restarted(rig& r) : rig_(r) {}

  task<> begin() {
    a = rig_.add("a");
    rig_.sup.add_task(kid("slow"), slow_sleeper(rig_.log, "slow", 1s));
    b = rig_.add("b");
    co_await rig_.start();
    EXPECT_EQ(rig_.log.lives('+'), 3);
    (void)rig_.log.take();
    a->cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(rig_.log.text(), "-a -b");
  }

  std::optional<worker_ref> a, b;

 private:
  rig& rig_;
};

}  // namespace
TEST(supervisor_race, stop_during_a_group_restart_starts_nobody_again) {
  for (bool cancel : {false, true}) {
    in_every_order(patient(strategy::one_for_all), [&](rig& r) -> task<> {
      half_restarted half(r);
      co_await half.begin();
      if (cancel) r.running->cancel("enough");
      if (!cancel) co_await r.sup.stop();
      co_await weir::sleep(2s);
      EXPECT_TRUE(r.result.ended);
      EXPECT_EQ(r.log.text(), "-a -b -slow");
    });
  }
}
TEST(supervisor_race, a_group_restart_is_one_restart_whatever_its_children_do_meanwhile) {
  in_every_order(options_of(strategy::one_for_all, 1), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto b = r.add("b");
    auto c = r.add("c");
    co_await r.start();
    b.cast(&worker::crash_after, 1s);  // it is being stopped when it crashes
    co_await settle();
    a.cast(&worker::crash);
    co_await weir::sleep(3s);
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(r.log.text(), "+a +b +c -a -c -b +a +b +c");
    EXPECT_EQ(co_await c.call(&worker::seen), 0);
  });
}
TEST(supervisor_race, a_crash_before_the_group_restart_has_told_the_child_is_part_of_it) {
  for (strategy how : {strategy::one_for_all, strategy::rest_for_one}) {
    in_every_order(options_of(how, 1), [](rig& r) -> task<> {
      auto a = r.add("a");
      auto b = r.add("b");
      r.sup.add_task(kid("slow"), slow_sleeper(r.log, "slow", 1s));
      co_await r.start();
      a.cast(&worker::crash);
      co_await settle();
      b.cast(&worker::crash);  // the slow one is still being stopped
      co_await weir::sleep(2s);
      EXPECT_FALSE(r.result.ended);
      EXPECT_EQ(r.log.text(), "+a +b +slow -a -b -slow +a +b +slow");
    });
  }
}

TEST(supervisor_race, administration_during_a_group_restart_is_answered_and_obeyed) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    half_restarted half(r);
    co_await half.begin();
    (void)co_await code_after([&] { return r.sup.terminate_child("b"); });
    const auto code = co_await code_after([&] { return r.sup.terminate_child("nobody"); });
    EXPECT_EQ(code, errc::no_such_child);
    co_await weir::sleep(3s);
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(state_of(r.sup, "a"), "running");
    EXPECT_EQ(state_of(r.sup, "slow"), "running");
    EXPECT_EQ(r.log.count("+a"), 1);
  });
}

TEST(supervisor_race, a_child_that_is_added_during_a_group_restart_is_started_once) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    half_restarted half(r);
    co_await half.begin();
    auto late = r.add("late");
    co_await weir::sleep(3s);
    EXPECT_EQ(co_await late.call(&worker::seen), 0);
    EXPECT_EQ(counts(r.sup), "4 4 0 4");
    EXPECT_EQ(r.log.count("+late"), 1);
    EXPECT_EQ(r.log.count("+a"), 1);
  });
}
TEST(supervisor_race, messages_to_children_that_are_being_restarted_wait_for_their_next_life) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    half_restarted half(r);
    co_await half.begin();
    EXPECT_EQ(half.a->cast(&worker::note, 1), sent::enqueued);
    EXPECT_EQ(half.b->cast(&worker::note, 2), sent::enqueued);
    const auto start = weir::now();
    EXPECT_EQ(co_await half.b->call(&worker::seen), 1);
    EXPECT_EQ(ms_since(start), 999);
    EXPECT_EQ(co_await half.a->call(&worker::seen), 1);
  });
}
TEST(supervisor_race, stop_and_cancellation_at_any_moment_of_the_start_leave_nobody_alive) {
  for (bool cancel : {false, true}) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      std::vector<worker_ref> refs;
      weir::supervisor inner(patient());
      refs.push_back(inner.add<worker>(kid("b"), &r.log, std::string("b")));
      refs.push_back(r.add("a"));
      r.sup.add_supervisor({.name = "inner"}, std::move(inner));
      refs.push_back(r.add("c"));
      r.running = r.home->spawn(drive(r.sup, r.result));
      co_await some_steps();
      if (cancel) r.running->cancel("enough");
      if (!cancel) co_await r.sup.stop();
      co_await settle();
      co_await r.finish();
      EXPECT_EQ(r.log.begun(), r.log.ended());
      if (r.log.begun() == 0) co_return;
      for (auto& ref : refs) (void)co_await ref.monitor();
    });
  }
}
TEST(supervisor_race, a_crash_at_the_moment_of_the_stop_restarts_nobody_afterwards) {
  for (strategy how : all_strategies) {
    in_every_order(options_of(how, 3), [](rig& r) -> task<> {
      auto a = r.add("a");
      auto b = r.add("b");
      co_await r.start();
      a.cast(&worker::crash);
      co_await some_steps();
      b.cast(&worker::crash);
      co_await r.sup.stop();
      EXPECT_EQ(r.log.begun(), r.log.ended());
      const long begun = r.log.begun();
      co_await settle();
      EXPECT_TRUE(r.result.clean);
      EXPECT_EQ(r.log.begun(), begun);
    });
  }
}
TEST(supervisor_race, a_crash_at_the_moment_of_terminate_leaves_the_child_stopped) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    a.cast(&worker::crash);
    co_await some_steps();
    co_await r.sup.terminate_child("a");
    EXPECT_EQ(r.log.begun(), r.log.ended());
    const long begun = r.log.begun();
    co_await weir::sleep(1s);
    EXPECT_EQ(r.log.begun(), begun);
    EXPECT_EQ(children_of(r.sup), "a:stopped");
  });
}
TEST(supervisor_race, a_stop_by_reference_and_a_crash_end_one_life_once) {
  in_every_order(options_of(strategy::one_for_one, 1), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    a.cast(&worker::crash);
    auto stopped = a.stop();
    co_await stopped;
    co_await settle();
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(r.log.text(), "+a -a +a");
  });
}
TEST(supervisor_race, an_inner_supervisor_that_gives_up_while_the_outer_stops_is_not_restarted) {
  in_every_order(patient(), [](rig& r) -> task<> {
    weir::supervisor inner(options_of(strategy::one_for_one, 0));
    auto b = inner.add<worker>(kid("b"), &r.log, std::string("b"));
    r.add("a");
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    co_await r.start();
    b.cast(&worker::crash);
    co_await some_steps();
    co_await r.sup.stop();
    co_await settle();
    EXPECT_TRUE(r.result.clean);
    EXPECT_EQ(r.log.begun(), r.log.ended());
  });
}
TEST(supervisor_race, the_end_of_the_scope_that_runs_it_stops_the_children_in_order) {
  for_each_order([](weir::sim::world& w) {
    journal log;
    w.run([&]() -> task<> {
      weir::supervisor sup(patient());
      for (const char* name : {"a", "b"}) sup.add<worker>(kid(name), &log, std::string(name));
      const auto error = co_await attempt([&] {
        return weir::with_scope([&](weir::scope& s) -> task<> {
          s.spawn(sup.run());
          co_await settle();
          throw boom(1);
        });
      });
      EXPECT_EQ(boom_of(error), 1);
      EXPECT_EQ(log.text(), "+a +b -b -a");
    });
  });
}

TEST(supervisor_race, the_error_of_run_fails_the_scope_that_runs_it) {
  for_each_order([](weir::sim::world& w) {
    journal log;
    w.run([&]() -> task<> {
      weir::supervisor sup(options_of(strategy::one_for_one, 0));
      auto a = sup.add<worker>(kid("a"), &log, std::string("a"));
      const auto error = co_await attempt([&] {
        return weir::with_scope([&](weir::scope& s) -> task<> {
          s.spawn(sup.run());
          co_await settle();
          a.cast(&worker::crash);
          co_await weir::sleep(10000h);
        });
      });
      EXPECT_TRUE(holds<weir::restart_limit_error>(error));
      EXPECT_EQ(log.text(), "+a -a");
    });
  });
}
