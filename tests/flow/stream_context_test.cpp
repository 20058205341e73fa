// SPDX-License-Identifier: MIT
// What a generator sees of its consumer, what it may await, next() inside combinators, and
// cancellation at every point where a generator can be.
#include <memory>
#include <variant>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

weir::local<int> level{1};

weir::stream<int> levels() {
  for (int i = 0; i < 3; ++i) {
    co_yield level.get();
    co_await weir::yield();
  }
}

/// Waits in every way that a generator may, and counts how often it is entered and left.
weir::stream<int> waits_in_many_ways(probe& p, weir::queue<int>& q) {
  const visit here(p);
  co_await weir::sleep(1ms);
  co_yield 1;
  {
    const visit inside(p);
    auto v = co_await q.next();
    co_yield v ? *v : -1;
  }
  int w = co_await after(1ms, 3);
  co_yield w;
  auto deeper = feed(p);
  for (;;) {
    auto v = co_await deeper.next();
    if (!v) break;
    co_yield *v;
  }
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    const visit inside(p);
    s.spawn(sleep_for(1ms));
    co_await weir::sleep(2ms);
  });
  co_yield 6;
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(stream_context, this_scope_in_a_generator_is_the_consumers) {
  auto make = []() -> weir::stream<const weir::scope*> {
    for (int i = 0; i < 3; ++i) {
      co_await weir::sleep(1ms);
      co_yield &weir::this_scope();
    }
  };
  auto s = make();
  auto outside = co_await s.next();
  EXPECT_EQ(*outside, &weir::this_scope());
  co_await weir::with_scope([&](weir::scope& inner) -> task<> {
    auto inside = co_await s.next();
    EXPECT_EQ(*inside, &inner);
  });
  auto outside_again = co_await s.next();
  EXPECT_EQ(*outside_again, &weir::this_scope());
}

FIBER_TEST(stream_context, locals_in_a_generator_are_those_around_the_pull) {
  auto s = levels();
  int one = co_await pull_one(s);
  int five = co_await weir::with_local(level, 5, pull_one(s));
  int again = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  EXPECT_EQ(five, 5);
  EXPECT_EQ(again, 1);
}

FIBER_TEST(stream_context, the_deadline_of_the_consumer_pauses_the_generator_and_leaves_it_usable) {
  const auto start = weir::now();
  auto s = ticking(10ms, 3);
  auto late = co_await error_of(weir::with_deadline(start + 5ms, pull_one(s)));
  EXPECT_TRUE(holds<weir::timeout_error>(late));
  EXPECT_EQ(ms_since(start), 5);
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  EXPECT_EQ(ms_since(start), 10);
}

FIBER_TEST_IN_EVERY_ORDER(stream_context, a_generator_may_await_tasks_scopes_and_other_generators) {
  probe p{.items = {4, 5}, .pause = 1ms};
  weir::queue<int> q(2);
  (void)q.try_push(2);
  auto s = waits_in_many_ways(p, q);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, from_to(1, 6));
  EXPECT_EQ(p.entered, p.left);
  EXPECT_EQ(p.entered, 4);
}
TEST(stream_context, cancelled_at_any_moment_everything_that_was_entered_is_left) {
  for (int moment = 0; moment <= 20; ++moment) {
    SCOPED_TRACE("after " + std::to_string(moment) + " half milliseconds");
    in_every_order([moment]() -> task<> {
      probe p{.items = {4, 5}, .pause = 1ms};
      weir::queue<int> q(2);
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto consumer = s.spawn([&]() -> task<> {
          auto source = waits_in_many_ways(p, q);
          (void)co_await pull_all(source);
        });
        co_await weir::sleep(2200us);
        (void)q.try_push(2);
        co_await weir::sleep(moment * 500us);
        consumer.cancel();
        co_await s.idle();
      });
      EXPECT_EQ(p.entered, p.left);
      EXPECT_EQ(p.caught, 0);
    });
  }
}

// The same by a pull that is given up, after which the stream goes on
TEST(stream_context, pulls_given_up_at_any_moment_lose_nothing) {
  for (int patience = 1; patience <= 12; ++patience) {
    SCOPED_TRACE(std::to_string(patience * 100) + " us of patience");
    in_order([patience]() -> task<> {
      probe p{.items = from_to(1, 4), .pause = 1ms};
      auto nested = [&]() -> weir::stream<int> {
        auto inner = feed(p);
        for (;;) {
          auto v = co_await inner.next();
          if (!v) break;
          co_await weir::sleep(300us);
          co_yield *v;
        }
      };
      auto s = nested();
      int given_up = 0;
      auto all = co_await pull_all_impatiently(s, patience * 100us, given_up);
      EXPECT_EQ(all, from_to(1, 4));
      EXPECT_EQ(p.entered, 1);
      EXPECT_EQ(p.left, 1);
    });
  }
}
FIBER_TEST_IN_EVERY_ORDER(stream_context, a_race_over_next_loses_no_value) {
  auto a = ticking(2ms, 4);
  auto b = ticking(3ms, 3);
  numbers got;
  for (int i = 0; i < 7; ++i) {
    auto v = co_await weir::race(a.next(), b.next());
    got.push_back(v ? *v : -1);
    if (!v) break;
  }
  // Whoever ends ends the race of both; what the other has left is still there.
  while (auto v = co_await a.next()) got.push_back(*v);
  while (auto v = co_await b.next()) got.push_back(*v);
  std::erase(got, -1);
  EXPECT_EQ(sorted(got), (numbers{1, 1, 2, 2, 3, 3, 4}));
}

FIBER_TEST_IN_EVERY_ORDER(stream_context, all_over_next_of_two_streams_gives_both_items) {
  auto a = ticking(2ms, 2);
  auto b = ticking(3ms, 1);
  auto [x, y] = co_await weir::all(a.next(), b.next());
  EXPECT_EQ(*x, 1);
  EXPECT_EQ(*y, 1);
  auto [second, end] = co_await weir::all(a.next(), b.next());
  EXPECT_EQ(*second, 2);
  EXPECT_FALSE(end.has_value());
}

FIBER_TEST_IN_EVERY_ORDER(stream_context,
                          an_error_in_one_arm_of_all_leaves_the_other_stream_usable) {
  auto a = ticking(5ms, 2);
  probe p{.items = {}, .pause = 1ms, .fails_behind = 0};
  auto b = feed(p);
  auto error = co_await error_of(weir::all(a.next(), b.next()));
  EXPECT_EQ(boom_of(error), 7);
  int one = co_await pull_one(a);
  EXPECT_EQ(one, 1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_context,
                          select_over_children_that_pull_leaves_the_others_pending) {
  auto a = ticking(2ms, 2);
  auto b = ticking(5ms, 2);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto from_a = s.spawn(pull_one(a));
    auto from_b = s.spawn(pull_one(b));
    const auto index = co_await weir::select(from_a, from_b);
    EXPECT_EQ(index, 0U);
    int one = co_await from_b;
    EXPECT_EQ(one, 1);
  });
}

FIBER_TEST(stream_context, a_race_over_next_of_a_ready_stream_pulls_once) {
  probe p{.items = from_to(1, 5)};
  auto s = feed(p);
  auto v = co_await weir::race(s.next(), weir::never<int>().next());
  EXPECT_EQ(*v, 1);
  EXPECT_EQ(p.given, 1);
  int two = co_await pull_one(s);
  EXPECT_EQ(two, 2);
}

FIBER_TEST_IN_EVERY_ORDER(stream_context, a_pull_from_another_fiber_than_the_first_is_fine) {
  auto s = ticking(1ms, 4);
  numbers got;
  for (int i = 0; i < 2; ++i) {
    int own = co_await pull_one(s);
    got.push_back(own);
    co_await weir::with_scope([&](weir::scope& scope) -> task<> {
      auto child = scope.spawn(pull_one(s));
      int theirs = co_await child;
      got.push_back(theirs);
    });
  }
  EXPECT_EQ(got, from_to(1, 4));
}
FIBER_TEST(stream_context, a_consumer_that_is_cancelled_already_pulls_nothing_more) {
  probe p{.items = from_to(1, 6)};
  auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    auto source = feed(p);
    (void)co_await pull_one(source);
    s.cancel();
    for (int i = 0; i < 1000; ++i) (void)co_await source.next();
  }));
  EXPECT_TRUE(ended.is_cancelled());
  EXPECT_EQ(p.given, 1);
  EXPECT_EQ(p.left, 1);
}
FIBER_TEST(stream_context, the_dump_shows_what_a_pull_waits_for) {
  auto s = weir::never<int>();
  auto t = ticking(1h, 1);
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    scope.spawn(pull_one(s));
    scope.spawn(pull_one(t));
    co_await weir::sleep(1ms);
    const std::string text = dump_text();
    EXPECT_TRUE(contains(text, "next of a stream: a stream without items")) << text;
    EXPECT_TRUE(contains(text, "next of a stream: sleep")) << text;
    scope.cancel();
  });
}
