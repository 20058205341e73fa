// SPDX-License-Identifier: MIT
// supervisor: significant children, whose end ends it.
#include "supervisor_support.hpp"

using namespace supervisor_test;
using weir::auto_shutdown;

namespace {

constexpr auto_shutdown both_modes[] = {auto_shutdown::any_significant,
                                        auto_shutdown::all_significant};

weir::supervisor_options with_mode(auto_shutdown mode, strategy how = strategy::one_for_one) {
  auto o = patient(how);
  o.auto_shutdown = mode;
  return o;
}
weir::child_options significant(std::string_view name, restart how) {
  auto o = kid(name, how);
  o.significant = true;
  return o;
}

/// The child ends: by an error, as by stop(), or because the supervisor is asked to terminate it.
task<> end_in_way(rig& r, worker_ref child, std::string name, int way) {
  if (way == 0) child.cast(&worker::crash);
  if (way == 1) co_await child.stop();
  if (way == 2) child.cast(&worker::leave);
  if (way == 3) co_await r.sup.terminate_child(name);
  co_await settle();
}

}  // namespace
TEST(supervisor_significant, other_children_never_end_it) {
  for (auto mode :
       {auto_shutdown::never, auto_shutdown::any_significant, auto_shutdown::all_significant}) {
    for (restart kind : {restart::transient, restart::temporary}) {
      for (int way = 0; way < 4; ++way) {
        simulate(with_mode(mode), [&](rig& r) -> task<> {
          auto a = r.add("a", kind);
          r.add("b");
          co_await r.start();
          co_await end_in_way(r, a, "a", way);
          EXPECT_FALSE(r.result.ended);
          EXPECT_EQ(r.log.count("-b"), 0);
        });
      }
    }
  }
}
TEST(supervisor_significant, any_end_of_a_temporary_one_ends_it_except_by_hand) {
  for (strategy how : static_strategies) {
    for (int way = 0; way < 4; ++way) {
      in_every_order(with_mode(auto_shutdown::any_significant, how), [&](rig& r) -> task<> {
        r.add("a");
        auto x = r.add(significant("x", restart::temporary), "x");
        r.add("b");
        co_await r.start();
        co_await end_in_way(r, x, "x", way);
        EXPECT_EQ(r.result.ended, way != 3);
        EXPECT_EQ(r.result.clean, way != 3);
        EXPECT_EQ(r.log.text(), way != 3 ? "+a +x +b -x -b -a" : "+a +x +b -x");
      });
    }
  }
}
TEST(supervisor_significant, only_a_clean_end_of_a_transient_one_ends_it) {
  for (int way = 0; way < 4; ++way) {
    in_every_order(with_mode(auto_shutdown::any_significant), [&](rig& r) -> task<> {
      r.add("a");
      auto t = r.add(significant("t", restart::transient), "t");
      co_await r.start();
      co_await end_in_way(r, t, "t", way);
      const std::string expected[] = {"+a +t -t +t", "+a +t -t -a", "+a +t -t -a", "+a +t -t"};
      EXPECT_EQ(r.log.text(), expected[way]);
      const bool clean = way == 1 || way == 2;
      EXPECT_EQ(r.result.ended, clean);
      EXPECT_EQ(r.result.clean, clean);
    });
  }
}
TEST(supervisor_significant, a_task_that_returns_ends_it) {
  in_every_order(with_mode(auto_shutdown::any_significant), [](rig& r) -> task<> {
    auto a = r.add("a");
    r.sup.add_task(significant("main", restart::transient),
                   []() -> task<> { co_await weir::sleep(10ms); });
    co_await r.start();
    EXPECT_FALSE(r.result.ended);
    co_await weir::sleep(20ms);
    EXPECT_TRUE(r.result.clean);
    EXPECT_EQ(r.log.text(), "+a -a");
    EXPECT_EQ(co_await a.monitor(), ending::normal);
  });
}
TEST(supervisor_significant, with_all_significant_the_last_one_ends_it) {
  for (restart kind : {restart::transient, restart::temporary}) {
    for (int order = 0; order < 2; ++order) {
      in_every_order(with_mode(auto_shutdown::all_significant), [&](rig& r) -> task<> {
        auto x = r.add(significant("x", kind), "x");
        auto y = r.add(significant("y", restart::temporary), "y");
        r.add("b");
        co_await r.start();
        co_await end_in_way(r, order == 0 ? x : y, "", 1);
        EXPECT_FALSE(r.result.ended);
        EXPECT_EQ(r.log.count("-b"), 0);
        co_await end_in_way(r, order == 0 ? y : x, "", 1);
        EXPECT_TRUE(r.result.clean);
        EXPECT_EQ(r.log.count("-b"), 1);
      });
    }
  }
}
TEST(supervisor_significant, one_that_was_terminated_by_hand_is_not_waited_for) {
  simulate(with_mode(auto_shutdown::all_significant), [](rig& r) -> task<> {
    r.add(significant("t", restart::transient), "t");
    auto u = r.add(significant("u", restart::transient), "u");
    co_await r.start();
    co_await r.sup.terminate_child("t");
    co_await settle();
    EXPECT_FALSE(r.result.ended);
    co_await u.stop();
    co_await settle();
    EXPECT_TRUE(r.result.clean);
  });
}
TEST(supervisor_significant, being_stopped_in_a_group_restart_does_not_end_it) {
  for (strategy how : static_strategies) {
    for (auto mode : both_modes) {
      in_every_order(with_mode(mode, how), [](rig& r) -> task<> {
        auto p = r.add("p");
        auto t = r.add(significant("t", restart::transient), "t");
        r.add(significant("x", restart::temporary), "x");
        co_await r.start();
        p.cast(&worker::crash);
        co_await settle();
        EXPECT_FALSE(r.result.ended);
        EXPECT_EQ(r.log.count("+p"), 2);
        EXPECT_EQ(co_await t.call(&worker::seen), 0);
      });
    }
  }
}
TEST(supervisor_significant, after_a_group_restart_it_still_counts) {
  for (strategy how : {strategy::one_for_all, strategy::rest_for_one}) {
    in_every_order(with_mode(auto_shutdown::any_significant, how), [](rig& r) -> task<> {
      auto p = r.add("p");
      auto t = r.add(significant("t", restart::transient), "t");
      co_await r.start();
      p.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(r.log.text(), "+p +t -p -t +p +t");
      co_await t.stop();
      co_await settle();
      EXPECT_TRUE(r.result.clean);
    });
  }
}
TEST(supervisor_significant,
     a_nested_supervisor_that_shut_itself_down_ends_its_parent_if_it_counts) {
  for (bool counts_there : {true, false}) {
    in_every_order(with_mode(auto_shutdown::any_significant), [&](rig& r) -> task<> {
      weir::supervisor inner(with_mode(auto_shutdown::any_significant));
      auto x = inner.add<worker>(significant("x", restart::temporary), &r.log, std::string("x"));
      inner.add<worker>(kid("y"), &r.log, std::string("y"));
      auto o = kid("inner", restart::transient);
      o.significant = counts_there;
      r.add("a");
      r.sup.add_supervisor(o, std::move(inner));
      co_await r.start();
      x.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(r.result.clean, counts_there);
      EXPECT_EQ(r.log.text(), counts_there ? "+a +x +y -x -y -a" : "+a +x +y -x -y");
      EXPECT_EQ(state_of(r.sup, "inner"), "stopped");
    });
  }
}
TEST(supervisor_significant, a_transient_supervisor_that_gave_up_has_ended_cleanly_for_its_parent) {
  in_every_order(with_mode(auto_shutdown::any_significant), [](rig& r) -> task<> {
    weir::supervisor inner(options_of(strategy::one_for_one, 0));
    auto x = inner.add<worker>(kid("x"), &r.log, std::string("x"));
    r.add("a");
    r.sup.add_supervisor(significant("inner", restart::transient), std::move(inner));
    co_await r.start();
    x.cast(&worker::crash);
    co_await settle();
    EXPECT_TRUE(r.result.clean);
    EXPECT_EQ(r.log.text(), "+a +x -x -a");
  });
}
TEST(supervisor_significant, one_that_was_added_at_run_time_counts_as_well) {
  in_every_order(with_mode(auto_shutdown::any_significant), [](rig& r) -> task<> {
    r.add("a");
    co_await r.start();
    auto x = r.add(significant("x", restart::temporary), "x");
    co_await settle();
    co_await x.stop();
    co_await settle();
    EXPECT_TRUE(r.result.clean);
    EXPECT_EQ(r.log.text(), "+a +x -x -a");
  });
}
TEST(supervisor_significant, several_that_end_at_once_end_it_once) {
  for (auto mode : both_modes) {
    in_every_order(with_mode(mode), [](rig& r) -> task<> {
      std::vector<worker_ref> refs;
      for (const char* name : {"x", "y", "z"})
        refs.push_back(r.add(significant(name, restart::temporary), name));
      r.add("a");
      co_await r.start();
      for (auto& ref : refs) ref.cast(&worker::crash);
      co_await settle();
      EXPECT_TRUE(r.result.clean);
      EXPECT_EQ(r.log.begun(), 4);
      EXPECT_EQ(r.log.ended(), 4);
    });
  }
}
