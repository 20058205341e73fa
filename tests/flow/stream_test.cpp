// SPDX-License-Identifier: MIT
// Generators as streams: one value for each pull, and what happens to them when a pull fails, is
// cancelled or is the last.
#include <memory>
#include <variant>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

weir::stream<int> fails_behind(int items) {
  for (int i = 1; i <= items; ++i) co_yield i;
  throw boom(items);
}

/// Says when it is left, and by how.
weir::stream<int> noted(text_log& log, std::string name) {
  const end_note left(log, name);
  for (int i = 1;; ++i) co_yield i;
}

}  // namespace

FIBER_TEST(stream, nothing_happens_before_the_first_pull_and_between_pulls) {
  probe p{.items = {1, 2, 3}};
  {
    auto unused = feed(p);
    co_await weir::sleep(1ms);
  }
  EXPECT_EQ(p.entered, 0);
  auto s = feed(p);
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  co_await weir::sleep(1ms);
  EXPECT_EQ(p.given, 1);
  int two = co_await pull_one(s);
  EXPECT_EQ(two, 2);
  EXPECT_EQ(p.given, 2);
  EXPECT_EQ(p.left, 0);
}

FIBER_TEST(stream, it_gives_its_items_and_then_nothing_for_ever) {
  probe p{.items = {1, 2}};
  auto s = feed(p);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{1, 2}));
  EXPECT_EQ(p.left, 1);
  for (int i = 0; i < 3; ++i) {
    int more = co_await pull_one(s);
    EXPECT_EQ(more, -1);
  }
  EXPECT_EQ(p.entered, 1);
}
FIBER_TEST(stream, an_error_is_thrown_once_and_then_it_is_empty) {
  auto s = fails_behind(2);
  int first = co_await pull_one(s);
  int second = co_await pull_one(s);
  EXPECT_EQ(first + second, 3);
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 2);
  int after_it = co_await pull_one(s);
  EXPECT_EQ(after_it, -1);
  co_await s.close();
}

FIBER_TEST(stream, values_that_cannot_be_copied_are_moved_out_of_the_generator) {
  auto make = []() -> weir::stream<std::unique_ptr<int>> {
    auto one = std::make_unique<int>(1);
    co_yield std::move(one);
    EXPECT_EQ(one, nullptr);
    co_yield std::make_unique<int>(2);
  };
  auto s = make();
  auto one = co_await s.next();
  auto two = co_await s.next();
  EXPECT_EQ(**one + **two, 3);
  auto end = co_await s.next();
  EXPECT_FALSE(end.has_value());
}

FIBER_TEST(stream, an_lvalue_that_is_yielded_is_copied) {
  std::string seen_after;
  auto make = [&]() -> weir::stream<std::string> {
    const std::string fixed = "a text that is longer than the small ones are";
    std::string kept = fixed;
    co_yield kept;
    seen_after = kept;
    co_yield fixed;
  };
  auto s = make();
  auto one = co_await s.next();
  auto two = co_await s.next();
  EXPECT_EQ(*one, *two);
  EXPECT_EQ(seen_after, *one);
}

// And the sleep keeps its absolute time
FIBER_TEST(stream, a_cancelled_next_pauses_a_sleep_which_keeps_its_absolute_time) {
  const auto start = weir::now();
  auto s = ticking(10ms, 2);
  for (int i = 0; i < 3; ++i) {
    auto error = co_await error_of(weir::with_timeout(2ms, s.next()));
    EXPECT_TRUE(holds<weir::timeout_error>(error));
  }
  EXPECT_EQ(live_timers(), 0);  // nothing is in flight
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  EXPECT_EQ(ms_since(start), 10);
  auto error = co_await error_of(weir::with_timeout(2ms, s.next()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  co_await weir::sleep(50ms);  // its time passes while it is paused
  int two = co_await pull_one(s);
  EXPECT_EQ(two, 2);
  EXPECT_EQ(ms_since(start), 62);
}

FIBER_TEST_IN_EVERY_ORDER(stream,
                          a_cancelled_next_takes_nothing_from_the_queue_its_generator_waits_for) {
  weir::queue<int> q(8);
  auto make = [&]() -> weir::stream<int> {
    for (;;) {
      auto v = co_await q.next();
      if (!v) break;
      co_yield *v;
    }
  };
  auto s = make();
  numbers got;
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    scope.spawn([&]() -> task<> {
      for (int i = 1; i <= 5; ++i) {
        co_await weir::sleep(1ms);
        (void)q.try_push(i);
      }
      q.close();
    });
    int given_up = 0;
    got = co_await pull_all_impatiently(s, 500us, given_up);
    EXPECT_GE(given_up, 1);
  });
  EXPECT_EQ(got, from_to(1, 5));
}

FIBER_TEST_IN_EVERY_ORDER(stream, after_a_cancelled_next_it_can_be_destroyed_at_once) {
  probe p{.items = {1, 2, 3}, .pause = 5ms};
  {
    auto s = feed(p);
    (void)co_await error_of(weir::with_timeout(2ms, s.next()));
    EXPECT_EQ(p.left, 0);
  }
  EXPECT_EQ(p.left, 1);
  EXPECT_EQ(p.caught, 0);
  EXPECT_EQ(live_timers(), 0);
}

FIBER_TEST_IN_EVERY_ORDER(stream,
                          a_wait_that_started_a_fiber_ends_the_generator_if_next_is_cancelled) {
  text_log log;
  auto s = with_a_child(log);
  auto error = co_await error_of(weir::with_timeout(2ms, s.next()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(joined(log), "child,generator");
  error = co_await pull_error(s);
  EXPECT_EQ(code_of(error), errc::stream_interrupted) << what_of(error);
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST_IN_EVERY_ORDER(stream, a_timeout_over_a_task_inside_a_generator_is_interrupted_too) {
  auto make = []() -> weir::stream<int> {
    int v = co_await weir::with_timeout(1h, after(10ms, 4));
    co_yield v;
  };
  auto cut = make();
  (void)co_await error_of(weir::with_timeout(2ms, cut.next()));
  auto error = co_await pull_error(cut);
  EXPECT_EQ(code_of(error), errc::stream_interrupted);
  auto whole = make();
  int v = co_await pull_one(whole);
  EXPECT_EQ(v, 4);
}

FIBER_TEST_IN_EVERY_ORDER(stream,
                          a_wait_that_is_confirmed_later_interrupts_and_one_that_refuses_delivers) {
  held<int> answers;
  auto make = [&](weir::cancel_result how) -> weir::stream<int> {
    int v = co_await asked_it_says<int>(how, answers);
    co_yield v;
    co_await weir::sleep(1h);
  };
  auto later = make(weir::cancel_result::later);
  auto refuses = make(weir::cancel_result::no);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto one = s.spawn(pull_one(later));
    auto two = s.spawn(pull_one(refuses));
    co_await weir::sleep(1ms);
    one.cancel();
    two.cancel();
    co_await weir::sleep(1ms);
    EXPECT_EQ(answers.size(), 2U);
    for (auto& answer : answers) answer.complete(5);
    co_await s.idle();
  });
  auto error = co_await pull_error(later);
  EXPECT_EQ(code_of(error), errc::stream_interrupted);
  int kept = co_await pull_one(refuses);
  EXPECT_EQ(kept, 5);
}
FIBER_TEST_IN_EVERY_ORDER(stream, close_ends_a_pending_next_which_is_then_empty) {
  probe p{.items = {1, 2}, .pause = 1h};
  auto s = feed(p);
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    auto pending = scope.spawn(pull_one(s));
    co_await weir::sleep(1ms);
    co_await s.close();
    EXPECT_EQ(p.left, 1);
    int got = co_await pending;
    EXPECT_EQ(got, -1);
  });
  EXPECT_EQ(p.caught, 0);
  int after_it = co_await pull_one(s);
  EXPECT_EQ(after_it, -1);
}

FIBER_TEST_IN_EVERY_ORDER(stream, close_with_a_next_pending_in_a_scope_joins_what_that_started) {
  text_log log;
  auto make = [&]() -> weir::stream<int> {
    (void)co_await slow_to_stop(log, "inner");
    co_yield 1;
  };
  auto s = make();
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    auto pending = scope.spawn(pull_one(s));
    co_await weir::sleep(1ms);
    co_await s.close();
    EXPECT_EQ(joined(log), "inner stopped");
    int got = co_await pending;
    EXPECT_EQ(got, -1);
  });
}
FIBER_TEST(stream, close_is_idempotent_also_before_the_first_pull_and_after_the_end) {
  probe p{.items = {1}};
  auto s = feed(p);
  co_await s.close();
  co_await s.close();
  int nothing = co_await pull_one(s);
  EXPECT_EQ(nothing, -1);
  EXPECT_EQ(p.entered, 0);
  auto t = feed(p);
  (void)co_await pull_all(t);
  co_await t.close();
  EXPECT_EQ(p.left, 1);
}

FIBER_TEST_IN_EVERY_ORDER(stream, a_second_next_while_one_is_pending_is_an_error_and_harms_nobody) {
  auto s = ticking(2ms, 2);
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    auto pending = scope.spawn(pull_one(s));
    co_await weir::sleep(1ms);
    auto error = co_await pull_error(s);
    EXPECT_EQ(code_of(error), errc::stream_busy);
    EXPECT_TRUE(contains(what_of(error), "one at a time")) << what_of(error);
    int one = co_await pending;
    EXPECT_EQ(one, 1);
  });
  int two = co_await pull_one(s);
  EXPECT_EQ(two, 2);
}

FIBER_TEST(stream, two_nexts_of_one_stream_in_one_combinator_are_an_error) {
  auto s = ticking(2ms, 5);
  auto error = co_await error_of(weir::all(s.next(), s.next()));
  EXPECT_EQ(code_of(error), errc::stream_busy);
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
}

FIBER_TEST(stream, destruction_runs_innermost_first) {
  text_log log;
  auto outer = [&]() -> weir::stream<int> {
    const end_note left(log, "outer");
    auto inner = noted(log, "inner");
    for (;;) {
      auto v = co_await inner.next();
      if (!v) break;
      co_yield *v;
    }
  };
  {
    auto s = outer();
    int one = co_await pull_one(s);
    EXPECT_EQ(one, 1);
  }
  EXPECT_EQ(joined(log), "inner,outer");
}

FIBER_TEST(stream, a_generator_destroyed_at_its_yield_runs_no_catch_block) {
  probe p{.items = {1, 2}};
  {
    auto s = feed(p);
    (void)co_await pull_one(s);
  }
  EXPECT_EQ(p.left, 1);
  EXPECT_EQ(p.caught, 0);
}

TEST(stream_death, a_stream_that_is_destroyed_under_a_pending_next_ends_the_program) {
  const auto destroy = [] {
    in_order([]() -> task<> {
      auto s = std::make_unique<weir::stream<int>>(ticking(1h, 1));
      co_await weir::with_scope([&](weir::scope& scope) -> task<> {
        scope.spawn(pull_one(*s));
        co_await weir::sleep(1ms);
        s.reset();
      });
    });
  };
  EXPECT_DEATH(destroy(), "stream was destroyed while a next");
}
