// SPDX-License-Identifier: MIT
// supervisor: listing its children, and starting, stopping and deleting them by hand.
#include <memory>

#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

constexpr int many = test_support::sanitized ? 4'000 : 100'000;
constexpr int part = many / 10;

/// Holds an argument that is counted.
struct holder {
  explicit holder(std::shared_ptr<int> p) : value(std::move(p)) {}
  void crash() { throw boom(1); }
  int get() const { return *value; }
  std::shared_ptr<int> value;
};

/// Waits between attempts to start, so that it can be looked at.
weir::child_options retrying(std::string_view name, restart how = restart::permanent) {
  auto o = kid(name, how);
  o.backoff.base = 1h;
  o.backoff.ceiling = 1h;
  return o;
}

}  // namespace
TEST(supervisor_admin, a_restart_by_hand_that_fails_throws_and_is_neither_retried_nor_counted) {
  in_every_order(options_of(strategy::one_for_one, 0), [](rig& r) -> task<> {
    auto& plan = r.keep<start_plan>(&r.log, "f", 2, 3);
    auto f = r.sup.add<flaky>(kid("f"), &plan);
    co_await r.start();
    co_await r.sup.terminate_child("f");
    for (int n : {1002, 1003}) {
      const auto error = co_await attempt([&] { return r.sup.restart_child("f"); });
      EXPECT_EQ(boom_of(error), n);
      EXPECT_EQ(state_of(r.sup, "f"), "stopped");
    }
    co_await weir::sleep(1h);
    EXPECT_EQ(r.log.text(), "+f -f !f !f");
    co_await r.sup.restart_child("f");
    EXPECT_EQ(co_await f.call(&flaky::start), 4);
    EXPECT_FALSE(r.result.ended);
  });
}
TEST(supervisor_admin, terminate_child_ends_the_child_and_keeps_its_spec) {
  for (strategy how : static_strategies) {
    for (restart kind : {restart::permanent, restart::transient}) {
      in_every_order(patient(how), [&](rig& r) -> task<> {
        r.add("a", kind);
        co_await r.start();
        co_await r.sup.terminate_child("a");
        EXPECT_EQ(r.log.text(), "+a -a");
        EXPECT_EQ(children_of(r.sup), "a:stopped");
        EXPECT_EQ(counts(r.sup), "1 0 0 1");
        co_await r.sup.terminate_child("a");
        co_await weir::sleep(1h);
        EXPECT_EQ(r.log.text(), "+a -a");
        const auto code = co_await code_after([&] { return r.sup.terminate_child("b"); });
        EXPECT_EQ(code, errc::no_such_child);
      });
    }
  }
}
TEST(supervisor_admin, two_who_terminate_the_same_child_are_both_answered_when_it_is_gone) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    a.cast(&worker::nap, 1s);
    co_await settle();
    const auto start = weir::now();
    std::vector<long> answered;
    auto terminate = [&]() -> task<> {
      co_await r.sup.terminate_child("a");
      EXPECT_EQ(r.log.text(), "+a -a");
      answered.push_back(ms_since(start));
    };
    r.home->spawn(terminate());
    r.home->spawn(terminate());
    co_await weir::sleep(2s);
    EXPECT_EQ(answered, (std::vector<long>{999, 999}));
  });
}
TEST(supervisor_admin, restart_child_starts_what_is_stopped_and_returns_when_it_is_started) {
  in_every_order(options_of(strategy::one_for_one, 0), [](rig& r) -> task<> {
    r.add("a");
    r.sup.add_task(kid("t"), sleeper(r.log, "t"));
    co_await r.start();
    for (int i = 0; i < 5; ++i) {  // by hand is never counted
      co_await r.sup.terminate_child("a");
      co_await r.sup.restart_child("a");
      EXPECT_EQ(r.log.count("+a"), i + 2);
    }
    co_await r.sup.terminate_child("t");
    co_await r.sup.restart_child("t");
    co_await settle();
    EXPECT_EQ(r.log.count("+t"), 2);
    auto code = co_await code_after([&] { return r.sup.restart_child("a"); });
    EXPECT_EQ(code, errc::child_running);
    code = co_await code_after([&] { return r.sup.restart_child("b"); });
    EXPECT_EQ(code, errc::no_such_child);
    EXPECT_FALSE(r.result.ended);
  });
}
TEST(supervisor_admin, delete_child_forgets_what_is_stopped) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    r.add("b");
    co_await r.start();
    auto code = co_await code_after([&] { return r.sup.delete_child("a"); });
    EXPECT_EQ(code, errc::child_running);
    EXPECT_EQ(r.log.text(), "+a +b");
    co_await r.sup.terminate_child("a");
    co_await r.sup.delete_child("a");
    EXPECT_EQ(children_of(r.sup), "b:running");
    EXPECT_EQ(counts(r.sup), "1 1 0 1");
    for (auto ask : {0, 1, 2}) {
      code = co_await code_after([&] {
        if (ask == 0) return r.sup.delete_child("a");
        return ask == 1 ? r.sup.restart_child("a") : r.sup.terminate_child("a");
      });
      EXPECT_EQ(code, errc::no_such_child);
    }
  });
}
TEST(supervisor_admin, a_child_that_waits_to_be_retried_can_be_looked_at_and_terminated) {
  for (strategy how : static_strategies) {
    in_every_order(patient(how), [](rig& r) -> task<> {
      auto& plan = r.keep<start_plan>(&r.log, "f", 2, 3);
      auto f = r.sup.add<flaky>(retrying("f"), &plan);
      co_await r.start();
      f.cast(&flaky::crash);
      co_await weir::sleep(90min);  // the first retry, after one hour, has failed
      EXPECT_EQ(r.log.text(), "+f -f !f");
      const auto start = weir::now();
      EXPECT_EQ(children_of(r.sup), "f:restarting");
      EXPECT_EQ(counts(r.sup), "1 0 0 1");
      EXPECT_EQ(code_of(thrown_by([&] { r.add("f"); })), errc::invalid_argument);
      auto code = co_await code_after([&] { return r.sup.restart_child("f"); });
      EXPECT_EQ(code, errc::child_restarting);
      code = co_await code_after([&] { return r.sup.delete_child("f"); });
      EXPECT_EQ(code, errc::child_restarting);
      co_await r.sup.terminate_child("f");
      EXPECT_EQ(ms_since(start), 0);
      EXPECT_EQ(children_of(r.sup), "f:stopped");
      co_await weir::sleep(10h);
      EXPECT_EQ(plan.starts, 2);
      plan.last_bad = 0;
      co_await r.sup.restart_child("f");
      EXPECT_EQ(co_await f.call(&flaky::start), 3);
    });
  }
}
TEST(supervisor_admin, it_answers_also_while_a_child_is_restarted_without_a_pause) {
  for (strategy how : all_strategies) {
    simulate(patient(how), [](rig& r) -> task<> {
      auto& plan = r.keep<start_plan>(&r.log, "f");
      r.add("a");
      auto f = r.sup.add<flaky>(kid("f"), &plan);
      co_await r.start();
      f.cast(&flaky::crash);
      for (int i = 0; i < 100; ++i) co_await weir::yield();  // no timer fires meanwhile
      EXPECT_GT(plan.starts, 2);
      EXPECT_EQ(state_of(r.sup, "f"), "restarting");
      auto code = co_await code_after([&] { return r.sup.restart_child("f"); });
      EXPECT_EQ(code, errc::child_restarting);
      code = co_await code_after([&] { return r.sup.restart_child("nobody"); });
      EXPECT_EQ(code, errc::no_such_child);
      co_await r.sup.terminate_child("f");
      const int starts = plan.starts;
      co_await weir::sleep(1h);
      EXPECT_EQ(plan.starts, starts);
      EXPECT_FALSE(r.result.ended);
    });
  }
}
TEST(supervisor_admin, stop_ends_a_restart_loop_without_a_pause) {
  for (strategy how : all_strategies) {
    simulate(patient(how), [](rig& r) -> task<> {
      auto& plan = r.keep<start_plan>(&r.log, "f");
      auto a = r.add("a");
      auto f = r.sup.add<flaky>(kid("f"), &plan);
      co_await r.start();
      f.cast(&flaky::crash);
      for (int i = 0; i < 100; ++i) co_await weir::yield();
      co_await r.sup.stop();
      const int starts = plan.starts;
      EXPECT_TRUE(co_await a.monitor() == ending::normal);
      co_await weir::sleep(1h);
      EXPECT_EQ(plan.starts, starts);
      EXPECT_TRUE(r.result.clean);
    });
  }
}
TEST(supervisor_admin, a_temporary_child_that_ended_is_forgotten_at_once_and_its_name_is_free) {
  for (strategy how : {strategy::one_for_all, strategy::dynamic}) {
    in_every_order(patient(how), [](rig& r) -> task<> {
      co_await r.start();
      for (int way = 0; way < 8; ++way) {
        auto x = r.add("x", restart::temporary);
        if (way >= 4) co_await settle();  // otherwise it has not been started yet
        if (way % 4 == 0) x.cast(&worker::crash);
        if (way % 4 == 1) x.cast(&worker::leave);
        if (way % 4 == 2) (void)x.stop();
        if (way % 4 == 3) co_await r.sup.terminate_child("x");
        co_await x.join();
        EXPECT_EQ(counts(r.sup), "0 0 0 0");
        const auto code = co_await code_after([&] { return r.sup.restart_child("x"); });
        EXPECT_EQ(code, errc::no_such_child);
      }
      EXPECT_GE(r.log.begun(), 7);
      EXPECT_EQ(r.log.begun(), r.log.ended());
    });
  }
}
TEST(supervisor_admin, the_spec_of_other_children_is_kept) {
  for (strategy how : static_strategies) {
    in_every_order(patient(how), [](rig& r) -> task<> {
      auto p = r.add("p");
      co_await r.start();
      p.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(children_of(r.sup), "p:running");
      EXPECT_EQ(code_of(thrown_by([&] { r.add("p"); })), errc::invalid_argument);
      auto t = r.add("t", restart::transient);
      co_await t.stop();
      co_await settle();
      EXPECT_EQ(children_of(r.sup), "t:stopped p:running");
      EXPECT_EQ(code_of(thrown_by([&] { r.add("t"); })), errc::invalid_argument);
      co_await r.sup.restart_child("t");
      EXPECT_EQ(children_of(r.sup), "t:running p:running");
      EXPECT_EQ(r.log.text(), "+p -p +p +t -t +t");
    });
  }
}
TEST(supervisor_admin, the_arguments_of_temporary_children_are_not_kept) {
  for (strategy how : all_strategies) {
    simulate(patient(how), [](rig& r) -> task<> {
      auto value = std::make_shared<int>(5);
      co_await r.start();
      r.sup.add<holder>(kid("p"), value);
      co_await settle();
      EXPECT_EQ(value.use_count(), 3);  // this one, the child's, and the one for its next life
      auto x = r.sup.add<holder>(kid("x", restart::temporary), value);
      EXPECT_EQ(co_await x.call(&holder::get), 5);
      EXPECT_EQ(value.use_count(), 4);
      x.cast(&holder::crash);
      co_await x.join();
      co_await settle();
      EXPECT_EQ(value.use_count(), 3);
      co_await r.sup.terminate_child("p");
      const auto code = co_await code_after([&] { return r.sup.delete_child("p"); });
      EXPECT_TRUE(!code || code == errc::no_such_child);
      EXPECT_EQ(value.use_count(), 1);
    });
  }
}
TEST(supervisor_admin, which_children_lists_the_newest_first_and_a_stopped_child_keeps_its_place) {
  in_every_order(patient(), [](rig& r) -> task<> {
    for (const char* name : {"a", "b", "c"}) r.add(name);
    co_await r.start();
    r.add("d");
    co_await settle();
    EXPECT_EQ(children_of(r.sup), "d:running c:running b:running a:running");
    co_await r.sup.terminate_child("b");
    EXPECT_EQ(children_of(r.sup), "d:running c:running b:stopped a:running");
    co_await r.sup.restart_child("b");
    EXPECT_EQ(children_of(r.sup), "d:running c:running b:running a:running");
    co_await r.sup.stop();
    EXPECT_EQ(r.log.text(), "+a +b +c +d -b +b -d -c -b -a");
  });
}

TEST(supervisor_admin, which_children_counts_the_restarts_of_each_child) {
  simulate(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    r.add("b");
    co_await r.start();
    EXPECT_EQ(restarts_of(r.sup, "a"), 0);
    for (int i = 1; i <= 3; ++i) {
      a.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(restarts_of(r.sup, "a"), i);
    }
    EXPECT_EQ(restarts_of(r.sup, "b"), 0);
    EXPECT_EQ(static_cast<long>(a.info().restarts), 3);
  });
}
TEST(supervisor_admin, counts_of_many_dynamic_children) {
  simulate(patient(strategy::dynamic), [](rig& r) -> task<> {
    co_await r.start();
    std::vector<worker_ref> refs;
    for (int n : {1000, 2000}) {
      while (static_cast<int>(refs.size()) < n)
        refs.push_back(r.add("w" + std::to_string(refs.size()), restart::temporary));
      co_await settle();
      const std::string all = std::to_string(n);
      EXPECT_EQ(counts(r.sup), all + " " + all + " 0 " + all);
    }
    for (auto& ref : refs) ref.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(counts(r.sup), "0 0 0 0");
  });
}
TEST(supervisor_admin, dynamic_children_may_be_supervisors) {
  simulate(patient(strategy::dynamic), [](rig& r) -> task<> {
    co_await r.start();
    for (int i = 0; i < 100; ++i) {
      const std::string name = "s" + std::to_string(i);
      r.sup.add_supervisor(kid(name), weir::supervisor(patient()));
    }
    co_await settle();
    EXPECT_EQ(counts(r.sup), "100 100 100 0");
  });
}
TEST(supervisor_admin, a_terminated_supervisor_is_still_counted_as_one) {
  simulate(patient(), [](rig& r) -> task<> {
    for (const char* name : {"a", "b", "c"})
      r.sup.add_supervisor(kid(name), weir::supervisor(patient()));
    co_await r.start();
    EXPECT_EQ(counts(r.sup), "3 3 3 0");
    co_await r.sup.terminate_child("b");
    EXPECT_EQ(counts(r.sup), "3 2 3 0");
  });
}
TEST(supervisor_admin, a_hundred_thousand_dynamic_children_cost_the_same_each) {
  simulate(patient(strategy::dynamic), [](rig& r) -> task<> {
    co_await r.start();
    std::vector<std::string> names;
    for (int i = 0; i < many; ++i) names.push_back("w" + std::to_string(i));
    long first = 0, last = 0;
    for (int i = 0; i < many; ++i) {
      if (i % part == 0) test_support::begin_to_count();
      r.add(names[static_cast<std::size_t>(i)], restart::temporary);
      if (i % part == part - 1) {
        co_await settle();
        last = test_support::end_count();
        if (first == 0) first = last;
      }
    }
    EXPECT_LE(last, first + first / 10 + 100);  // lists and tables grow by doubling
    for (int i = 0; i < many / 2; ++i)
      co_await r.sup.terminate_child(names[static_cast<std::size_t>(i)]);
    EXPECT_EQ(static_cast<long>(r.sup.count_children().active), many - many / 2);
    co_await r.sup.stop();
    EXPECT_EQ(r.log.ended(), many);
  });
}
TEST(supervisor_admin, dynamic_children_have_arguments_of_their_own) {
  in_every_order(patient(strategy::dynamic), [](rig& r) -> task<> {
    co_await r.start();
    EXPECT_EQ(counts(r.sup), "0 0 0 0");
    EXPECT_TRUE(r.sup.which_children().empty());
    auto one = std::make_shared<int>(1), two = std::make_shared<int>(2);
    auto a = r.sup.add<holder>(kid("a"), one);
    auto b = r.sup.add<holder>(kid("b"), two);
    EXPECT_EQ(co_await a.call(&holder::get), 1);
    EXPECT_EQ(co_await b.call(&holder::get), 2);
    EXPECT_EQ(counts(r.sup), "2 2 0 2");
    a.cast(&holder::crash);
    co_await settle();
    EXPECT_EQ(co_await a.call(&holder::get), 1);
    EXPECT_EQ(restarts_of(r.sup, "a"), 1);
    EXPECT_EQ(restarts_of(r.sup, "b"), 0);
  });
}
TEST(supervisor_admin, dynamic_children_that_finished_or_were_terminated_are_forgotten) {
  in_every_order(patient(strategy::dynamic), [](rig& r) -> task<> {
    co_await r.start();
    for (restart kind : {restart::transient, restart::permanent}) {
      auto a = r.add("a", kind);
      co_await settle();
      if (kind == restart::transient) co_await a.stop();
      if (kind == restart::permanent) co_await r.sup.terminate_child("a");
      EXPECT_EQ(co_await a.monitor(), ending::normal);
      EXPECT_EQ(counts(r.sup), "0 0 0 0");
    }
    r.add("a");
    co_await settle();
    EXPECT_EQ(counts(r.sup), "1 1 0 1");
  });
}
TEST(supervisor_admin, dynamic_children_that_wait_to_be_retried_are_counted_but_not_active) {
  simulate(patient(strategy::dynamic), [](rig& r) -> task<> {
    auto& a = r.keep<start_plan>(&r.log, "a");
    auto& b = r.keep<start_plan>(&r.log, "b");
    auto& c = r.keep<start_plan>(&r.log, "c");
    co_await r.start();
    auto fa = r.sup.add<flaky>(retrying("a"), &a);
    auto fb = r.sup.add<flaky>(retrying("b"), &b);
    r.sup.add<flaky>(retrying("c"), &c);
    co_await settle();
    EXPECT_EQ(counts(r.sup), "3 3 0 3");
    fa.cast(&flaky::crash);
    fb.cast(&flaky::crash);
    co_await weir::sleep(90min);
    EXPECT_EQ(counts(r.sup), "3 1 0 3");
    EXPECT_EQ(state_of(r.sup, "a"), "restarting");
    co_await r.sup.terminate_child("a");
    EXPECT_EQ(counts(r.sup), "2 1 0 2");
    b.last_bad = 0;
    co_await weir::sleep(1h);
    EXPECT_EQ(counts(r.sup), "2 2 0 2");
    co_await r.sup.terminate_child("b");
    EXPECT_EQ(counts(r.sup), "1 1 0 1");
    EXPECT_EQ(a.starts, 2);
  });
}
