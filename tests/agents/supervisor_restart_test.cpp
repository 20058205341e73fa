// SPDX-License-Identifier: MIT
// supervisor: which children are restarted when one ends, by restart kind, ending and strategy.
#include <array>

#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

/// How a child ends by itself.
enum class way_to_end { crash, crash_in_call, stop, leave };
constexpr way_to_end all_ways[] = {way_to_end::crash, way_to_end::crash_in_call, way_to_end::stop,
                                   way_to_end::leave};

std::string name_of_way(way_to_end w) {
  constexpr const char* names[] = {"crash", "crash_in_call", "stop", "leave"};
  return names[static_cast<int>(w)];
}
bool abnormal(way_to_end w) { return w == way_to_end::crash || w == way_to_end::crash_in_call; }

task<> end_it(worker_ref child, way_to_end how) {
  if (how == way_to_end::crash) child.cast(&worker::crash);
  if (how == way_to_end::leave) child.cast(&worker::leave);
  if (how == way_to_end::stop) co_await child.stop();
  if (how == way_to_end::crash_in_call) {
    const auto error = co_await attempt([&] { return child.call(&worker::crash_with, 4); });
    EXPECT_EQ(boom_of(error), 4);
  }
  co_await settle();
}

bool restarted(restart kind, way_to_end how) {
  return kind == restart::permanent || (kind == restart::transient && abnormal(how));
}

/// What the journal of a, b and c says after b ended; all are of one kind.
std::string expected_log(strategy how, restart kind, way_to_end end) {
  if (!restarted(kind, end)) return "-b";
  if (how == strategy::one_for_all) return "-b -c -a +a +b +c";
  if (how == strategy::rest_for_one) return "-b -c +b +c";
  return "-b +b";
}
std::string expected_counts(strategy how, restart kind, way_to_end end) {
  if (restarted(kind, end)) return "3 3 0 3";
  const bool kept = kind != restart::temporary && how != strategy::dynamic;
  return kept ? "3 2 0 3" : "2 2 0 2";
}

weir::child_options crashing_child(std::string_view name, restart kind) {
  auto o = kid(name, kind);
  o.on_error = weir::on_error::crash;
  return o;
}

/// One cell of the table.
task<> one_ending(rig& r, strategy how, restart kind, way_to_end end) {
  std::vector<worker_ref> refs;
  for (const char* name : {"a", "b", "c"}) refs.push_back(r.add(crashing_child(name, kind), name));
  co_await r.start();
  EXPECT_EQ(r.log.take(), "+a +b +c");
  co_await end_it(refs[1], end);
  EXPECT_EQ(r.log.take(), expected_log(how, kind, end));
  EXPECT_EQ(counts(r.sup), expected_counts(how, kind, end));
  EXPECT_FALSE(r.result.ended);
  co_await r.sup.stop();
  EXPECT_EQ(r.log.take(), restarted(kind, end) ? "-c -b -a" : "-c -a");
  co_await settle();
  EXPECT_TRUE(r.result.clean);
}

/// A task that ends in the given way at its first wake-up, once; its further lives last.
auto mortal_task(journal& log, std::string name, way_to_end how, int& lives) {
  return [&log, name, how, &lives]() -> task<> {
    log.add("+" + name);
    const auto at_the_end = weir::scope_exit([&] { log.add("-" + name); });
    const bool first = ++lives == 1;
    co_await weir::sleep(first ? weir::duration(5ms) : weir::duration(10000h));
    if (abnormal(how)) throw boom(1);
  };
}

}  // namespace
TEST(supervisor_restart, restart_kind_way_to_end_and_strategy_decide_who_is_restarted) {
  for (strategy how : {strategy::one_for_one, strategy::one_for_all, strategy::rest_for_one}) {
    for (restart kind : all_kinds) {
      for (way_to_end end : all_ways) {
        SCOPED_TRACE(text_of(how) + ", " + text_of(kind) + ", " + name_of_way(end));
        simulate(options_of(how, 2, 3600s),
                 [&](rig& r) -> task<> { co_await one_ending(r, how, kind, end); });
      }
    }
  }
}
TEST(supervisor_restart, the_table_holds_in_every_order) {
  for (strategy how : static_strategies) {
    for (restart kind : all_kinds) {
      for (way_to_end end : {way_to_end::crash, way_to_end::stop}) {
        in_every_order(options_of(how, 2, 3600s),
                       [&](rig& r) -> task<> { co_await one_ending(r, how, kind, end); });
      }
    }
  }
}
TEST(supervisor_restart, in_dynamic_a_child_is_restarted_alone_or_forgotten) {
  for (restart kind : all_kinds) {
    for (way_to_end end : all_ways) {
      SCOPED_TRACE(text_of(kind) + ", " + name_of_way(end));
      simulate(options_of(strategy::dynamic, 2, 3600s), [&](rig& r) -> task<> {
        auto a = r.add(crashing_child("a", kind), "a");
        auto b = r.add(crashing_child("b", kind), "b");
        co_await r.start();
        co_await end_it(b, end);
        EXPECT_EQ(r.log.text(), restarted(kind, end) ? "+a +b -b +b" : "+a +b -b");
        EXPECT_EQ(co_await a.call(&worker::seen), 0);
        EXPECT_EQ(static_cast<long>(r.sup.count_children().active), restarted(kind, end) ? 2 : 1);
      });
    }
  }
}
TEST(supervisor_restart, tasks_follow_the_same_rules) {
  for (strategy how : static_strategies) {
    for (restart kind : all_kinds) {
      for (way_to_end end : {way_to_end::crash, way_to_end::leave}) {
        SCOPED_TRACE(text_of(how) + ", " + text_of(kind) + ", " + name_of_way(end));
        simulate(options_of(how, 2, 3600s), [&](rig& r) -> task<> {
          int lives = 0;
          r.sup.add_task(kid("a", kind), sleeper(r.log, "a"));
          r.sup.add_task(kid("b", kind), mortal_task(r.log, "b", end, lives));
          r.sup.add_task(kid("c", kind), sleeper(r.log, "c"));
          co_await r.start();
          EXPECT_EQ(r.log.lives('+'), 3);
          co_await weir::sleep(1s);
          EXPECT_EQ(lives, restarted(kind, end) ? 2 : 1);
          const bool group = restarted(kind, end) && kind != restart::temporary;
          EXPECT_EQ(r.log.count("+a"), group && how == strategy::one_for_all ? 2 : 1);
          EXPECT_EQ(r.log.count("+c"), group && how != strategy::one_for_one ? 2 : 1);
          EXPECT_EQ(counts(r.sup), expected_counts(how, kind, end));
        });
      }
    }
  }
}

// Who ends is decided by whose error it is, not by its class
TEST(supervisor_restart, an_error_that_looks_like_an_ending_is_a_crash) {
  simulate(patient(), [](rig& r) -> task<> {
    std::array<int, 3> lives{};
    weir::queue<int> closed(1);
    closed.close();
    auto gone = weir::spawn_agent<worker>(*r.home, {.name = "gone"}, &r.log, std::string("gone"));
    co_await gone.stop();
    r.sup.add_task(kid("queue", restart::transient), [&]() -> task<> {
      if (++lives[0] < 3) co_await closed.push(1);
    });
    r.sup.add_task(kid("agent", restart::transient), [&]() -> task<> {
      if (++lives[1] < 3) (void)co_await gone.call(&worker::seen);
    });
    r.sup.add_task(kid("cancelled", restart::transient), [&]() -> task<> {
      if (++lives[2] < 3) throw weir::cancelled_error(weir::cancel_reason());
      co_return;
    });
    co_await r.start();
    EXPECT_EQ(lives, (std::array<int, 3>{3, 3, 3}));
    EXPECT_EQ(counts(r.sup), "3 0 0 3");
  });
}
TEST(supervisor_restart, also_a_normal_end_of_a_permanent_child_is_counted) {
  for (strategy how : all_strategies) {
    in_every_order(options_of(how, 2, 3600s), [](rig& r) -> task<> {
      auto a = r.add("a");
      co_await r.start();
      for (int i = 0; i < 2; ++i) {
        co_await a.stop();
        co_await settle();
      }
      EXPECT_FALSE(r.result.ended);
      co_await a.stop();
      co_await settle();
      EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
      EXPECT_EQ(r.log.text(), "+a -a +a -a +a -a");
    });
  }
}
TEST(supervisor_restart, an_end_without_a_restart_is_not_counted) {
  simulate(options_of(strategy::one_for_one, 0), [](rig& r) -> task<> {
    auto t = r.add("t", restart::transient);
    co_await r.start();
    for (int i = 0; i < 5; ++i) {
      auto x = r.add("x", restart::temporary);
      x.cast(&worker::crash);
      co_await x.join();
      co_await t.stop();
      co_await settle();
      co_await r.sup.restart_child("t");
    }
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(counts(r.sup), "1 1 0 1");
  });
}
TEST(supervisor_restart, children_outside_the_group_keep_their_state) {
  for (strategy how : static_strategies) {
    in_every_order(patient(how), [&](rig& r) -> task<> {
      std::vector<worker_ref> refs;
      for (const char* name : {"a", "b", "c"}) refs.push_back(r.add(name));
      co_await r.start();
      for (auto& ref : refs) ref.cast(&worker::note, 1);
      co_await settle();
      std::vector<std::uint64_t> before;
      for (auto& ref : refs) before.push_back(ref.info().generation);
      refs[1].cast(&worker::crash);
      co_await settle();
      const bool first = how == strategy::one_for_all, last = how != strategy::one_for_one;
      const bool in_group[] = {first, true, last};
      for (std::size_t i = 0; i < 3; ++i) {
        const int seen = co_await refs[i].call(&worker::seen);
        EXPECT_EQ(seen, in_group[i] ? 0 : 1);
        EXPECT_EQ(refs[i].info().generation, before[i] + (in_group[i] ? 1u : 0u));
      }
    });
  }
}
TEST(supervisor_restart, a_group_is_stopped_in_reverse_order_and_started_in_order) {
  in_every_order(patient(strategy::rest_for_one), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    for (const char* name : {"1", "2", "3", "4", "5"}) refs.push_back(r.add(name));
    co_await r.start();
    EXPECT_EQ(r.log.take(), "+1 +2 +3 +4 +5");
    refs[2].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "-3 -5 -4 +3 +4 +5");
    co_await r.sup.stop();
    EXPECT_EQ(r.log.take(), "-5 -4 -3 -2 -1");
  });
}
TEST(supervisor_restart, each_of_a_group_is_gone_before_the_next_is_told_and_the_first_is_started) {
  for_each_order([](weir::sim::world& w) {
    auto body = [](rig& r) -> task<> {
      r.sup.add_task(kid("a"), slow_sleeper(r.log, "a", 1s));
      r.sup.add_task(kid("b"), slow_sleeper(r.log, "b", 2s));
      auto c = r.add("c");
      co_await r.start();
      EXPECT_EQ(r.log.lives('+'), 3);
      (void)r.log.take();
      c.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(r.log.take(), "-c");
      co_await weir::sleep(2s);
      EXPECT_EQ(r.log.take(), "-b");
      co_await weir::sleep(900ms);
      EXPECT_EQ(r.log.text(), "");
      co_await weir::sleep(200ms);
      const std::string after = r.log.take();
      EXPECT_TRUE(after.starts_with("-a +")) << after;
      EXPECT_EQ(counts(r.sup), "3 3 0 3");
    };
    w.run([&]() -> task<> { co_await with_rig(patient(strategy::one_for_all), body); });
  });
}
TEST(supervisor_restart, temporary_children_of_a_group_are_not_restarted_and_forgotten) {
  for (strategy how : {strategy::one_for_all, strategy::rest_for_one}) {
    in_every_order(patient(how), [](rig& r) -> task<> {
      auto a = r.add("a");
      auto x = r.add("x", restart::temporary);
      auto y = r.add("y", restart::temporary);
      r.add("b");
      co_await r.start();
      y.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(r.log.take(), "+a +x +y +b -y");
      a.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(r.log.text(), "-a -b -x +a +b");
      EXPECT_EQ(children_of(r.sup), "b:running a:running");
      EXPECT_EQ(co_await x.monitor(), ending::normal);
      EXPECT_EQ(co_await y.monitor(), ending::crashed);
    });
  }
}
TEST(supervisor_restart, a_group_restart_revives_what_had_finished_or_was_stopped_by_hand) {
  for (strategy how : {strategy::one_for_all, strategy::rest_for_one}) {
    in_every_order(patient(how), [](rig& r) -> task<> {
      auto a = r.add("a");
      auto t = r.add("t", restart::transient);
      r.add("p");
      co_await r.start();
      co_await t.stop();
      co_await r.sup.terminate_child("p");
      co_await settle();
      EXPECT_EQ(counts(r.sup), "3 1 0 3");
      (void)r.log.take();
      a.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(r.log.text(), "-a +a +t +p");
      EXPECT_EQ(counts(r.sup), "3 3 0 3");
      EXPECT_EQ(co_await t.call(&worker::seen), 0);
    });
  }
}
TEST(supervisor_restart, rest_for_one_does_not_revive_what_stands_before) {
  simulate(patient(strategy::rest_for_one), [](rig& r) -> task<> {
    r.add("p");
    auto a = r.add("a");
    co_await r.start();
    co_await r.sup.terminate_child("p");
    a.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(children_of(r.sup), "a:running p:stopped");
  });
}
TEST(supervisor_restart, one_for_all_tries_the_whole_group_again_when_a_sibling_cannot_start) {
  in_every_order(options_of(strategy::one_for_all, 3, 3600s), [](rig& r) -> task<> {
    auto& plan = r.keep<start_plan>(&r.log, "f", 2, 3);
    auto a = r.add("a");
    r.sup.add<flaky>(kid("f"), &plan);
    r.add("z");
    co_await r.start();
    (void)r.log.take();
    a.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "-a -z -f +a !f -a +a !f -a +a +f +z");
    EXPECT_FALSE(r.result.ended);
    a.cast(&worker::crash_with, 9);  // three tries were counted
    co_await settle();
    EXPECT_EQ(booms_in(r.result.error), (std::vector<int>{1, 1002, 1003, 9}));
  });
}
TEST(supervisor_restart, rest_for_one_goes_on_at_the_sibling_that_could_not_start) {
  in_every_order(options_of(strategy::rest_for_one, 3, 3600s), [](rig& r) -> task<> {
    auto& plan = r.keep<start_plan>(&r.log, "f", 2, 3);
    auto a = r.add("a");
    r.sup.add<flaky>(kid("f"), &plan);
    r.add("z");
    co_await r.start();
    (void)r.log.take();
    a.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "-a -z -f +a !f !f +f +z");
    EXPECT_FALSE(r.result.ended);
    a.cast(&worker::crash_with, 9);
    co_await settle();
    EXPECT_EQ(booms_in(r.result.error), (std::vector<int>{1, 1002, 1003, 9}));
  });
}
TEST(supervisor_restart, the_rest_waits_while_one_is_retried) {
  in_every_order(patient(strategy::rest_for_one), [](rig& r) -> task<> {
    auto& plan = r.keep<start_plan>(&r.log, "2", 2, 2);
    r.add("1");
    auto o = kid("2");
    o.backoff.base = o.backoff.ceiling = 1h;
    auto two = r.sup.add<flaky>(o, &plan);
    r.add("3");
    co_await r.start();
    two.cast(&flaky::crash);
    co_await weir::sleep(90min);
    EXPECT_EQ(r.log.take(), "+1 +2 +3 -2 -3 !2");
    EXPECT_EQ(children_of(r.sup), "3:stopped 2:restarting 1:running");
    EXPECT_EQ(counts(r.sup), "3 1 0 3");
    co_await weir::sleep(10h);
    EXPECT_EQ(r.log.take(), "+2 +3");
    EXPECT_EQ(counts(r.sup), "3 3 0 3");
  });
}
TEST(supervisor_restart, one_crash_starts_each_child_of_the_group_exactly_once_more) {
  for (strategy how : {strategy::one_for_all, strategy::rest_for_one}) {
    in_every_order(patient(how), [](rig& r) -> task<> {
      auto a = r.add("a");
      r.add("b");
      r.sup.add_task(kid("t"), sleeper(r.log, "t"));
      co_await r.start();
      a.cast(&worker::crash);
      co_await weir::sleep(1h);
      for (const char* entry : {"+a", "+b", "+t"}) EXPECT_EQ(r.log.count(entry), 2) << entry;
    });
  }
}
TEST(supervisor_restart, children_that_look_the_same_are_told_apart) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto first = r.sup.add<worker>({}, &r.log, std::string("x"));
    auto second = r.sup.add<worker>({}, &r.log, std::string("x"));
    co_await r.start();
    first.cast(&worker::note, 1);
    second.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(co_await first.call(&worker::seen), 1);
    EXPECT_EQ(co_await second.call(&worker::seen), 0);
    EXPECT_EQ(static_cast<long>(first.info().restarts), 0);
    EXPECT_EQ(static_cast<long>(second.info().restarts), 1);
  });
}
TEST(supervisor_restart, crashes_of_several_children_at_once_are_all_mended) {
  for (strategy how : all_strategies) {
    in_every_order(patient(how), [&](rig& r) -> task<> {
      std::vector<worker_ref> refs;
      for (const char* name : {"a", "b", "c"}) refs.push_back(r.add(name));
      co_await r.start();
      for (auto& ref : refs) ref.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(counts(r.sup), "3 3 0 3");
      const bool group = how == strategy::one_for_all || how == strategy::rest_for_one;
      for (const char* entry : {"+a", "+b", "+c"}) {
        EXPECT_GE(r.log.count(entry), 2);
        EXPECT_LE(r.log.count(entry), group ? 4 : 2);
      }
    });
  }
}
