// SPDX-License-Identifier: MIT
// How agents end: stop, the end of their scope with and without enough grace, cancellation; and how
// that is observed: join, monitor, info.
#include "agent_support.hpp"

using namespace weir_test;

// ------------------------------------------------------------------ stop

FIBER_TEST_IN_EVERY_ORDER(agent_end, stop_handles_what_is_queued_and_refuses_what_comes_later) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {.name = "a"}, &log, "a");
    a.cast(&scribe::note_after, 5ms, 1);
    a.cast(&scribe::note, 2);
    auto queued = s.spawn(a.call(&scribe::note, 3));
    co_await settled();
    auto end = a.stop();
    EXPECT_EQ(a.cast(&scribe::note, 4), sent::stopped);
    EXPECT_EQ(co_await code_of_call(a, &scribe::note, 5), errc::agent_stopped);
    EXPECT_EQ(co_await code_of_send(a, &scribe::note, 6), errc::agent_stopped);
    EXPECT_EQ(a.info().state, agent_state::stopping);
    EXPECT_EQ(a.info().dropped, 1U);
    EXPECT_FALSE(end.done());
    co_await end;
    co_await queued;
    EXPECT_EQ(joined(log), "+a,<1,>1,a2,a3,-a");
    EXPECT_EQ(a.cast(&scribe::note, 7), sent::stopped);
    EXPECT_EQ(a.info().dropped, 2U);
    EXPECT_EQ(a.info().handled, 3U);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(agent_end, stop_asks_at_once_whatever_becomes_of_its_future) {
  auto c = weir::spawn_agent<counter>(s, {});
  c.stop();
  EXPECT_EQ(c.cast(&counter::inc, 1), sent::stopped);
  co_await c.join();
  EXPECT_EQ(c.info().state, agent_state::ended);
}

FIBER_TEST_IN_EVERY_ORDER(agent_end,
                          stop_before_the_constructor_ran_still_lets_what_was_queued_be_handled) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {}, &log, "a");
    a.cast(&scribe::note, 1);
    co_await a.stop();
    EXPECT_EQ(joined(log), "+a,a1,-a");
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_end,
                          stop_may_be_asked_often_and_by_many_and_each_of_them_hears_of_it) {
  int heard = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {});
    c.cast(&counter::nap, 5ms);
    auto asks = [&]() -> task<> {
      co_await c.stop();
      ++heard;
    };
    for (int i = 0; i < 3; ++i) s.spawn(asks);
    auto end = c.stop();
    co_await end;
    co_await end;
    co_await c.stop();
    EXPECT_TRUE(c.stop().done());
    co_await s.join();
  });
  EXPECT_EQ(heard, 3);
}

FIBER_TEST_IN_EVERY_ORDER(agent_end,
                          the_future_of_stop_does_not_fail_when_the_agent_crashes_meanwhile) {
  bool ended = false;
  auto body = [&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {});
    c.cast(&counter::fail_after, 3ms, 1);
    co_await settled();
    auto end = c.stop();
    co_await weir::shield([&]() -> task<> { co_await end; });
    ended = true;
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
  EXPECT_TRUE(ended);
}

FIBER_TEST_IN_EVERY_ORDER(agent_end, stop_in_an_own_handler_lets_it_and_what_is_queued_finish) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {}, &log, "a");
    a.cast(&scribe::leave);
    a.cast(&scribe::note, 1);
    EXPECT_EQ(co_await a.monitor(), ending::normal);
    EXPECT_EQ(joined(log), "+a,a1,-a");
  });
}

TEST(agent_end, awaiting_the_own_stop_in_a_handler_is_a_call_cycle) {
  struct narcissus {
    task<> wait_for_myself() { co_await weir::self<narcissus>().stop(); }
  };
  in_every_order([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto n = weir::spawn_agent<narcissus>(s, {.name = "narcissus"});
      const auto error = co_await error_of(n.call(&narcissus::wait_for_myself));
      EXPECT_EQ(code_of(error), errc::call_cycle) << what_of(error);
      co_await n.join();  // it has been asked all the same
    });
  });
}
FIBER_TEST_IN_EVERY_ORDER(agent_end,
                          stop_of_an_agent_whose_handler_is_parked_waits_for_the_handler) {
  struct waiter {
    task<int> wait_for(weir::event* e) {
      co_await e->wait();
      co_return 7;
    }
  };
  weir::event e;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<waiter>(s, {});
    auto call = s.spawn(a.call(&waiter::wait_for, &e));
    co_await settled();
    auto end = a.stop();
    co_await weir::sleep(10s);
    EXPECT_FALSE(end.done());
    e.set();
    co_await end;
    const int answer = co_await call;
    EXPECT_EQ(answer, 7);
  });
}

// ------------------------------------------------------------------ the end of the scope

FIBER_TEST_IN_EVERY_ORDER(agent_end, with_its_scope_an_agent_handles_what_is_queued) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {}, &log, "a");
    a.cast(&scribe::note_after, 5ms, 1);
    a.cast(&scribe::note, 2);
    EXPECT_EQ(s.size(), 0U);
    co_await s.join();  // an agent is no ordinary child
    EXPECT_EQ(counted(log, "-a"), 0);
  });
  EXPECT_EQ(joined(log), "+a,<1,>1,a2,-a");
}

FIBER_TEST_IN_EVERY_ORDER(agent_end, agents_and_defers_end_in_reverse_order_each_before_the_next) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {}, &log, "a");
    co_await settled();
    s.defer([&log, a]() -> task<> {
      auto ref = a;
      co_await ref.call(&scribe::note, 1);  // it lives on: it was there before
      log.push_back("deferred");
    });
    auto b = weir::spawn_agent<scribe>(s, {}, &log, "b");
    b.cast(&scribe::note_after, 5ms, 2);
    co_await settled();
  });
  EXPECT_EQ(joined(log), "+a,+b,<2,>2,-b,a1,deferred,-a");
}

FIBER_TEST_IN_EVERY_ORDER(agent_end, cancellation_of_the_scope_lets_what_is_queued_be_handled) {
  text_log log;
  std::optional<agent_ref<scribe>> a;
  auto body = [&](weir::scope& s) -> task<> {
    a = weir::spawn_agent<scribe>(s, {}, &log, "a");
    a->cast(&scribe::note_after, 5ms, 1);
    a->cast(&scribe::note, 2);
    co_await settled();
    const end_note ended(log, "body");
    s.cancel("enough");
    co_await weir::sleep(1h);
  };
  EXPECT_EQ(code_of(co_await error_of_scope(body)), errc::cancelled);
  EXPECT_EQ(joined(log), "+a,<1,body,>1,a2,-a");
  EXPECT_EQ(co_await a->monitor(), ending::normal);
}

FIBER_TEST_IN_EVERY_ORDER(agent_end,
                          a_handler_that_outlives_the_grace_is_cancelled_and_the_queue_is_dropped) {
  text_log log;
  std::optional<agent_ref<scribe>> a;
  const auto start = weir::now();
  co_await weir::with_scope(grace_of(100ms), [&](weir::scope& s) -> task<> {
    a = weir::spawn_agent<scribe>(s, {.name = "a"}, &log, "a");
    a->cast(&scribe::note_after, 1h, 1);
    a->cast(&scribe::note, 2);
    a->cast(&scribe::note, 3);
    co_await settled();
  });
  EXPECT_EQ(ms_since(start), 101);
  EXPECT_EQ(joined(log), "+a,<1,!1,-a");
  EXPECT_EQ(co_await a->monitor(), ending::cancelled);
  EXPECT_EQ(a->info().dropped, 2U);
  EXPECT_EQ(co_await code_of_call(*a, &scribe::note, 4), errc::agent_stopped);
}

TEST(agent_end, the_reason_of_a_handler_that_outlives_the_grace_is_the_end_of_the_scope) {
  struct witness {
    task<> wait(std::vector<cancel_kind>* kinds) {
      const auto guard = weir::scope_exit([kinds] {
        const weir::cancel_reason* why = weir::unwinding();
        if (why != nullptr) kinds->push_back(why->chain().front().kind);
      });
      co_await weir::sleep(1h);
    }
  };
  in_every_order([]() -> task<> {
    std::vector<cancel_kind> kinds;
    co_await weir::with_scope(grace_of(10ms), [&](weir::scope& s) -> task<> {
      auto w = weir::spawn_agent<witness>(s, {});
      w.cast(&witness::wait, &kinds);
      co_await settled();
    });
    EXPECT_EQ(kinds, std::vector<cancel_kind>{cancel_kind::scope_ended});
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_end, all_agents_of_a_scope_share_its_grace) {
  const auto start = weir::now();
  co_await weir::with_scope(grace_of(100ms), [&](weir::scope& s) -> task<> {
    for (int i = 0; i < 5; ++i) {
      auto c = weir::spawn_agent<counter>(s, {});
      c.cast(&counter::nap, 1h);
    }
    co_await settled();
  });
  EXPECT_EQ(ms_since(start), 101);
}

FIBER_TEST_IN_EVERY_ORDER(agent_end,
                          the_grace_starts_with_the_first_pop_and_not_with_the_cancellation) {
  const auto start = weir::now();
  std::optional<agent_ref<counter>> c;
  auto body = [&](weir::scope& s) -> task<> {
    c = weir::spawn_agent<counter>(s, {});
    c->cast(&counter::nap, 60ms);
    co_await settled();
    s.spawn(weir::shield(weir::sleep(40ms)));  // joined before the agent is popped
    co_await settled();
    s.cancel();
    co_await weir::sleep(1h);
  };
  EXPECT_EQ(code_of(co_await error_of_scope(grace_of(30ms), body)), errc::cancelled);
  EXPECT_EQ(ms_since(start), 60);
  EXPECT_EQ(co_await c->monitor(), ending::normal);
}
SCOPE_TEST(agent_end, many_short_agents_in_one_scope_leave_nothing_behind) {
  const long fibers = live_fibers();
  for (int i = 0; i < 5'000; ++i) {
    auto c = weir::spawn_agent<counter>(s, {}, i);
    if (i % 2 == 0) {
      EXPECT_EQ(co_await c.call(&counter::get), i);
    }
    co_await c.stop();
  }
  co_await settled();
  EXPECT_EQ(live_fibers(), fibers);
  EXPECT_EQ(live_timers(), 0);
}
FIBER_TEST(agent_end, a_scope_with_many_agents_ends) {
  std::vector<agent_ref<counter>> all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 20'000; ++i) {
      all.push_back(weir::spawn_agent<counter>(s, {}, i));
      all.back().cast(&counter::inc, 1);
    }
    co_return;
  });
  for (const auto& c : all) EXPECT_EQ(c.info().handled, 1U);
}

// ------------------------------------------------------------------ join and monitor

FIBER_TEST_IN_EVERY_ORDER(agent_end, join_waits_for_the_end_and_never_throws_however_it_comes) {
  int joined_by = 0;
  std::optional<agent_ref<counter>> c;
  co_await weir::with_scope([&](weir::scope& outer) -> task<> {
    auto joins = [&]() -> task<> {
      auto ref = *c;
      co_await ref.join();
      ++joined_by;
    };
    auto body = [&](weir::scope& s) -> task<> {
      c = weir::spawn_agent<counter>(s, {});
      for (int i = 0; i < 3; ++i) outer.spawn(joins);
      c->cast(&counter::fail_after, 5ms, 1);
      co_await settled();
      EXPECT_EQ(joined_by, 0);
      co_await weir::sleep(1h);
    };
    EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
    co_await outer.join();
  });
  EXPECT_EQ(joined_by, 3);
  co_await c->join();
}
FIBER_TEST_IN_EVERY_ORDER(agent_end, every_monitor_hears_once_how_it_ended_before_and_after) {
  std::vector<ending> heard;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {});
    auto hears = [&]() -> task<> {
      const ending how = co_await c.monitor();
      heard.push_back(how);
    };
    for (int i = 0; i < 3; ++i) s.spawn(hears);
    co_await settled();
    EXPECT_TRUE(heard.empty());
    co_await c.stop();
    co_await settled();
    EXPECT_EQ(heard.size(), 3U);
    co_await hears();
    co_await hears();
    co_await s.join();
  });
  EXPECT_EQ(heard, std::vector<ending>(5, ending::normal));
}

SCOPE_TEST_IN_EVERY_ORDER(agent_end, a_monitor_that_is_withdrawn_changes_nothing) {
  auto c = weir::spawn_agent<counter>(s, {}, 3);
  const auto first = co_await weir::race(c.monitor(), weir::sleep(1ms));
  EXPECT_EQ(first.index(), 1U);
  const auto error = co_await error_of(weir::with_timeout(1ms, c.join()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(co_await c.call(&counter::get), 3);
  c.stop();
  EXPECT_EQ(co_await c.monitor(), ending::normal);
}

FIBER_TEST_IN_EVERY_ORDER(agent_end, an_agent_that_crashes_while_it_stops_has_crashed) {
  std::optional<agent_ref<counter>> c;
  auto body = [&](weir::scope& s) -> task<> {
    c = weir::spawn_agent<counter>(s, {});
    c->cast(&counter::nap, 2ms);
    c->cast(&counter::fail, 4);
    co_await settled();
    c->stop();
    co_await weir::sleep(1h);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 4);
  EXPECT_EQ(co_await c->monitor(), ending::crashed);
  EXPECT_EQ(co_await code_of_call(*c, &counter::get), errc::agent_crashed);
}

// ------------------------------------------------------------------ info

SCOPE_TEST_IN_EVERY_ORDER(agent_end, info_tells_name_state_and_counts) {
  std::string name = "clerk";
  weir::agent_options options;
  options.name = std::string_view(name);
  auto c = weir::spawn_agent<counter>(s, options);
  name = "XXXXX";  // the name was copied
  EXPECT_EQ(c.info().name, "clerk");
  EXPECT_EQ(c.info().state, agent_state::starting);
  co_await settled();
  EXPECT_EQ(c.info().state, agent_state::idle);
  c.cast(&counter::nap, 5ms);
  for (int i = 0; i < 3; ++i) c.cast(&counter::inc, 1);
  co_await settled();
  EXPECT_EQ(c.info().state, agent_state::running);
  EXPECT_EQ(c.info().queued, 3U);
  EXPECT_EQ(c.info().handled, 0U);
  co_await weir::sleep(10ms);
  EXPECT_EQ(c.info().state, agent_state::idle);
  EXPECT_EQ(c.info().queued, 0U);
  EXPECT_EQ(c.info().handled, 4U);
  co_await c.stop();
  const weir::agent_info end = c.info();
  EXPECT_EQ(end.name, "clerk");
  EXPECT_EQ(end.state, agent_state::ended);
  EXPECT_EQ(end.restarts, 0U);
  EXPECT_EQ(end.dropped, 0U);
  EXPECT_EQ(end.skipped, 0U);
}

TEST(agent_end, a_reference_may_outlive_the_loop) {
  std::optional<agent_ref<counter>> c;
  weir::sim::run({.seed = 1}, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      c = weir::spawn_agent<counter>(s, {.name = "c"}, 1);
      EXPECT_EQ(co_await c->call(&counter::get), 1);
    });
  });
  EXPECT_EQ(c->cast(&counter::inc, 1), sent::stopped);
  EXPECT_EQ(c->info().state, agent_state::ended);
  weir::sim::run({.seed = 2}, [&]() -> task<> {
    const std::error_code code = co_await code_of_call(*c, &counter::get);
    EXPECT_TRUE(code == errc::agent_stopped || code == errc::loop_gone) << code.message();
    EXPECT_EQ(co_await c->monitor(), ending::normal);
    co_await c->join();
  });
}
