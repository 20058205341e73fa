// SPDX-License-Identifier: MIT
// supervisor: what lasts from one life of a child to the next and what does not: references,
// monitors, timers, messages, and everything that the old life had started.
#include <map>

#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

/// Starts work of its own, whose cleanup takes a second; no two lives may overlap.
class parent_of_slow_child {
 public:
  parent_of_slow_child(weir::scope& s, journal* log, int* alive) : log_(log), alive_(alive) {
    EXPECT_EQ(*alive_, 0) << "an older life has not ended";
    log_->add("+p");
    ++*alive_;
    s.spawn([this]() -> task<> { co_await grandchild(); });
  }
  parent_of_slow_child(const parent_of_slow_child&) = delete;
  parent_of_slow_child& operator=(const parent_of_slow_child&) = delete;
  ~parent_of_slow_child() {
    log_->add("-p");
    --*alive_;
  }
  void crash() { throw boom(1); }

 private:
  task<> grandchild() {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      ++*alive_;
      s.defer([this]() -> task<> {
        co_await weir::sleep(1s);
        log_->add("grandchild gone");
        --*alive_;
      });
      co_await weir::sleep(10000h);
    });
  }
  journal* log_;
  int* alive_;
};

weir::child_options slow_to_return(std::string_view name, weir::duration pause = 100ms) {
  auto o = kid(name);
  o.backoff.base = pause;
  return o;
}

/// How calls were answered: "value" or the text of the error's code.
class collected_answers {
 public:
  task<> ask(worker_ref whom) {
    std::string how = "value";
    const auto error = co_await attempt([&] { return whom.call(&worker::seen); });
    if (error) how = code_of(error) ? code_of(error).message() : what_of(error);
    ++all[how];
    ++count;
  }
  static std::string text(errc code) { return make_error_code(code).message(); }
  std::map<std::string, int> all;
  int count = 0;
};
using tally = std::map<std::string, int>;

}  // namespace
TEST(supervisor_incarnation, what_a_life_had_started_is_gone_before_the_next_is_constructed) {
  in_every_order(patient(), [](rig& r) -> task<> {
    int alive = 0;
    auto p = r.sup.add<parent_of_slow_child>(kid("p"), &r.log, &alive);
    co_await r.start();
    EXPECT_EQ(alive, 2);
    p.cast(&parent_of_slow_child::crash);
    co_await weir::sleep(500ms);
    EXPECT_EQ(r.log.count("+p"), 1);
    co_await weir::sleep(600ms);
    EXPECT_EQ(r.log.count("grandchild gone"), 1);
    EXPECT_EQ(r.log.count("-p"), 1);
    EXPECT_EQ(r.log.count("+p"), 2);
    EXPECT_EQ(alive, 2);
    co_await r.sup.stop();
    EXPECT_EQ(alive, 0);
  });
}
TEST(supervisor_incarnation, references_from_before_a_restart_work_for_everything) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto copy = a;
    co_await r.start();
    a.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(copy.cast(&worker::note, 1), sent::enqueued);
    co_await copy.send(&worker::note, 2);
    EXPECT_EQ(co_await copy.call(&worker::seen), 2);
    EXPECT_EQ(std::string(copy.info().name), "a");
    co_await copy.stop();
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a -a +a a1 a2 -a +a");
    EXPECT_EQ(co_await copy.call(&worker::seen), 0);
  });
}

TEST(supervisor_incarnation, stop_ends_with_that_life_and_a_permanent_child_is_restarted) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    a.cast(&worker::note, 1);
    auto stopped = a.stop();  // handles what is queued
    EXPECT_EQ(a.cast(&worker::note, 2), sent::enqueued);
    co_await stopped;
    EXPECT_EQ(r.log.count("-a"), 1);
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a a1 -a +a a2");
  });
}

TEST(supervisor_incarnation, a_child_that_is_asked_to_stop_before_it_was_started_ends_after_it) {
  for (restart kind : all_kinds) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      co_await r.start();
      auto a = r.add("a", kind);
      a.cast(&worker::note, 1);
      auto stopped = a.stop();
      const sent late = a.cast(&worker::note, 2);
      co_await stopped;
      EXPECT_TRUE(r.log.text().starts_with("+a a1 -a")) << r.log.text();
      co_await settle();
      const bool again = kind == restart::permanent;
      EXPECT_EQ(late, again ? sent::enqueued : sent::stopped);
      EXPECT_EQ(r.log.text(), again ? "+a a1 -a +a a2" : "+a a1 -a");
    });
  }
}
TEST(supervisor_incarnation, a_stop_that_waits_for_a_life_is_answered_if_there_is_none) {
  for (bool stop_all : {true, false}) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      co_await r.start();
      auto a = r.add("a");
      auto stopped = a.stop();
      if (stop_all) co_await r.sup.stop();
      if (!stop_all) co_await r.sup.terminate_child("a");
      co_await stopped;
      EXPECT_EQ(r.log.begun(), r.log.ended());
    });
  }
}
TEST(supervisor_incarnation, monitors_and_joins_wait_through_restarts_and_hear_of_the_end_once) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    int joined = 0;
    std::vector<ending> heard;
    auto join = [&]() -> task<> {
      co_await a.join();
      ++joined;
    };
    auto watch = [&]() -> task<> {
      auto how = co_await a.monitor();
      heard.push_back(how);
    };
    r.home->spawn(join());
    r.home->spawn(watch());
    co_await r.start();
    r.home->spawn(watch());
    for (int i = 0; i < 3; ++i) {
      a.cast(&worker::crash);
      co_await settle();
    }
    co_await r.sup.terminate_child("a");
    co_await settle();
    co_await r.sup.restart_child("a");
    co_await settle();
    EXPECT_EQ(joined, 0);
    EXPECT_TRUE(heard.empty());
    co_await r.sup.stop();
    co_await settle();
    EXPECT_EQ(joined, 1);
    EXPECT_EQ(heard, (std::vector<ending>{ending::normal, ending::normal}));
    EXPECT_EQ(co_await a.monitor(), ending::normal);  // also afterwards
    co_await a.join();
  });
}

TEST(supervisor_incarnation, monitors_hear_when_the_spec_of_a_stopped_child_is_deleted) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto t = r.add("t", restart::transient);
    co_await r.start();
    int heard = 0;
    auto watch = [&](worker_ref ref) -> task<> {
      auto how = co_await ref.monitor();
      EXPECT_EQ(how, ending::normal);
      ++heard;
    };
    r.home->spawn(watch(a));
    r.home->spawn(watch(t));
    co_await r.sup.terminate_child("a");
    co_await t.stop();
    co_await settle();
    EXPECT_EQ(heard, 0);
    co_await r.sup.delete_child("a");
    co_await settle();
    EXPECT_EQ(heard, 1);
    co_await r.sup.delete_child("t");
    co_await settle();
    EXPECT_EQ(heard, 2);
    auto again = r.add("a");  // another child, which the old reference does not name
    EXPECT_EQ(co_await again.call(&worker::seen), 0);
    EXPECT_EQ(a.cast(&worker::note, 1), sent::stopped);
  });
}

TEST(supervisor_incarnation, endings_tell_how_a_child_ended_for_good) {
  in_every_order(options_of(strategy::one_for_one, 1), [](rig& r) -> task<> {
    auto crashed = r.add("x", restart::temporary);
    auto stopped = r.add("y", restart::temporary);
    auto limited = kid("z", restart::temporary);
    limited.shutdown = 1s;
    auto cut_off = r.add(limited, "z");
    auto bystander = r.add("a");
    auto culprit = r.add("b");
    co_await r.start();
    crashed.cast(&worker::crash);
    EXPECT_EQ(co_await crashed.monitor(), ending::crashed);
    co_await stopped.stop();
    EXPECT_EQ(co_await stopped.monitor(), ending::normal);
    cut_off.cast(&worker::nap, 1h);
    co_await settle();
    co_await r.sup.terminate_child("z");
    EXPECT_EQ(co_await cut_off.monitor(), ending::cancelled);
    culprit.cast(&worker::crash);
    co_await settle();
    culprit.cast(&worker::crash);
    EXPECT_EQ(co_await culprit.monitor(), ending::escalated);
    EXPECT_EQ(co_await bystander.monitor(), ending::escalated);
  });
}

TEST(supervisor_incarnation, calls_to_an_ended_child_say_whether_it_crashed) {
  in_every_order(options_of(strategy::one_for_one, 0), [](rig& r) -> task<> {
    auto x = r.add("x", restart::temporary);
    auto y = r.add("y", restart::temporary);
    auto b = r.add("b");
    co_await r.start();
    x.cast(&worker::crash);
    co_await x.join();
    co_await y.stop();
    co_await y.join();
    auto code = co_await code_after([&] { return x.call(&worker::seen); });
    EXPECT_EQ(code, errc::agent_crashed);
    code = co_await code_after([&] { return x.send(&worker::note, 1); });
    EXPECT_EQ(code, errc::agent_crashed);
    code = co_await code_after([&] { return y.call(&worker::seen); });
    EXPECT_EQ(code, errc::agent_stopped);
    EXPECT_EQ(x.cast(&worker::note, 1), sent::stopped);
    co_await r.sup.stop();
    code = co_await code_after([&] { return b.call(&worker::seen); });
    EXPECT_EQ(code, errc::agent_stopped);
    EXPECT_EQ(b.info().state, weir::agent_state::ended);
  });
}
TEST(supervisor_incarnation, a_child_without_a_life_answers_as_ended_until_it_is_revived) {
  for (bool by_hand : {true, false}) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      auto t = r.add("t", restart::transient);
      co_await r.start();
      if (by_hand) co_await r.sup.terminate_child("t");
      if (!by_hand) co_await t.stop();
      co_await settle();
      EXPECT_EQ(t.cast(&worker::note, 1), sent::stopped);
      auto code = co_await code_after([&] { return t.call(&worker::seen); });
      EXPECT_EQ(code, errc::agent_stopped);
      code = co_await code_after([&] { return t.send(&worker::note, 1); });
      EXPECT_EQ(code, errc::agent_stopped);
      co_await t.stop();  // nothing to end
      co_await r.sup.restart_child("t");
      EXPECT_EQ(t.cast(&worker::note, 2), sent::enqueued);
      EXPECT_EQ(co_await t.call(&worker::seen), 1);
      EXPECT_EQ(r.log.text(), "+t -t +t t2");
    });
  }
}
TEST(supervisor_incarnation, casts_queued_at_a_crash_are_dropped_and_counted_or_kept_in_order) {
  for (auto policy : {weir::mailbox::drop, weir::mailbox::keep}) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      auto o = kid("a");
      o.on_restart = policy;
      auto a = r.add(o, "a");
      co_await r.start();
      a.cast(&worker::nap, 10ms);
      a.cast(&worker::note, 1);
      a.cast(&worker::crash);
      for (int i = 2; i <= 4; ++i) a.cast(&worker::note, i);
      co_await weir::sleep(1s);
      const bool keep = policy == weir::mailbox::keep;
      EXPECT_EQ(r.log.text(), keep ? "+a a1 -a +a a2 a3 a4" : "+a a1 -a +a");
      EXPECT_EQ(static_cast<long>(a.info().dropped), keep ? 0 : 3);
      a.cast(&worker::note, 5);
      co_await settle();
      EXPECT_EQ(r.log.count("a5"), 1);
    });
  }
}
TEST(supervisor_incarnation, the_mailbox_of_a_bystander_of_a_group_restart_follows_its_policy) {
  for (auto policy : {weir::mailbox::drop, weir::mailbox::keep}) {
    in_every_order(patient(strategy::one_for_all), [&](rig& r) -> task<> {
      auto a = r.add("a");
      auto o = kid("b");
      o.on_restart = policy;
      auto b = r.add(o, "b");
      co_await r.start();
      b.cast(&worker::nap, 10ms);
      b.cast(&worker::note, 1);
      co_await settle();
      a.cast(&worker::crash);
      co_await weir::sleep(1s);
      const bool keep = policy == weir::mailbox::keep;
      EXPECT_EQ(r.log.text(), keep ? "+a +b -a -b +a +b b1" : "+a +b -a -b +a +b");
    });
  }
}
TEST(supervisor_incarnation, the_message_that_crashed_it_is_not_kept) {
  in_every_order(options_of(strategy::one_for_one, 1), [](rig& r) -> task<> {
    auto o = kid("a");
    o.on_restart = weir::mailbox::keep;
    auto a = r.add(o, "a");
    co_await r.start();
    a.cast(&worker::crash);
    a.cast(&worker::note, 1);
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a -a +a a1");
    EXPECT_FALSE(r.result.ended);
  });
}
TEST(supervisor_incarnation, calls_queued_at_a_crash_fail_with_agent_restarted) {
  for (auto policy : {weir::mailbox::drop, weir::mailbox::keep}) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      auto o = kid("a");
      o.on_restart = policy;
      auto a = r.add(o, "a");
      collected_answers got;
      co_await r.start();
      a.cast(&worker::nap, 10ms);
      a.cast(&worker::crash);
      for (int i = 0; i < 10; ++i) r.home->spawn(got.ask(a));
      co_await weir::sleep(1s);
      EXPECT_EQ(got.all, (tally{{collected_answers::text(errc::agent_restarted), 10}}));
      EXPECT_EQ(co_await a.call(&worker::seen), 0);
    });
  }
}
TEST(supervisor_incarnation, calls_queued_at_other_ends_are_answered_once) {
  for (restart kind : {restart::temporary, restart::transient}) {
    for (bool crash : {true, false}) {
      in_every_order(patient(), [&](rig& r) -> task<> {
        auto a = r.add("a", kind);
        collected_answers got;
        co_await r.start();
        a.cast(&worker::nap, 10ms);
        if (crash) a.cast(&worker::crash);
        for (int i = 0; i < 5; ++i) r.home->spawn(got.ask(a));
        co_await settle();
        if (!crash) co_await r.sup.terminate_child("a");
        co_await weir::sleep(1s);
        errc code = errc::agent_stopped;
        if (crash) code = kind == restart::temporary ? errc::agent_crashed : errc::agent_restarted;
        EXPECT_EQ(got.all, (tally{{collected_answers::text(code), 5}}));
        EXPECT_EQ(got.count, 5);
      });
    }
  }
}
TEST(supervisor_incarnation, the_call_that_crashed_it_gets_its_own_error) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto o = kid("a");
    o.on_error = weir::on_error::crash;
    auto a = r.add(o, "a");
    co_await r.start();
    const auto error = co_await attempt([&] { return a.call(&worker::crash_with, 8); });
    EXPECT_EQ(boom_of(error), 8);
    co_await settle();
    EXPECT_EQ(r.log.text(), "+a -a +a");
  });
}
TEST(supervisor_incarnation, messages_sent_between_two_lives_wait_for_the_next_one) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add(slow_to_return("a"), "a");
    co_await r.start();
    a.cast(&worker::crash);
    co_await weir::sleep(50ms);
    EXPECT_EQ(a.info().state, weir::agent_state::restarting);
    EXPECT_EQ(a.cast(&worker::note, 1), sent::enqueued);
    co_await a.send(&worker::note, 2);
    const auto start = weir::now();
    EXPECT_EQ(co_await a.call(&worker::seen), 2);
    EXPECT_EQ(ms_since(start), 50);
    EXPECT_EQ(r.log.text(), "+a -a +a a1 a2");
  });
}
TEST(supervisor_incarnation, calls_that_wait_for_the_next_life_are_answered_if_there_is_none) {
  for (bool stop : {true, false}) {
    in_every_order(patient(), [&](rig& r) -> task<> {
      auto a = r.add(slow_to_return("a", 1h), "a");
      collected_answers got;
      co_await r.start();
      a.cast(&worker::crash);
      co_await settle();
      r.home->spawn(got.ask(a));
      co_await settle();
      EXPECT_EQ(got.count, 0);
      if (stop) co_await r.sup.stop();
      if (!stop) co_await r.sup.terminate_child("a");
      co_await settle();
      EXPECT_EQ(got.count, 1);
      EXPECT_EQ(got.all.count("value"), 0u);
    });
  }
}
TEST(supervisor_incarnation, timers_of_an_old_life_do_not_reach_the_next) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    (void)a.cast_after(100ms, &worker::note, 1);
    (void)a.cast_every(60ms, &worker::note, 2);
    co_await weir::sleep(70ms);
    EXPECT_EQ(r.log.count("a2"), 1);
    a.cast(&worker::crash);
    co_await weir::sleep(1s);
    EXPECT_EQ(r.log.text(), "+a a2 -a +a");
    (void)a.cast_after(100ms, &worker::note, 3);
    co_await weir::sleep(200ms);
    EXPECT_EQ(r.log.count("a3"), 1);
  });
}
TEST(supervisor_incarnation, a_registered_name_lasts_through_restarts_and_is_free_at_the_end) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("supervisor_incarnation.a");
    co_await r.start();
    weir::registry::add(a);
    a.cast(&worker::crash);
    co_await settle();
    auto found = weir::registry::find<worker>("supervisor_incarnation.a");
    EXPECT_TRUE(found.has_value());
    if (!found) co_return;
    EXPECT_EQ(co_await found->call(&worker::seen), 0);
    co_await r.sup.stop();
    co_await a.join();
    EXPECT_FALSE(weir::registry::find<worker>("supervisor_incarnation.a").has_value());
  });
}
