// SPDX-License-Identifier: MIT
// supervisor: the first start of its children, and what happens when one of them fails.
#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

/// Its constructor never succeeds.
struct stillborn {
  stillborn(journal* log, std::string name) {
    log->add("!" + name);
    throw boom(7);
  }
  int get() const { return 1; }
};

/// An agent whose constructor starts children of its own.
struct parent_of_sleeper {
  parent_of_sleeper(weir::scope& s, journal* log, std::string name) {
    log->add("+" + name);
    s.spawn(sleeper(*log, name + ".child"));
    s.defer([log, name]() -> task<> {
      log->add("-" + name);
      co_return;
    });
  }
  void crash() { throw boom(1); }
};

}  // namespace
TEST(supervisor_start, without_children_it_runs_until_it_is_stopped) {
  for (strategy how : all_strategies) {
    simulate(patient(how), [](rig& r) -> task<> {
      co_await r.start();
      co_await weir::sleep(1h);
      EXPECT_FALSE(r.result.ended);
      EXPECT_EQ(counts(r.sup), "0 0 0 0");
      co_await r.sup.stop();
      co_await settle();
      EXPECT_TRUE(r.result.clean);
    });
  }
}
TEST(supervisor_start, a_cancelled_run_stops_the_children_in_reverse_order_and_ends) {
  in_every_order(patient(), [](rig& r) -> task<> {
    for (const char* name : {"a", "b", "c"}) r.add(name);
    co_await r.start();
    r.running->cancel("enough");
    co_await settle();
    EXPECT_TRUE(r.result.ended);
    EXPECT_FALSE(r.result.clean);
    EXPECT_TRUE(r.result.error == nullptr);
    EXPECT_EQ(r.log.text(), "+a +b +c -c -b -a");
  });
}
TEST(supervisor_start, a_run_that_is_cancelled_before_it_begins_starts_nobody) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    r.running = r.home->spawn(drive(r.sup, r.result));
    r.running->cancel("never mind");
    co_await settle();
    EXPECT_EQ(r.log.text(), "");
  });
}
TEST(supervisor_start, children_are_constructed_in_order_on_its_loop_by_run_and_not_by_add) {
  for (strategy how : all_strategies) {
    in_every_order(patient(how), [](rig& r) -> task<> {
      for (const char* name : {"a", "b", "c", "d"}) r.add(name);
      co_await settle();
      EXPECT_EQ(r.log.text(), "");
      EXPECT_EQ(counts(r.sup), "4 0 0 4");
      co_await r.start();
      EXPECT_EQ(r.log.text(), "+a +b +c +d");
      EXPECT_EQ(counts(r.sup), "4 4 0 4");
    });
  }
}
TEST(supervisor_start, the_next_child_waits_for_the_constructor_of_the_one_before_on_any_loop) {
  for_each_order([](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far"), further = w.loop("further");
    auto body = [&](rig& r) -> task<> {
      const weir::loop_ref here = weir::this_loop();
      int n = 0;
      for (weir::loop_ref on : {far, here, further, far}) {
        const std::string name(1, static_cast<char>('a' + n++));
        auto o = kid(name);
        o.on = on;
        r.add(o, name);
      }
      co_await r.start();
      EXPECT_EQ(r.log.text(), "+a +b +c +d");
      co_await r.sup.stop();
      EXPECT_EQ(r.log.text(), "+a +b +c +d -d -c -b -a");
    };
    w.run([&]() -> task<> { co_await with_rig(patient(), body); });
  });
}
TEST(supervisor_start, a_nested_supervisor_has_started_all_its_children_before_the_next_sibling) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    weir::supervisor inner(patient());
    for (const char* name : {"b", "c"}) inner.add<worker>(kid(name), &r.log, std::string(name));
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    r.add("d");
    co_await r.start();
    EXPECT_EQ(r.log.text(), "+a +b +c +d");
    co_await r.sup.stop();
    EXPECT_EQ(r.log.text(), "+a +b +c +d -d -c -b -a");
  });
}

TEST(supervisor_start, references_are_valid_at_once_and_what_they_send_waits_for_the_start) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    EXPECT_EQ(a.cast(&worker::note, 1), sent::enqueued);
    auto asked = r.home->spawn([&]() -> task<int> {
      int n = co_await a.call(&worker::seen);
      co_return n;
    });
    co_await settle();
    EXPECT_FALSE(asked.done());
    co_await r.start();
    EXPECT_EQ(co_await asked, 1);
    EXPECT_EQ(r.log.text(), "+a a1");
  });
}
TEST(supervisor_start, a_child_that_cannot_start_stops_the_earlier_ones_and_run_throws_its_error) {
  for (strategy how : static_strategies) {
    for (restart kind : all_kinds) {
      in_every_order(patient(how), [&](rig& r) -> task<> {
        r.add("a");
        r.add("b");
        r.sup.add<stillborn>(kid("c", kind), &r.log, std::string("c"));
        r.add("d");
        co_await r.start();
        EXPECT_EQ(r.log.text(), "+a +b !c -b -a");
        EXPECT_EQ(boom_of(r.result.error), 7);
        const auto code = co_await code_after([&] { return r.sup.terminate_child("a"); });
        EXPECT_EQ(code, errc::not_running);
      });
    }
  }
}
TEST(supervisor_start, also_in_dynamic_the_initial_start_is_not_retried) {
  simulate(patient(strategy::dynamic), [](rig& r) -> task<> {
    r.add("a");
    r.sup.add<stillborn>(kid("c"), &r.log, std::string("c"));
    co_await r.start();
    EXPECT_EQ(r.log.text(), "+a !c -a");
    EXPECT_EQ(boom_of(r.result.error), 7);
  });
}
TEST(supervisor_start, who_waits_for_a_child_is_told_when_the_start_fails) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto c = r.sup.add<stillborn>(kid("c"), &r.log, std::string("c"));
    auto d = r.add("d");
    std::vector<ending> ends;
    auto watch = [&](auto ref) -> task<> {
      auto how = co_await ref.monitor();
      ends.push_back(how);
    };
    std::vector<std::error_code> codes;
    auto ask = [&]() -> task<> {
      auto code = co_await code_after([&] { return c.call(&stillborn::get); });
      codes.push_back(code);
      code = co_await code_after([&] { return d.call(&worker::seen); });
      codes.push_back(code);
    };
    r.home->spawn(watch(c));
    r.home->spawn(watch(a));
    r.home->spawn(watch(d));
    r.home->spawn(ask());
    co_await r.start();
    EXPECT_EQ(ends.size(), 3u);
    EXPECT_EQ(co_await c.monitor(), ending::crashed);
    EXPECT_EQ(codes, (std::vector<std::error_code>{errc::agent_crashed, errc::agent_stopped}));
    EXPECT_EQ(a.cast(&worker::crash), sent::stopped);
  });
}
TEST(supervisor_start, the_error_of_a_failed_start_reaches_the_outermost_run_as_it_was_thrown) {
  in_every_order(patient(), [](rig& r) -> task<> {
    weir::supervisor innermost(patient());
    innermost.add<worker>(kid("c"), &r.log, std::string("c"));
    innermost.add<stillborn>(kid("bad"), &r.log, std::string("bad"));
    weir::supervisor inner(patient());
    inner.add<worker>(kid("b"), &r.log, std::string("b"));
    inner.add_supervisor({.name = "innermost"}, std::move(innermost));
    r.add("a");
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    r.add("z");
    co_await r.start();
    EXPECT_EQ(r.log.text(), "+a +b +c !bad -c -b -a");
    EXPECT_EQ(boom_of(r.result.error), 7);
  });
}
TEST(supervisor_start, a_start_that_fails_on_another_loop_is_reported_the_same_way) {
  for_each_order([](weir::sim::world& w) {
    const weir::loop_ref far = w.loop("far");
    auto body = [&](rig& r) -> task<> {
      auto o = kid("a");
      o.on = far;
      r.add(o, "a");
      o.name = "bad";
      r.sup.add<stillborn>(o, &r.log, std::string("bad"));
      co_await r.start();
      EXPECT_EQ(r.log.text(), "+a !bad -a");
      EXPECT_EQ(boom_of(r.result.error), 7);
    };
    w.run([&]() -> task<> { co_await with_rig(patient(), body); });
  });
}

TEST(supervisor_start, the_error_of_a_task_is_a_crash_and_never_a_failed_start) {
  in_every_order(options_of(strategy::one_for_one), [](rig& r) -> task<> {
    int lives = 0;
    r.sup.add_task(kid("t"), [&]() -> task<> {
      if (++lives <= 3) throw boom(lives);
      co_await weir::sleep(10000h);
    });
    r.add("a");
    co_await r.start();
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(lives, 4);
    EXPECT_EQ(r.log.text(), "+a");
    EXPECT_EQ(counts(r.sup), "2 2 0 2");
  });
}
TEST(supervisor_start, children_of_all_kinds_start_in_the_order_in_which_they_were_added) {
  simulate(patient(), [](rig& r) -> task<> {
    r.sup.add_task(kid("t"), sleeper(r.log, "t"));
    r.sup.add<parent_of_sleeper>(kid("p"), &r.log, std::string("p"));
    r.sup.add_supervisor({.name = "inner"}, weir::supervisor(patient()));
    co_await r.start();
    EXPECT_EQ(children_of(r.sup), "inner:running p:running t:running");
    EXPECT_EQ(counts(r.sup), "3 3 1 2");
    EXPECT_EQ(r.log.count("+t"), 1);
    EXPECT_EQ(r.log.count("+p"), 1);
    EXPECT_EQ(r.log.count("+p.child"), 1);
    co_await r.sup.stop();
    EXPECT_EQ(r.log.count("-p"), 1);
    EXPECT_EQ(r.log.count("-p.child"), 1);
  });
}

TEST(supervisor_start, a_start_that_fails_at_run_time_is_counted_and_tried_again) {
  for (strategy how : {strategy::one_for_one, strategy::dynamic}) {
    in_every_order(options_of(how), [](rig& r) -> task<> {
      auto& plan = r.keep<start_plan>(&r.log, "f", 1, 2);
      co_await r.start();
      auto f = r.sup.add<flaky>(kid("f"), &plan);
      co_await settle();
      EXPECT_EQ(r.log.text(), "!f !f +f");
      EXPECT_EQ(co_await f.call(&flaky::start), 3);
      EXPECT_FALSE(r.result.ended);
      f.cast(&flaky::crash);  // the third restart
      co_await settle();
      EXPECT_FALSE(r.result.ended);
      f.cast(&flaky::crash);
      co_await settle();
      EXPECT_EQ(booms_in(r.result.error), (std::vector<int>{1001, 1002, 1, 1}));
    });
  }
}

TEST(supervisor_start, a_child_that_never_starts_at_run_time_ends_the_supervisor_at_the_limit) {
  in_every_order(options_of(strategy::one_for_one), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    auto c = r.sup.add<stillborn>(kid("c"), &r.log, std::string("c"));
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a !c !c !c !c -a");
    EXPECT_EQ(booms_in(r.result.error), (std::vector<int>{7, 7, 7, 7}));
    EXPECT_EQ(co_await a.monitor(), ending::escalated);
    EXPECT_EQ(co_await c.monitor(), ending::escalated);
  });
}
TEST(supervisor_start, a_temporary_child_that_cannot_start_at_run_time_is_forgotten) {
  in_every_order(options_of(strategy::one_for_one), [](rig& r) -> task<> {
    co_await r.start();
    auto c = r.sup.add<stillborn>(kid("c", restart::temporary), &r.log, std::string("c"));
    EXPECT_EQ(co_await c.monitor(), ending::crashed);
    co_await settle();
    EXPECT_EQ(r.log.text(), "!c");
    EXPECT_EQ(counts(r.sup), "0 0 0 0");
    EXPECT_FALSE(r.result.ended);
  });
}

TEST(supervisor_start, children_added_at_run_time_stop_in_reverse_of_the_order_of_adding) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    co_await r.start();
    auto b = r.add("b");
    r.add("c");
    EXPECT_EQ(co_await b.call(&worker::seen), 0);
    co_await settle();
    EXPECT_EQ(counts(r.sup), "3 3 0 3");
    EXPECT_EQ(r.log.begun(), 3);
    (void)r.log.take();
    co_await r.sup.stop();
    EXPECT_EQ(r.log.take(), "-c -b -a");
  });
}
