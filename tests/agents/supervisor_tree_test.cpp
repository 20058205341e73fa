// SPDX-License-Identifier: MIT
// supervisor: trees of supervisors, and references to those inside.
#include "supervisor_support.hpp"
#include "support/small_stack.hpp"

using namespace supervisor_test;

namespace {

/// A supervisor with some workers that write into the journal.
weir::supervisor team(journal& log, const weir::supervisor_options& options,
                      std::vector<std::string> names, std::vector<worker_ref>* refs = nullptr) {
  weir::supervisor sup(options);
  for (const std::string& name : names) {
    auto ref = sup.add<worker>(kid(name), &log, name);
    if (refs != nullptr) refs->push_back(ref);
  }
  return sup;
}

/// So many supervisors inside each other, and a worker in the innermost.
weir::supervisor tower(journal& log, int levels, std::vector<worker_ref>& refs) {
  if (levels == 0) return team(log, patient(), {"leaf"}, &refs);
  weir::supervisor sup(patient());
  sup.add_supervisor({.name = "level"}, tower(log, levels - 1, refs));
  return sup;
}

}  // namespace
TEST(supervisor_tree, a_crash_inside_touches_nobody_outside) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    r.add("a");
    const auto inner = patient(strategy::one_for_all);
    auto in = r.sup.add_supervisor({.name = "inner"}, team(r.log, inner, {"b", "c"}, &refs));
    r.add("d");
    co_await r.start();
    refs[0].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a +b +c +d -b -c +b +c");
    EXPECT_EQ(counts(r.sup), "3 3 1 2");
    EXPECT_EQ(counts(in), "2 2 0 2");
    EXPECT_EQ(restarts_of(r.sup, "inner"), 0);
  });
}
TEST(supervisor_tree, a_supervisor_that_gave_up_is_restarted_with_its_group) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    std::vector<worker_ref> one, two;
    const auto strict = options_of(strategy::one_for_one, 1);
    r.sup.add_supervisor({.name = "one"}, team(r.log, strict, {"a"}, &one));
    auto in = r.sup.add_supervisor({.name = "two"}, team(r.log, strict, {"b", "c"}, &two));
    co_await r.start();
    auto guest = in.add<worker>(kid("guest"), &r.log, std::string("guest"));
    co_await settle();
    EXPECT_EQ(counts(in), "3 3 0 3");
    two[0].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "+a +b +c +guest -b +b");
    two[0].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "-b -guest -c -a +a +b +c");
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(counts(in), "2 2 0 2");  // Who was added at run time is gone
    EXPECT_EQ(co_await guest.monitor(), ending::escalated);
    EXPECT_EQ(co_await two[0].call(&worker::seen), 0);
    EXPECT_EQ(co_await one[0].call(&worker::seen), 0);
  });
}

TEST(supervisor_tree, a_restarted_supervisor_begins_with_an_empty_window) {
  in_every_order(patient(), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    r.sup.add_supervisor({.name = "inner"},
                         team(r.log, options_of(strategy::one_for_one, 1, 3600s), {"a"}, &refs));
    co_await r.start();
    for (int i = 0; i < 6; ++i) {  // every second crash is too many
      refs[0].cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(restarts_of(r.sup, "inner"), (i + 1) / 2);
    }
    EXPECT_EQ(r.log.count("+a"), 7);
    EXPECT_FALSE(r.result.ended);
  });
}
TEST(supervisor_tree, giving_up_goes_up_the_tree_until_somebody_may_restart) {
  in_every_order(options_of(strategy::one_for_one, 1), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    const auto strict = options_of(strategy::one_for_one, 0);
    weir::supervisor inner(strict);
    inner.add_supervisor({.name = "innermost"}, team(r.log, strict, {"a"}, &refs));
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    r.add("b");
    co_await r.start();
    refs[0].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "+a +b -a +a");
    EXPECT_FALSE(r.result.ended);
    refs[0].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "-a -b");
    EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
    EXPECT_EQ(co_await refs[0].monitor(), ending::escalated);
  });
}

TEST(supervisor_tree, references_to_those_inside_stay_valid_when_their_supervisor_is_restarted) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    auto a = r.add("a");
    auto in = r.sup.add_supervisor({.name = "inner"}, team(r.log, patient(), {"b"}, &refs));
    bool heard = false;
    auto watch = [&]() -> task<> {
      (void)co_await refs[0].monitor();
      heard = true;
    };
    co_await r.start();
    r.home->spawn(watch());
    for (int i = 0; i < 3; ++i) {
      a.cast(&worker::crash);
      co_await settle();
      EXPECT_EQ(co_await refs[0].call(&worker::seen), 0);
      refs[0].cast(&worker::note, 1);
      EXPECT_EQ(counts(in), "1 1 0 1");
    }
    EXPECT_FALSE(heard);
    co_await r.sup.stop();
    co_await settle();
    EXPECT_TRUE(heard);
  });
}

TEST(supervisor_tree, a_reference_to_a_supervisor_administers_its_children) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto in = r.sup.add_supervisor({.name = "inner"}, team(r.log, patient(), {"a", "b"}));
    co_await r.start();
    EXPECT_EQ(children_of(in), "b:running a:running");
    co_await in.terminate_child("a");
    EXPECT_EQ(counts(in), "2 1 0 2");
    auto code = co_await code_after([&] { return in.delete_child("b"); });
    EXPECT_EQ(code, errc::child_running);
    co_await in.restart_child("a");
    co_await in.terminate_child("b");
    co_await in.delete_child("b");
    EXPECT_EQ(children_of(in), "a:running");
    in.add_task(kid("t"), sleeper(r.log, "t"));
    auto deep = in.add_supervisor({.name = "deep"}, team(r.log, patient(), {"c"}));
    co_await settle();
    EXPECT_EQ(counts(in), "3 3 1 2");
    EXPECT_EQ(counts(deep), "1 1 0 1");
    code = co_await code_after([&] { return in.restart_child("nobody"); });
    EXPECT_EQ(code, errc::no_such_child);
  });
}

TEST(supervisor_tree, stop_of_a_nested_supervisor_is_an_end_by_the_rules_of_its_parent) {
  for (restart kind : all_kinds) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      auto in = r.sup.add_supervisor(kid("inner", kind), team(r.log, patient(), {"a", "b"}));
      co_await r.start();
      co_await in.stop();
      co_await settle();
      const bool again = kind == restart::permanent;
      EXPECT_EQ(r.log.text(), again ? "+a +b -b -a +a +b" : "+a +b -b -a");
      EXPECT_EQ(r.sup.which_children().size(), kind == restart::temporary ? 0u : 1u);
      EXPECT_FALSE(r.result.ended);
    });
  }
}

TEST(supervisor_tree, a_nested_supervisor_is_terminated_and_restarted_by_hand) {
  in_every_order(options_of(strategy::one_for_one, 0), [](rig& r) -> task<> {
    auto in = r.sup.add_supervisor({.name = "inner"}, team(r.log, patient(), {"a", "b"}));
    co_await r.start();
    in.add<worker>(kid("guest"), &r.log, std::string("guest"));
    co_await settle();
    co_await r.sup.terminate_child("inner");
    EXPECT_EQ(r.log.take(), "+a +b +guest -guest -b -a");
    EXPECT_EQ(counts(r.sup), "1 0 1 0");
    auto code = co_await code_after([&] { return in.terminate_child("a"); });
    EXPECT_EQ(code, errc::not_running);
    co_await in.stop();  // nothing to stop
    co_await r.sup.restart_child("inner");
    EXPECT_EQ(r.log.take(), "+a +b");
    EXPECT_EQ(counts(in), "2 2 0 2");
  });
}

// At run time
TEST(supervisor_tree, a_nested_supervisor_that_cannot_start_again_is_a_failed_start) {
  in_every_order(options_of(strategy::one_for_one, 3), [](rig& r) -> task<> {
    auto& plan = r.keep<start_plan>(&r.log, "f", 3, 4);  // a restart inside, then one of everything
    weir::supervisor inner(options_of(strategy::one_for_one, 1));
    auto a = inner.add<worker>(kid("a"), &r.log, std::string("a"));
    auto f = inner.add<flaky>(kid("f"), &plan);
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    co_await r.start();
    f.cast(&flaky::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "+a +f -f +f");
    f.cast(&flaky::crash);
    co_await settle();
    // It gave up; of its new starts two failed and the next succeeded.
    EXPECT_EQ(r.log.take(), "-f -a +a !f -a +a !f -a +a +f");
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(co_await a.call(&worker::seen), 0);
  });
}

TEST(supervisor_tree, a_nested_supervisor_may_be_added_at_run_time) {
  in_every_order(patient(), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    r.add("a");
    co_await r.start();
    auto in = r.sup.add_supervisor({.name = "inner"}, team(r.log, patient(), {"b"}, &refs));
    EXPECT_EQ(co_await refs[0].call(&worker::seen), 0);
    EXPECT_EQ(counts(in), "1 1 0 1");
    refs[0].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a +b -b +b");
  });
}

TEST(supervisor_tree, references_outlive_the_tree) {
  std::optional<weir::supervisor_ref> in;
  std::optional<worker_ref> ref;
  in_every_order(patient(), [&](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    in.emplace(r.sup.add_supervisor({.name = "inner"}, team(r.log, patient(), {"b"}, &refs)));
    ref.emplace(refs[0]);
    co_await r.start();
    co_await r.sup.stop();
    co_await settle();
    const auto code = co_await code_after([&] { return in->restart_child("b"); });
    EXPECT_EQ(code, errc::not_running);
    co_await in->stop();
    EXPECT_EQ(ref->cast(&worker::note, 1), sent::stopped);
  });
}

TEST(supervisor_tree, ten_thousand_levels_that_never_ran_are_destroyed_on_a_small_stack) {
  on_a_small_stack([] {
    weir::supervisor in;
    for (int i = 0; i < 10'000; ++i) {
      weir::supervisor out;
      out.add_supervisor({}, std::move(in));
      in = std::move(out);
    }
    EXPECT_EQ(in.count_children().supervisors, 1U);
  });
}

TEST(supervisor_tree, a_tree_of_a_hundred_levels_starts_and_stops) {
  simulate(patient(), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    r.sup.add_supervisor({.name = "level"}, tower(r.log, 100, refs));
    co_await r.start();
    EXPECT_EQ(co_await refs[0].call(&worker::seen), 0);
    refs[0].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.text(), "+leaf -leaf +leaf");
  });
}
