// SPDX-License-Identifier: MIT
// supervisor: how its children are stopped: order, limits, zombies, and ends meanwhile.
#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

weir::child_options limited(std::string_view name, weir::duration limit,
                            restart how = restart::permanent) {
  auto o = kid(name, how);
  o.shutdown = limit;
  return o;
}
weir::child_options unlimited(std::string_view name) {
  auto o = kid(name);
  o.shutdown = weir::no_limit;
  return o;
}
weir::child_options at_once(std::string_view name) {
  auto o = kid(name);
  o.shutdown = weir::no_wait;
  return o;
}

/// Writes down why its handler was cancelled.
class witness {
 public:
  explicit witness(journal* log) : log_(log) {}
  task<> wait() {
    const auto at_the_end = weir::scope_exit([&] { log_->add("handler: " + reason()); });
    co_await weir::sleep(10000h);
  }

 private:
  static std::string reason() {
    const weir::cancel_reason* why = weir::unwinding();
    if (why == nullptr) return "not cancelled";
    return std::string(weir::to_string(why->chain().front().kind));
  }
  journal* log_;
};

/// A task that writes down why it was cancelled.
auto cancelled_task(journal& log) {
  return [&log]() -> task<> {
    const auto at_the_end = weir::scope_exit([&] {
      const weir::cancel_reason* why = weir::unwinding();
      if (why != nullptr) log.add("task: " + std::string(to_string(why->chain().front().kind)));
    });
    co_await weir::sleep(10000h);
  };
}

task<long> time_to_stop(rig& r) {
  const auto start = weir::now();
  co_await r.sup.stop();
  co_return ms_since(start);
}

}  // namespace
TEST(supervisor_shutdown, without_a_limit_a_child_is_waited_for_as_long_as_it_takes) {
  simulate(patient(), [](rig& r) -> task<> {
    auto a = r.add(unlimited("a"), "a");
    co_await r.start();
    a.cast(&worker::nap, 1h);
    co_await settle();
    auto stopping = r.home->spawn(time_to_stop(r));
    co_await weir::sleep(50min);
    EXPECT_EQ(state_of(r.sup, "a"), "running");
    EXPECT_EQ(co_await stopping, 3'599'999);
    EXPECT_EQ(co_await a.monitor(), ending::normal);
  });
}
TEST(supervisor_shutdown, at_its_limit_a_child_is_cancelled_and_a_polite_one_ends_before) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add(limited("a", 1s), "a");
    auto b = r.add(limited("b", 1s), "b");
    co_await r.start();
    a.cast(&worker::nap, 300ms);
    b.cast(&worker::nap, 1h);
    b.cast(&worker::note, 1);  // what is queued is dropped
    co_await settle();
    EXPECT_EQ(co_await time_to_stop(r), 1000);
    EXPECT_EQ(co_await a.monitor(), ending::normal);
    EXPECT_EQ(co_await b.monitor(), ending::cancelled);
    EXPECT_EQ(r.log.text(), "+a +b -b -a");
  });
}
TEST(supervisor_shutdown, the_current_handler_is_finished_and_the_queue_is_dropped_and_counted) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    a.cast(&worker::nap, 2s);
    co_await settle();
    a.cast(&worker::note, 1);
    a.cast(&worker::note, 2);
    auto asked = r.home->spawn([&]() -> task<std::error_code> {
      auto code = co_await code_after([&] { return a.call(&worker::seen); });
      co_return code;
    });
    co_await settle();
    EXPECT_EQ(co_await time_to_stop(r), 1998);
    EXPECT_EQ(co_await asked, errc::agent_stopped);
    EXPECT_EQ(r.log.text(), "+a -a");
    EXPECT_GE(static_cast<long>(a.info().dropped), 2);
  });
}
TEST(supervisor_shutdown, who_ignores_also_the_cancellation_is_a_zombie_until_it_is_gone) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    auto b = r.add(limited("b", 1s), "b");
    co_await r.start();
    b.cast(&worker::stubborn, 10s);
    co_await settle();
    auto stopping = r.home->spawn(time_to_stop(r));
    co_await weir::sleep(900ms);
    EXPECT_EQ(r.log.text(), "+a +b");
    EXPECT_EQ(state_of(r.sup, "b"), "running");
    co_await weir::sleep(200ms);
    EXPECT_EQ(r.log.text(), "+a +b -a");  // the next one is told after the limit
    EXPECT_EQ(state_of(r.sup, "b"), "zombie");
    co_await weir::sleep(8s);
    EXPECT_FALSE(r.result.ended);
    EXPECT_EQ(co_await stopping, 9999);
    EXPECT_EQ(r.log.text(), "+a +b -a -b");
    EXPECT_EQ(co_await b.monitor(), ending::cancelled);
  });
}
TEST(supervisor_shutdown, the_replacement_of_a_zombie_waits_until_it_is_gone) {
  in_every_order(patient(strategy::one_for_all), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto b = r.add(limited("b", 1s), "b");
    r.add("c");
    co_await r.start();
    b.cast(&worker::stubborn, 10s);
    co_await settle();
    (void)r.log.take();
    a.cast(&worker::crash);
    co_await weir::sleep(2s);
    EXPECT_EQ(state_of(r.sup, "b"), "zombie");
    EXPECT_EQ(r.log.count("+b"), 0);
    co_await weir::sleep(20s);
    EXPECT_EQ(r.log.text(), "-a -c +a -b +b +c");  // who stands before it need not wait
    EXPECT_EQ(counts(r.sup), "3 3 0 3");
    EXPECT_EQ(co_await b.call(&worker::seen), 0);
  });
}
TEST(supervisor_shutdown, a_zombie_that_was_terminated_is_restarted_by_hand_when_it_is_gone) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto b = r.add(limited("b", 1s), "b");
    co_await r.start();
    b.cast(&worker::stubborn, 10s);
    co_await settle();
    auto ended = r.home->spawn([&]() -> task<> { co_await r.sup.terminate_child("b"); });
    co_await weir::sleep(2s);
    EXPECT_EQ(state_of(r.sup, "b"), "zombie");
    EXPECT_EQ(r.log.text(), "+b");
    co_await weir::sleep(9s);
    EXPECT_TRUE(ended.done());
    EXPECT_EQ(children_of(r.sup), "b:stopped");
    co_await r.sup.restart_child("b");
    EXPECT_EQ(r.log.text(), "+b -b +b");
  });
}
TEST(supervisor_shutdown, with_no_wait_a_child_is_cancelled_at_once_and_its_siblings_are_asked) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    auto b = r.add(at_once("b"), "b");
    co_await r.start();
    a.cast(&worker::nap, 200ms);
    b.cast(&worker::nap, 1h);
    co_await settle();
    EXPECT_EQ(co_await time_to_stop(r), 199);
    EXPECT_EQ(co_await a.monitor(), ending::normal);
    EXPECT_EQ(co_await b.monitor(), ending::cancelled);
  });
}

TEST(supervisor_shutdown, who_is_cancelled_can_read_why) {
  simulate(patient(strategy::one_for_all), [](rig& r) -> task<> {
    auto a = r.add("a");
    r.sup.add_task(kid("t"), cancelled_task(r.log));
    auto w = r.sup.add<witness>(at_once("w"), &r.log);
    co_await r.start();
    w.cast(&witness::wait);
    co_await settle();
    a.cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "+a -a handler: restart task: restart +a");
    w.cast(&witness::wait);
    co_await settle();
    co_await r.sup.stop();
    EXPECT_EQ(r.log.take(), "handler: shutdown task: shutdown -a");
  });
}

TEST(supervisor_shutdown, tasks_are_cancelled_at_once_whatever_their_limit) {
  simulate(patient(), [](rig& r) -> task<> {
    r.sup.add_task(unlimited("t"), cancelled_task(r.log));
    r.sup.add_task(limited("u", 10s), slow_sleeper(r.log, "u", 3s));
    co_await r.start();
    EXPECT_EQ(co_await time_to_stop(r), 3000);
    EXPECT_EQ(r.log.text(), "+u -u task: shutdown");
  });
}
TEST(supervisor_shutdown, a_task_whose_cleanup_takes_longer_than_its_limit_is_a_zombie) {
  in_every_order(patient(), [](rig& r) -> task<> {
    r.add("a");
    r.sup.add_task(limited("t", 1s), slow_sleeper(r.log, "t", 4s));
    co_await r.start();
    auto stopping = r.home->spawn(time_to_stop(r));
    co_await weir::sleep(2s);
    EXPECT_EQ(state_of(r.sup, "t"), "zombie");
    EXPECT_EQ(r.log.count("-a"), 1);
    EXPECT_EQ(co_await stopping, 4000);
    EXPECT_EQ(r.log.count("-t"), 1);
  });
}
TEST(supervisor_shutdown, who_ends_by_itself_meanwhile_is_not_restarted_and_stop_goes_on) {
  for (strategy how : all_strategies) {
    for (restart kind : all_kinds) {
      in_every_order(options_of(how, 0), [&](rig& r) -> task<> {
        std::vector<worker_ref> refs;
        for (const char* name : {"a", "b", "c"}) refs.push_back(r.add(kid(name, kind), name));
        auto last = r.add(kid("d", kind), "d");
        co_await r.start();
        last.cast(&worker::nap, 2s);  // under static strategies it is the first to be stopped
        refs[0].cast(&worker::crash_after, 1s);
        refs[1].cast(&worker::nap, 1s);
        co_await settle();
        auto stopping = r.home->spawn(time_to_stop(r));
        co_await weir::sleep(500ms);
        refs[2].cast(&worker::leave);
        co_await stopping;
        co_await settle();
        EXPECT_TRUE(r.result.clean);
        EXPECT_EQ(r.log.begun(), 4);
        EXPECT_EQ(r.log.ended(), 4);
        EXPECT_EQ(co_await refs[0].monitor(), ending::crashed);
        EXPECT_EQ(co_await refs[1].monitor(), ending::normal);
        EXPECT_EQ(co_await refs[2].monitor(), ending::normal);
      });
    }
  }
}
TEST(supervisor_shutdown, a_cleanup_that_fails_does_not_make_stop_fail) {
  simulate(patient(), [](rig& r) -> task<> {
    for (const char* name : {"a", "b"}) {
      r.sup.add_task(kid(name), []() -> task<> {
        co_await weir::with_scope([](weir::scope& s) -> task<> {
          s.defer([]() -> task<> {
            throw boom(1);
            co_return;
          });
          co_await weir::sleep(10000h);
        });
      });
    }
    co_await r.start();
    co_await r.sup.stop();
    co_await settle();
    EXPECT_TRUE(r.result.clean);
  });
}
TEST(supervisor_shutdown, every_child_ends_by_its_own_policy) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto brutal = r.add(at_once("a"), "a");
    auto polite = r.add(limited("b", 1s), "b");
    auto sleeping = r.add(limited("c", 1s), "c");
    co_await r.start();
    brutal.cast(&worker::nap, 1h);
    sleeping.cast(&worker::nap, 1h);
    co_await settle();
    EXPECT_EQ(co_await time_to_stop(r), 1000);
    co_await settle();
    EXPECT_TRUE(r.result.clean);
    EXPECT_EQ(co_await brutal.monitor(), ending::cancelled);
    EXPECT_EQ(co_await polite.monitor(), ending::normal);
    EXPECT_EQ(co_await sleeping.monitor(), ending::cancelled);
    EXPECT_EQ(r.log.text(), "+a +b +c -c -b -a");
  });
}
TEST(supervisor_shutdown, who_stops_it_may_give_up_and_it_ends_all_the_same) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto a = r.add("a");
    co_await r.start();
    a.cast(&worker::nap, 1s);
    co_await settle();
    const auto error = co_await attempt([&] { return weir::with_timeout(100ms, r.sup.stop()); });
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_FALSE(r.result.ended);
    co_await weir::sleep(1s);
    EXPECT_TRUE(r.result.clean);
    EXPECT_EQ(r.log.text(), "+a -a");
  });
}
TEST(supervisor_shutdown, static_strategies_take_the_sum_and_dynamic_takes_the_longest) {
  for (strategy how : all_strategies) {
    simulate(patient(how), [&](rig& r) -> task<> {
      std::vector<worker_ref> refs;
      for (const char* name : {"a", "b", "c"}) refs.push_back(r.add(limited(name, 2s), name));
      co_await r.start();
      refs[0].cast(&worker::nap, 1h);
      refs[1].cast(&worker::nap, 1h);
      refs[2].cast(&worker::nap, 1h);
      co_await settle();
      EXPECT_EQ(co_await time_to_stop(r), how == strategy::dynamic ? 2000 : 6000);
    });
  }
}
TEST(supervisor_shutdown, in_dynamic_all_are_told_at_once_and_only_the_slow_one_is_cut_off) {
  in_every_order(patient(strategy::dynamic), [](rig& r) -> task<> {
    std::vector<worker_ref> refs;
    for (const char* name : {"a", "b", "c"}) refs.push_back(r.add(limited(name, 2s), name));
    co_await r.start();
    refs[0].cast(&worker::nap, 1s);
    refs[1].cast(&worker::nap, 1s);
    refs[2].cast(&worker::nap, 5s);
    co_await settle();
    EXPECT_EQ(co_await time_to_stop(r), 2000);
    EXPECT_EQ(co_await refs[0].monitor(), ending::normal);
    EXPECT_EQ(co_await refs[1].monitor(), ending::normal);
    EXPECT_EQ(co_await refs[2].monitor(), ending::cancelled);
  });
}
TEST(supervisor_shutdown, a_full_mailbox_of_one_holds_up_neither_restart_nor_stop) {
  for (auto how : {weir::overflow::wait, weir::overflow::reject, weir::overflow::drop_oldest}) {
    in_every_order(patient(strategy::one_for_all), [&](rig& r) -> task<> {
      auto o = kid("a");
      o.capacity = 1;
      o.overflow = how;
      auto a = r.add(o, "a");
      o.name = "b";
      auto b = r.add(o, "b");
      co_await r.start();
      b.cast(&worker::nap, 100ms);
      co_await settle();
      b.cast(&worker::note, 1);
      a.cast(&worker::crash);
      co_await weir::sleep(1s);
      EXPECT_EQ(r.log.text(), "+a +b -a -b +a +b");
      b.cast(&worker::nap, 100ms);
      co_await settle();
      b.cast(&worker::note, 1);
      EXPECT_EQ(co_await time_to_stop(r), 99);
    });
  }
}
TEST(supervisor_shutdown, a_child_may_ask_its_supervisor_while_that_is_stopping) {
  in_every_order(patient(), [](rig& r) -> task<> {
    std::vector<std::error_code> answers;
    r.add("a");
    r.sup.add_task(kid("t"), [&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.defer([&]() -> task<> {
          EXPECT_EQ(r.sup.which_children().size(), 2u);
          auto code = co_await code_after([&] { return r.sup.restart_child("a"); });
          answers.push_back(code);
          code = co_await code_after([&] { return r.sup.restart_child("nobody"); });
          answers.push_back(code);
        });
        co_await weir::sleep(10000h);
      });
    });
    co_await r.start();
    EXPECT_EQ(co_await time_to_stop(r), 0);
    EXPECT_EQ(answers.size(), 2u);
    for (const auto& code : answers) EXPECT_TRUE(code);
    EXPECT_EQ(r.log.text(), "+a -a");
  });
}
TEST(supervisor_shutdown, a_suspended_handler_is_cancelled_where_it_waits) {
  in_every_order(patient(), [](rig& r) -> task<> {
    auto w = r.sup.add<witness>(limited("w", 1s), &r.log);
    co_await r.start();
    w.cast(&witness::wait);
    co_await settle();
    EXPECT_EQ(co_await time_to_stop(r), 1000);
    EXPECT_EQ(r.log.text(), "handler: shutdown");
  });
}
TEST(supervisor_shutdown, a_task_that_waits_for_a_quiet_stream_is_interrupted) {
  simulate(patient(), [](rig& r) -> task<> {
    weir::queue<int> quiet(1);
    r.sup.add_task(kid("pump"), [&]() -> task<> {
      while (auto item = co_await quiet.next()) (void)item;
    });
    co_await r.start();
    EXPECT_EQ(co_await time_to_stop(r), 0);
  });
}
