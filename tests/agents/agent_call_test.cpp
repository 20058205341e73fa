// SPDX-License-Identifier: MIT
// Every call gets exactly one answer: also when the agent crashes, stops or is cancelled, when the
// caller is cancelled or runs out of time, and inside combinators and generators.
#include <map>
#include <variant>

#include "agent_support.hpp"
#include "support/small_stack.hpp"

using namespace weir_test;

namespace {

/// How calls ended: "7" for a value, "boom 1" for an error of the handler, else the code's text.
using answer_tally = std::map<std::string, int>;

task<> ask_for_count(agent_ref<counter> to, answer_tally& got) {
  std::string text;
  try {
    text = std::to_string(co_await to.call(&counter::get));
  } catch (const weir::agent_error& e) {
    text = e.code().message();
  } catch (const boom& e) {
    text = e.what();
  }
  ++got[text];
}

std::string message_of_code(errc code) { return std::error_code(code).message(); }

/// Notes that it has run.
class noter {
 public:
  explicit noter(numbers* seen) : seen_(seen) {}
  void note(int n) { seen_->push_back(n); }
  task<int> note_after(weir::duration d, int n) {
    co_await weir::sleep(d);
    seen_->push_back(n);
    co_return n;
  }

 private:
  numbers* seen_;
};

}  // namespace

// ------------------------------------------------------------------ exactly one answer
FIBER_TEST(agent_call, a_thousand_queued_calls_all_fail_when_the_agent_crashes) {
  answer_tally got;
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      auto c = weir::spawn_agent<counter>(s, {.name = "c"});
      c.cast(&counter::fail_after, 10ms, 1);
      for (int i = 0; i < 1000; ++i) callers.spawn(ask_for_count(c, got));
      co_await weir::sleep(1h);
    };
    EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
    co_await callers.join();
  });
  EXPECT_EQ(got, (answer_tally{{message_of_code(errc::agent_crashed), 1000}}));
}

FIBER_TEST(agent_call, a_thousand_queued_calls_all_fail_when_the_grace_of_the_scope_is_over) {
  answer_tally got;
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    co_await weir::with_scope(grace_of(10ms), [&](weir::scope& s) -> task<> {
      auto c = weir::spawn_agent<counter>(s, {.name = "c"});
      c.cast(&counter::nap, 1h);
      for (int i = 0; i < 1000; ++i) callers.spawn(ask_for_count(c, got));
      co_await settled();
    });
    co_await callers.join();
  });
  EXPECT_EQ(got, (answer_tally{{message_of_code(errc::agent_stopped), 1000}}));
}

FIBER_TEST(agent_call, a_thousand_queued_calls_are_all_answered_before_a_stop) {
  answer_tally got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {.name = "c"}, 7);
    c.cast(&counter::nap, 10ms);
    for (int i = 0; i < 1000; ++i) s.spawn(ask_for_count(c, got));
    co_await settled();
    c.stop();
    for (int i = 0; i < 10; ++i) s.spawn(ask_for_count(c, got));
    co_await s.join();
  });
  EXPECT_EQ(got, (answer_tally{{"7", 1000}, {message_of_code(errc::agent_stopped), 10}}));
}

FIBER_TEST_IN_EVERY_ORDER(agent_call,
                          whatever_ends_the_agent_at_whatever_moment_each_call_has_one_answer) {
  answer_tally got;
  const auto how = weir::random() % 4;
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      auto c = weir::spawn_agent<counter>(s, {.name = "c"}, 7);
      for (int i = 0; i < 6; ++i) callers.spawn(ask_for_count(c, got));
      for (auto i = weir::random() % 6; i > 0; --i) co_await weir::yield();
      if (how == 0) c.stop();
      if (how == 1) c.cast(&counter::fail, 1);
      if (how == 2) c.cast(&counter::nap, 1h);
      if (how == 3) s.cancel();
      co_await weir::yield();
    };
    const std::exception_ptr error = co_await error_of_scope(grace_of(10ms), body);
    EXPECT_TRUE(error == nullptr || boom_of(error) == 1 || code_of(error) == errc::cancelled);
    co_await callers.join();
  });
  int all = 0;
  for (const auto& [text, number] : got) {
    all += number;
    const bool crashed = how == 1 && text == message_of_code(errc::agent_crashed);
    EXPECT_TRUE(text == "7" || crashed || text == message_of_code(errc::agent_stopped)) << text;
  }
  EXPECT_EQ(all, 6);
}

FIBER_TEST_IN_EVERY_ORDER(agent_call, the_call_that_is_cut_off_with_its_handler_is_answered_too) {
  std::error_code code;
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    co_await weir::with_scope(grace_of(10ms), [&](weir::scope& s) -> task<> {
      auto c = weir::spawn_agent<counter>(s, {.name = "c"});
      callers.spawn([&, c]() -> task<> { code = co_await code_of_call(c, &counter::nap, 1h); });
      co_await settled();
    });
    co_await callers.join();
  });
  EXPECT_EQ(code, errc::agent_stopped);
}
SCOPE_TEST_IN_EVERY_ORDER(agent_call,
                          to_an_ended_agent_fails_when_it_is_awaited_and_not_when_it_is_made) {
  auto c = weir::spawn_agent<counter>(s, {.name = "teller"});
  co_await c.stop();
  std::exception_ptr error;
  auto call = c.call(&counter::get);
  try {
    (void)co_await std::move(call);
  } catch (const weir::agent_error& e) {
    error = std::current_exception();
  }
  EXPECT_EQ(code_of(error), errc::agent_stopped);
  EXPECT_TRUE(contains(what_of(error), "teller")) << what_of(error);
}

// ------------------------------------------------------------------ time and cancellation
FIBER_TEST_IN_EVERY_ORDER(agent_call,
                          that_runs_out_of_time_in_the_queue_never_runs_and_is_counted) {
  numbers seen;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto n = weir::spawn_agent<noter>(s, {.name = "n"}, &seen);
    n.cast(&noter::note_after, 100ms, 1);
    co_await settled();
    const auto start = weir::now();
    const auto error = co_await error_of(weir::with_timeout(10ms, n.call(&noter::note, 2)));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_EQ(ms_since(start), 10);
    auto in_a_task = [&]() -> task<> { co_await n.call(&noter::note, 3); };
    const auto other = co_await error_of(weir::with_timeout(10ms, in_a_task));
    EXPECT_TRUE(holds<weir::timeout_error>(other));
    n.cast(&noter::note, 4);
    co_await n.call(&noter::note, 5);
    EXPECT_EQ(seen, (numbers{1, 4, 5}));
    EXPECT_EQ(n.info().skipped, 2U);
  });
}
FIBER_TEST_IN_EVERY_ORDER(agent_call, whose_time_is_over_before_it_begins_is_never_sent) {
  numbers seen;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto n = weir::spawn_agent<noter>(s, {}, &seen);
    const auto error = co_await error_of(weir::with_timeout(0ms, n.call(&noter::note, 1)));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    co_await settled();
    EXPECT_EQ(n.info().skipped, 0U);
    EXPECT_EQ(n.info().handled, 0U);
  });
  EXPECT_TRUE(seen.empty());
}

FIBER_TEST_IN_EVERY_ORDER(agent_call, of_a_cancelled_caller_never_runs_if_it_is_still_queued) {
  numbers seen;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto n = weir::spawn_agent<noter>(s, {.name = "n"}, &seen);
    n.cast(&noter::note_after, 5ms, 1);
    auto caller =
        s.spawn([&]() -> task<> { co_await weir::with_timeout(1h, n.call(&noter::note, 2)); });
    co_await settled();
    caller.cancel();
    const auto end = co_await weir::settle(caller);
    EXPECT_TRUE(end.is_cancelled());  // and not a timeout
    if (end.is_cancelled()) {
      EXPECT_EQ(end.reason().kind, cancel_kind::user);
    }
    co_await n.call(&noter::note, 3);
    EXPECT_EQ(seen, (numbers{1, 3}));
    EXPECT_EQ(n.info().skipped, 1U);
  });
}
FIBER_TEST_IN_EVERY_ORDER(agent_call,
                          whose_handler_is_already_running_lets_it_run_and_drops_the_late_reply) {
  numbers seen;
  int late = 0;
  const auto watch = count_events("late_reply", "n", late);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto n = weir::spawn_agent<noter>(s, {.name = "n"}, &seen);
    const auto start = weir::now();
    const auto error =
        co_await error_of(weir::with_timeout(10ms, n.call(&noter::note_after, 30ms, 1)));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_EQ(ms_since(start), 10);
    EXPECT_EQ(late, 0);
    auto caller = s.spawn([&]() -> task<> { co_await n.call(&noter::note_after, 30ms, 2); });
    co_await weir::sleep(25ms);
    EXPECT_EQ(late, 1);
    caller.cancel();
    co_await weir::settle(caller);
    EXPECT_EQ(ms_since(start), 35);
    EXPECT_EQ(co_await n.call(&noter::note_after, 1ms, 3), 3);
    EXPECT_EQ(n.info().skipped, 0U);
    EXPECT_EQ(n.info().handled, 3U);
  });
  EXPECT_EQ(seen, (numbers{1, 2, 3}));
  EXPECT_EQ(late, 2);
}

FIBER_TEST_IN_EVERY_ORDER(agent_call,
                          that_left_the_queue_before_the_agent_crashed_is_no_late_reply) {
  int late = 0;
  const auto watch = count_events("late_reply", "c", late);
  std::optional<agent_ref<counter>> c;
  auto body = [&](weir::scope& s) -> task<> {
    c = weir::spawn_agent<counter>(s, {.name = "c"});
    c->cast(&counter::fail_after, 5ms, 1);
    co_await settled();
    const auto error = co_await error_of(weir::with_timeout(1ms, c->call(&counter::get)));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    co_await weir::sleep(1h);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
  EXPECT_EQ(late, 0);
  EXPECT_EQ(c->info().skipped, 1U);
  EXPECT_EQ(c->info().dropped, 0U);
}

SCOPE_TEST_IN_EVERY_ORDER(agent_call,
                          whose_caller_left_and_whose_handler_then_fails_does_not_crash_the_agent) {
  auto c = weir::spawn_agent<counter>(s, {.name = "c"}, 5);
  const auto error =
      co_await error_of(weir::with_timeout(1ms, c.call(&counter::fail_after, 3ms, 1)));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(co_await c.call(&counter::get), 5);
}

FIBER_TEST_IN_EVERY_ORDER(agent_call,
                          cancellations_at_any_moment_leave_the_agent_and_the_count_right) {
  numbers seen;
  int late = 0;
  const auto watch = count_events("late_reply", "n", late);
  int values = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto n = weir::spawn_agent<noter>(s, {.name = "n"}, &seen);
    auto calls = [&](int i) -> task<> {
      (void)co_await n.call(&noter::note_after, 1ms, i);
      ++values;
    };
    std::vector<weir::child<void>> all;
    for (int i = 0; i < 5; ++i) all.push_back(s.spawn(calls(i)));
    for (auto i = weir::random() % 4; i > 0; --i) co_await weir::yield();
    for (auto i = weir::random() % 3; i > 0; --i) co_await weir::sleep(1ms);
    for (auto& one : all)
      if (weir::random() % 2 == 0) one.cancel();
    for (auto& one : all) co_await weir::settle(one);
    co_await n.stop();
    const weir::agent_info end = n.info();
    EXPECT_EQ(end.handled, seen.size());
    // Each one was answered, skipped, answered too late, or never sent.
    EXPECT_LE(static_cast<std::size_t>(values + late) + end.skipped, 5U);
    EXPECT_EQ(static_cast<std::size_t>(values + late), seen.size());
  });
}

// ------------------------------------------------------------------ combinators and generators

FIBER_TEST_IN_EVERY_ORDER(agent_call,
                          that_loses_a_race_is_withdrawn_and_one_that_wins_gives_its_value) {
  numbers seen;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto n = weir::spawn_agent<noter>(s, {.name = "n"}, &seen);
    const auto won = co_await weir::race(n.call(&noter::note_after, 1ms, 1), weir::sleep(1h));
    EXPECT_EQ(won.index(), 0U);
    n.cast(&noter::note_after, 10ms, 2);
    co_await settled();
    const auto lost = co_await weir::race(n.call(&noter::note_after, 1ms, 3), weir::sleep(1ms));
    EXPECT_EQ(lost.index(), 1U);
    co_await n.call(&noter::note, 4);
    EXPECT_EQ(seen, (numbers{1, 2, 4}));
    EXPECT_EQ(n.info().skipped, 1U);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(agent_call, several_at_once_give_all_values) {
  auto a = weir::spawn_agent<counter>(s, {}, 1);
  auto b = weir::spawn_agent<counter>(s, {}, 2);
  const auto start = weir::now();
  const auto [x, y] =
      co_await weir::all(a.call(&counter::get_after, 5ms), b.call(&counter::get_after, 5ms));
  EXPECT_EQ(x, 1);
  EXPECT_EQ(y, 2);
  EXPECT_EQ(ms_since(start), 5);
}

namespace {

weir::stream<int> answers_of(agent_ref<counter> c, weir::duration each) {
  for (;;) {
    const int n = co_await c.call(&counter::get_after, each);
    co_yield n;
  }
}

}  // namespace

SCOPE_TEST_IN_EVERY_ORDER(agent_call,
                          in_a_generator_gives_values_and_a_cancelled_next_interrupts_the_stream) {
  auto c = weir::spawn_agent<counter>(s, {}, 5);
  auto all = answers_of(c, 5ms);
  const auto first = co_await all.next();
  EXPECT_EQ(first, 5);
  const auto error = co_await error_of(weir::with_timeout(1ms, all.next()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  const auto interrupted = co_await error_of(all.next());
  EXPECT_EQ(code_of(interrupted), errc::stream_interrupted);
  EXPECT_EQ(co_await c.call(&counter::get), 5);
}

SCOPE_TEST_IN_EVERY_ORDER(
    agent_call, a_generator_that_is_destroyed_while_it_waits_for_an_answer_leaves_nothing) {
  auto c = weir::spawn_agent<counter>(s, {}, 5);
  auto reader = s.spawn([&]() -> task<> {
    auto all = answers_of(c, 5ms);
    for (;;) (void)co_await all.next();
  });
  co_await weir::sleep(7ms);
  reader.cancel();
  co_await weir::settle(reader);
  EXPECT_EQ(co_await c.call(&counter::get), 5);
}

namespace {

constexpr int deep = 100'000;

enum class at_the_bottom { finish, fail, stay };

/// Every call below the handler is a fiber.
class diver {
 public:
  task<int> dive(int levels, at_the_bottom what) {
    if (levels == 0) {
      if (what == at_the_bottom::fail) throw boom(1);
      if (what == at_the_bottom::stay) co_await weir::sleep(1h);
      co_return 0;
    }
    const auto [below] = co_await weir::all(dive(levels - 1, what));
    co_return below + 1;
  }
};

}  // namespace

TEST(agent_call, a_handler_that_recurses_by_all_is_answered_fails_and_is_ended_at_any_depth) {
  test_support::on_a_small_stack([] {
    in_order([]() -> task<> {
      auto body = [](weir::scope& s) -> task<> {
        auto ref = weir::spawn_agent<diver>(s, {.name = "diver"});
        EXPECT_EQ(co_await ref.call(&diver::dive, deep, at_the_bottom::finish), deep);
        auto failed = co_await error_of(ref.call(&diver::dive, deep / 10, at_the_bottom::fail));
        EXPECT_EQ(boom_of(failed), 1);
        auto stays = ref.call(&diver::dive, deep, at_the_bottom::stay);
        auto late = co_await error_of(weir::with_timeout(1ms, std::move(stays)));
        EXPECT_TRUE(test_support::holds<weir::timeout_error>(late));
      };  // the handler is cancelled when the grace is over
      co_await weir::with_scope({.grace = 1ms}, body);
    });
  });
}
