// SPDX-License-Identifier: MIT
// Agents, their callers and their owners on different simulated loops: where handlers run, what is
// passed between loops, and that every call has one answer while loops end or crash.
#include <algorithm>
#include <map>

#include "agent_support.hpp"

using namespace weir_test;
using weir::overflow;

namespace {

/// Runs `body(scope&, one, two)` in many orders; the two loops outlive the scope.
template <class F>
void beside_two_loops(F body, std::source_location site = std::source_location::current()) {
  auto program = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& outer) -> task<> {
      const weir::loop_thread one(outer, {.name = "one"});
      const weir::loop_thread two(outer, {.name = "two"});
      auto inside = [&](weir::scope& s) -> task<> { co_await body(s, one.ref(), two.ref()); };
      co_await weir::with_scope(inside);
    });
  };
  in_every_order(program, site);
}

/// Notes on which loop each part of its life was.
class traveller {
 public:
  explicit traveller(std::vector<weir::loop_ref>* where) : where_(where) { look(); }
  traveller(const traveller&) = delete;
  traveller& operator=(const traveller&) = delete;
  ~traveller() { look(); }
  void look() { where_->push_back(weir::this_loop()); }
  task<> look_later() {
    co_await weir::sleep(1ms);
    look();
  }

 private:
  std::vector<weir::loop_ref>* where_;
};

}  // namespace

TEST(agent_loops, constructor_handlers_and_destructor_run_on_the_loop_of_the_agent) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref) -> task<> {
    std::vector<weir::loop_ref> where;
    auto t = weir::spawn_agent<traveller>(s, options_on(one, "t"), &where);
    t.cast(&traveller::look);
    co_await t.send(&traveller::look_later);
    co_await t.call(&traveller::look_later);
    co_await t.stop();
    EXPECT_EQ(where.size(), 5U);
    for (const weir::loop_ref& at : where) EXPECT_TRUE(at == one);
  });
}

TEST(agent_loops, values_errors_and_move_only_things_travel) {
  class courier {
   public:
    std::unique_ptr<int> twice(std::unique_ptr<int> n) { return std::make_unique<int>(*n * 2); }
    void fail(int n) { throw boom(n); }
  };
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    auto c = weir::spawn_agent<courier>(s, options_on(one, "c"));
    auto there = [&]() -> task<int> {
      auto n = std::make_unique<int>(21);
      auto doubled = co_await c.call(&courier::twice, std::move(n));
      EXPECT_EQ(boom_of(co_await error_of(c.call(&courier::fail, 3))), 3);
      co_return *doubled;
    };
    EXPECT_EQ(co_await there(), 42);
    EXPECT_EQ(co_await weir::on(two, there), 42);
    EXPECT_EQ(co_await weir::on(one, there), 42);
  });
}

TEST(agent_loops, messages_of_one_sender_stay_in_order) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    text_log log;
    auto a = weir::spawn_agent<scribe>(s, options_on(one, "a"), &log, "a");
    auto there = [&]() -> task<> {
      for (int i = 1; i <= 3; ++i) a.cast(&scribe::note, i);
      co_await a.call(&scribe::note, 4);
      co_await a.send(&scribe::note, 5);
      a.cast(&scribe::note, 6);
    };
    co_await weir::on(two, there);
    co_await a.stop();
    EXPECT_EQ(joined(log), "+a,a1,a2,a3,a4,a5,a6,-a");
  });
}

TEST(agent_loops, a_crash_elsewhere_fails_the_owner_here_with_the_same_error) {
  beside_two_loops([](weir::scope&, weir::loop_ref one, weir::loop_ref two) -> task<> {
    std::optional<agent_ref<counter>> c;
    auto body = [&](weir::scope& s) -> task<> {
      c = weir::spawn_agent<counter>(s, options_on(one, "c"));
      auto casts = [&]() -> task<> {
        c->cast(&counter::fail_after, 1ms, 6);
        co_return;
      };
      co_await weir::on(two, casts);
      co_await weir::sleep(1h);
    };
    EXPECT_EQ(boom_of(co_await error_of_scope(body)), 6);
    EXPECT_EQ(co_await c->monitor(), ending::crashed);
    EXPECT_EQ(co_await code_of_call(*c, &counter::get), errc::agent_crashed);
  });
}

TEST(agent_loops, stop_join_and_monitor_work_from_everywhere) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    int heard = 0;
    auto c = weir::spawn_agent<counter>(s, options_on(one, "c"));
    c.cast(&counter::nap, 5ms);
    auto joins = [&]() -> task<> {
      auto ref = c;
      co_await ref.join();
      EXPECT_EQ(co_await ref.monitor(), ending::normal);
      ++heard;
    };
    auto here = s.spawn(joins);
    auto beside = s.spawn_on(one, joins);
    auto there = s.spawn_on(two, joins);
    co_await settled();
    EXPECT_EQ(heard, 0);
    auto stops = [&]() -> task<> {
      auto ref = c;
      co_await ref.stop();
      EXPECT_EQ(ref.cast(&counter::inc, 1), sent::stopped);
    };
    co_await weir::on(two, stops);
    co_await here;
    co_await beside;
    co_await there;
    EXPECT_EQ(heard, 3);
  });
}

TEST(agent_loops, the_end_of_the_scope_stops_agents_elsewhere_and_waits_for_them) {
  beside_two_loops([](weir::scope&, weir::loop_ref one, weir::loop_ref two) -> task<> {
    text_log log;
    const auto start = weir::now();
    co_await weir::with_scope(grace_of(50ms), [&](weir::scope& s) -> task<> {
      auto cut = weir::spawn_agent<scribe>(s, options_on(two, "b"), &log, "b");
      cut.cast(&scribe::note_after, 1h, 3);
      co_await settled();
      auto a = weir::spawn_agent<scribe>(s, options_on(one, "a"), &log, "a");
      a.cast(&scribe::note_after, 20ms, 1);
      a.cast(&scribe::note, 2);
      co_await settled();
    });
    EXPECT_EQ(joined(log), "+b,<3,+a,<1,>1,a2,-a,!3,-b");
    EXPECT_EQ(ms_since(start), 52);
  });
}

TEST(agent_loops, limits_and_cancellation_of_callers_elsewhere_skip_queued_calls) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    text_log log;
    auto a = weir::spawn_agent<scribe>(s, options_on(one, "a"), &log, "a");
    a.cast(&scribe::note_after, 50ms, 1);
    auto times_out = [&]() -> task<> {
      const auto start = weir::now();
      const auto error = co_await error_of(weir::with_timeout(5ms, a.call(&scribe::note, 2)));
      EXPECT_TRUE(holds<weir::timeout_error>(error));
      EXPECT_EQ(ms_since(start), 5);
    };
    co_await weir::on(two, times_out);
    auto caller = s.spawn_on(two, [&]() -> task<> { co_await a.call(&scribe::note, 3); });
    co_await settled();
    caller.cancel();
    co_await weir::settle(caller);
    co_await a.call(&scribe::note, 4);
    EXPECT_EQ(joined(log), "+a,<1,>1,a4");
    EXPECT_EQ(a.info().skipped, 2U);
    co_await a.stop();
  });
}

TEST(agent_loops, a_full_mailbox_lets_senders_on_other_loops_wait_in_order) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    text_log log;
    weir::agent_options options = options_on(one, "a");
    options.capacity = 1;
    options.overflow = overflow::wait;
    auto a = weir::spawn_agent<scribe>(s, options, &log, "a");
    a.cast(&scribe::note_after, 50ms, 1);
    co_await settled();
    std::vector<weir::child<void>> all;
    auto sends = [&](int n) -> task<> { co_await a.send(&scribe::note, n); };
    auto calls = [&](int n) -> task<> { co_await a.call(&scribe::note, n); };
    for (int i = 2; i <= 7; ++i) {
      const weir::loop_ref from = i % 3 == 0 ? two : i % 3 == 1 ? one : weir::this_loop();
      all.push_back(s.spawn_on(from, i % 2 == 0 ? sends(i) : calls(i)));
      co_await settled();
    }
    EXPECT_EQ(a.cast(&scribe::note, 99), sent::full);
    all[2].cancel();  // 4 leaves
    for (auto& one_of_them : all) co_await weir::settle(one_of_them);
    co_await a.stop();
    EXPECT_EQ(joined(log), "+a,<1,>1,a2,a3,a5,a6,a7,-a");
  });
}

namespace {

/// Looks at its own mailbox whenever it has a turn.
class watchful {
 public:
  task<> put(int who, int n) {
    EXPECT_EQ(n, last_[who] + 1) << "sender " << who;
    last_[who] = n;
    most_ = std::max(most_, weir::self<watchful>().info().queued);
    co_await weir::yield();
    most_ = std::max(most_, weir::self<watchful>().info().queued);
  }
  std::uint64_t most() const { return most_; }

 private:
  std::map<int, int> last_;
  std::uint64_t most_ = 0;
};

}  // namespace

TEST(agent_loops, a_bounded_mailbox_keeps_its_capacity_and_the_order_of_each_sender) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    weir::agent_options options = options_on(one, "a");
    options.capacity = 1 + static_cast<std::int64_t>(weir::random() % 2);
    options.overflow = overflow::wait;
    auto a = weir::spawn_agent<watchful>(s, options);
    auto sends = [&](int who) -> task<> {
      auto ref = a;
      for (int i = 1; i <= 4; ++i) {
        if (i == 3) {
          co_await ref.call(&watchful::put, who, i);
        } else {
          co_await ref.send(&watchful::put, who, i);
        }
      }
    };
    std::vector<weir::child<void>> all;
    for (int who = 0; who < 4; ++who) {
      const weir::loop_ref from = who % 3 == 0 ? one : who % 3 == 1 ? two : weir::this_loop();
      all.push_back(s.spawn_on(from, sends(who)));
    }
    for (auto& sender : all) co_await sender;
    const std::uint64_t most = co_await a.call(&watchful::most);
    EXPECT_LE(most, static_cast<std::uint64_t>(options.capacity));
    co_await a.stop();
    EXPECT_EQ(a.info().handled, 17U);
  });
}

TEST(agent_loops, timers_may_be_armed_and_cancelled_from_elsewhere) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref) -> task<> {
    text_log log;
    auto a = weir::spawn_agent<scribe>(s, options_on(one, "a"), &log, "a");
    co_await settled();
    a.cast_after(10ms, &scribe::note, 1);
    weir::timer_handle cancelled = a.cast_after(12ms, &scribe::note, 2);
    weir::timer_handle often = a.cast_every(20ms, &scribe::note, 3);
    co_await weir::sleep(11ms);
    cancelled.cancel();
    co_await weir::sleep(34ms);
    often.cancel();
    co_await weir::sleep(1s);
    EXPECT_EQ(joined(log), "+a,a1,a3,a3");
    co_await a.stop();
  });
}

TEST(agent_loops, a_name_is_free_before_anybody_on_any_loop_hears_of_the_end) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    auto c = weir::spawn_agent<counter>(s, options_on(one, "till"), 1);
    weir::registry::add(c);
    auto finds = [&]() -> task<bool> {
      co_return weir::registry::find<counter>("till").has_value();
    };
    EXPECT_TRUE(co_await weir::on(two, finds));
    auto hears = s.spawn_on(two, [&]() -> task<bool> {
      (void)co_await c.monitor();
      co_return weir::registry::find<counter>("till").has_value();
    });
    co_await settled();
    c.stop();
    const bool still_there = co_await hears;
    EXPECT_FALSE(still_there);
  });
}

TEST(agent_loops, a_pool_of_agents_on_another_loop_answers_everybody) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    weir::agent_pool<counter> p(s, 2, options_on(one, "p"), 7);
    auto asks = [&]() -> task<int> { co_return co_await p.call(&counter::get_after, 1ms); };
    auto there = s.spawn_on(two, asks);
    auto here = s.spawn(asks);
    const int a = co_await there;
    const int b = co_await here;
    EXPECT_EQ(a + b, 14);
  });
}

// ------------------------------------------------------------------ before its loop has heard of
// it

TEST(agent_loops, what_is_sent_right_after_the_spawn_is_handled_before_a_stop) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref) -> task<> {
    text_log log;
    auto a = weir::spawn_agent<scribe>(s, options_on(one, "a"), &log, "a");
    a.cast(&scribe::note, 1);
    a.cast_after(1h, &scribe::note, 3);
    auto end = a.stop();
    EXPECT_EQ(a.cast(&scribe::note, 2), sent::stopped);
    EXPECT_EQ(co_await a.monitor(), ending::normal);
    co_await end;
    EXPECT_EQ(joined(log), "+a,a1,-a");
    EXPECT_EQ(a.info().dropped, 1U);
    EXPECT_EQ(live_timers(), 0);
  });
}

TEST(agent_loops, a_timer_that_is_armed_right_after_the_spawn_comes) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref) -> task<> {
    text_log log;
    auto a = weir::spawn_agent<scribe>(s, options_on(one, "a"), &log, "a");
    a.cast_after(5ms, &scribe::note, 1);
    weir::timer_handle often = a.cast_every(10ms, &scribe::note, 2);
    weir::timer_handle never = a.cast_after(1ms, &scribe::note, 9);
    never.cancel();
    co_await weir::sleep(25ms);
    EXPECT_EQ(joined(log), "+a,a1,a2,a2");
    co_await a.stop();
  });
}

TEST(agent_loops, a_scope_that_ends_right_after_the_spawn_ends_the_agent_too) {
  beside_two_loops([](weir::scope&, weir::loop_ref one, weir::loop_ref) -> task<> {
    text_log log;
    std::optional<agent_ref<scribe>> a;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      a = weir::spawn_agent<scribe>(s, options_on(one, "a"), &log, "a");
      a->cast(&scribe::note, 1);
      co_return;
    });
    EXPECT_EQ(joined(log), "+a,a1,-a");
    EXPECT_EQ(co_await a->monitor(), ending::normal);
    auto cancelled = [&](weir::scope& s) -> task<> {
      s.cancel();
      a = weir::spawn_agent<scribe>(s, options_on(one, "b"), &log, "b");
      a->cast(&scribe::note, 2);
      co_await weir::sleep(1h);
    };
    EXPECT_EQ(code_of(co_await error_of_scope(cancelled)), errc::cancelled);
    co_await a->join();
    EXPECT_EQ(a->info().queued, 0U);
    EXPECT_EQ(a->info().state, agent_state::ended);
  });
}

// ------------------------------------------------------------------ loops that end

namespace {

/// A call that counts its answers; which answers there may be.
task<> ask_once(agent_ref<counter> to, int& answers, int& values) {
  const std::exception_ptr error = co_await error_of(to.call(&counter::get_after, 1ms));
  ++answers;
  if (error == nullptr) ++values;
  const std::error_code code = code_of(error);
  EXPECT_TRUE(error == nullptr || code == errc::loop_gone || code == errc::agent_stopped ||
              code == errc::agent_crashed)
      << what_of(error);
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(agent_loops, calls_to_an_agent_whose_loop_ends_are_all_answered) {
  int answers = 0;
  int values = 0;
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    std::optional<agent_ref<counter>> c;
    auto owner = [&](weir::scope& s) -> task<> {
      auto with_loop = [&](weir::loop_thread& t) -> task<> {
        c = weir::spawn_agent<counter>(s, options_on(t, "c"));
        for (int i = 0; i < 4; ++i) callers.spawn(ask_once(*c, answers, values));
        for (auto i = weir::random() % 5; i > 0; --i) co_await weir::yield();
        if (weir::random() % 2 == 0) co_await settled();
      };
      co_await weir::with_loop_thread(with_loop);
    };
    const std::exception_ptr error = co_await error_of_scope(owner);
    EXPECT_TRUE(error == nullptr || code_of(error) == errc::loop_gone) << what_of(error);
    callers.spawn(ask_once(*c, answers, values));
    EXPECT_EQ(c->cast(&counter::inc, 1), sent::stopped);
    co_await c->join();
    co_await callers.join();
  });
  EXPECT_EQ(answers, 5);
}

TEST(agent_loops, every_call_has_one_answer_while_agents_stop_and_callers_leave) {
  beside_two_loops([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    int answers = 0;
    int values = 0;
    int left = 0;
    auto c = weir::spawn_agent<counter>(s, options_on(one, "c"));
    std::vector<weir::child<void>> all;
    for (int i = 0; i < 6; ++i) {
      const weir::loop_ref from = i % 3 == 0 ? one : i % 3 == 1 ? two : weir::this_loop();
      all.push_back(s.spawn_on(from, ask_once(c, answers, values)));
    }
    for (auto i = weir::random() % 5; i > 0; --i) co_await weir::yield();
    for (auto& caller : all)
      if (weir::random() % 3 == 0) caller.cancel();
    if (weir::random() % 2 == 0) co_await weir::sleep(2ms);
    c.stop();
    for (auto& caller : all) {
      const auto end = co_await weir::settle(caller);
      EXPECT_FALSE(end.is_error());
      left += end.is_cancelled() ? 1 : 0;
    }
    co_await c.join();
    // A caller elsewhere may have its answer and still be cancelled from here.
    EXPECT_LE(answers, 6);
    EXPECT_GE(answers + left, 6);
    EXPECT_EQ(c.info().queued, 0U);
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_loops, an_agent_cannot_be_made_on_a_loop_that_is_gone) {
  std::optional<weir::loop_ref> gone;
  auto with_loop = [&](weir::loop_thread& t) -> task<> {
    gone = t;
    co_return;
  };
  co_await weir::with_loop_thread(with_loop);
  auto body = [&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, options_on(*gone, "c"));
    const std::error_code code = co_await weir::shield(code_of_call(c, &counter::get));
    EXPECT_TRUE(code == errc::loop_gone || code == errc::agent_crashed) << code.message();
    co_await weir::sleep(1h);
  };
  EXPECT_EQ(code_of(co_await error_of_scope(body)), errc::loop_gone);
}
