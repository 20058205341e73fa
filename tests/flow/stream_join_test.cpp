// SPDX-License-Identifier: MIT
// Streams of streams and several streams as one: the order of their items, who is closed when, and
// that nothing is lost.
#include <tuple>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

using any_ints = weir::any_stream<int>;
using pairs = std::vector<std::tuple<int, int>>;

/// Items with a time before each.
struct timed {
  weir::duration before;
  int item;
};

weir::stream<int> timed_items(std::vector<timed> plan, probe& p) {
  const visit here(p);
  for (const timed& step : plan) {
    co_await weir::sleep(step.before);
    ++p.given;
    co_yield step.item;
  }
}

weir::stream<int> fails_after_ms(int ms) {
  co_await weir::sleep(ms * 1ms);
  throw boom(ms);
  co_yield 0;
}

/// Its cleanup awaits, in a scope of its own, and says when it is done.
auto cleanup_in_a_scope(text_log& log, const char* name) {
  return weir::finally([&log, name]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.spawn(sleep_for(10ms));
      co_return;
    });
    log.push_back(name);
  });
}

weir::stream<int> feed_slowly(probe& p) {
  p.pause = 1ms;
  return feed(p);
}

}  // namespace
FIBER_TEST(stream_join, flat_map_gives_one_stream_after_the_other_and_skips_empty_ones) {
  probe p{.items = {2, 0, 0, 3, 1}, .pause = 1ms};
  auto s = feed(p) | weir::flat_map([](int n) { return weir::iota(0, n); });
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{0, 1, 0, 1, 2, 0}));
  EXPECT_EQ(p.left, 1);
}

// The inner one first
FIBER_TEST(stream_join, flat_map_closes_the_inner_stream_and_then_the_outer_one) {
  text_log log;
  probe p{.items = {1, 2}};
  auto inner = [&](int n) { return weir::iota(n) | cleanup_in_a_scope(log, "inner"); };
  auto s = feed(p) | cleanup_in_a_scope(log, "outer") | weir::flat_map(inner);
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  co_await s.close();
  EXPECT_EQ(joined(log), "inner,outer");
  EXPECT_EQ(p.left, 1);
}
FIBER_TEST_IN_EVERY_ORDER(stream_join,
                          an_error_of_an_inner_stream_comes_when_everything_is_closed) {
  text_log log;
  probe p{.items = {1, 2}};
  auto inner = [&](int) { return fails_after_ms(3) | cleanup_in_a_scope(log, "inner"); };
  auto s = feed(p) | cleanup_in_a_scope(log, "outer") | weir::flat_map(inner);
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 3);
  EXPECT_EQ(joined(log), "inner,outer");
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST(stream_join, a_function_that_throws_closes_its_source_and_is_told_once) {
  text_log log;
  probe p{.items = {1, 2}};
  auto refuses = [](int n) -> any_ints { throw boom(n); };
  auto s = feed(p) | cleanup_in_a_scope(log, "source") | weir::flat_map(refuses);
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 1);
  EXPECT_EQ(joined(log), "source");
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST(stream_join, flatten_takes_streams_of_streams) {
  auto s = weir::iota(1, 4) | weir::map([](int n) { return weir::iota(0, n); }) | weir::flatten();
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{0, 0, 1, 0, 1, 2}));
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, switch_map_leaves_a_stream_for_that_of_the_next_item) {
  probe outer, inner;
  auto follow = [&](int n) { return timed_items({{1ms, n}, {4ms, n + 1}, {10ms, n + 2}}, inner); };
  auto s = timed_items({{1ms, 10}, {8ms, 20}, {3ms, 30}}, outer) | weir::switch_map(follow);
  auto all = co_await pull_all(s);
  // 10 at 2, 11 at 6, (12 at 16); from 9 on 20 at 10; from 12 on 30 at 13, 31 at 17, 32 at 27
  EXPECT_EQ(all, (numbers{10, 11, 20, 30, 31, 32}));
  EXPECT_EQ(inner.entered, 3);
  EXPECT_EQ(inner.left, 3);
  EXPECT_EQ(outer.left, 1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, switch_map_awaits_the_cleanup_of_the_stream_it_leaves) {
  text_log log;
  probe p;
  auto follow = [&](int n) {
    return weir::once(n) | weir::tap([&log](const int&) { log.push_back("begun"); }) |
           weir::flat_map([](int m) { return weir::concat(weir::once(m), weir::never<int>()); }) |
           cleanup_in_a_scope(log, "left");
  };
  auto s = timed_items({{1ms, 1}, {1ms, 2}}, p) | weir::switch_map(follow) | weir::take(2);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{1, 2}));
  EXPECT_EQ(joined(log), "begun,left,begun,left");
}

FIBER_TEST(stream_join, concat_begins_a_stream_when_the_one_before_has_ended_and_is_closed) {
  text_log log;
  probe a{.items = {1, 2}, .pause = 1ms}, b{.items = {3}, .pause = 1ms};
  auto s =
      weir::concat(feed(a) | cleanup_in_a_scope(log, "a"), feed(b) | cleanup_in_a_scope(log, "b"));
  for (int n = 1; n <= 2; ++n) {
    int got = co_await pull_one(s);
    EXPECT_EQ(got, n);
    EXPECT_EQ(b.entered, 0);
  }
  int three = co_await pull_one(s);
  EXPECT_EQ(three, 3);
  EXPECT_EQ(joined(log), "a");
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
  EXPECT_EQ(joined(log), "a,b");
}

FIBER_TEST(stream_join, concat_ends_with_the_first_error_and_never_begins_the_rest) {
  probe a{.items = {1}, .fails_behind = 1}, b{.items = {2}};
  auto s = weir::concat(feed(a), feed(b));
  (void)co_await pull_one(s);
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 7);
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
  EXPECT_EQ(b.entered, 0);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, merge_gives_every_item_of_all_when_it_comes) {
  probe a, b, c;
  auto s = weir::merge(timed_items({{2ms, 1}, {3ms, 2}}, a), timed_items({{3ms, 10}}, b),
                       timed_items({{1ms, 100}, {3ms, 101}}, c));
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{100, 1, 10, 101, 2}));
  EXPECT_EQ(a.left + b.left + c.left, 3);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, merge_loses_nothing_if_pulls_are_given_up) {
  probe a, b;
  auto s = weir::merge(timed_items({{2ms, 1}, {2ms, 2}, {2ms, 3}}, a),
                       timed_items({{2ms, 4}, {3ms, 5}}, b));
  int given_up = 0;
  auto all = co_await pull_all_impatiently(s, 700us, given_up);
  EXPECT_EQ(sorted(all), from_to(1, 5));
}

FIBER_TEST(stream_join, merge_keeps_nobody_out_for_one_that_is_always_ready) {
  auto s = weir::merge(weir::iota(0), weir::iota(1000)) | weir::take(6);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{0, 1000, 1, 1001, 2, 1002}));
}
FIBER_TEST_IN_EVERY_ORDER(stream_join,
                          the_first_error_of_a_merge_comes_when_the_others_are_closed) {
  text_log log;
  probe p{.items = {1, 2}, .pause = 1h};
  auto s = weir::merge(feed(p) | cleanup_in_a_scope(log, "other"), fails_after_ms(3));
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 3);
  EXPECT_EQ(p.left, 1);
  EXPECT_EQ(joined(log), "other");
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, two_errors_of_a_merge_in_one_moment_are_one_error) {
  auto s = weir::merge(fails_after_ms(3), fails_after_ms(3));
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 3);
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, zip_pairs_items_and_ends_with_the_shorter_one) {
  probe a{.items = {1, 2, 3}}, b{.items = {10, 20}, .pause = 2ms};
  auto s = weir::zip(feed_slowly(a), feed(b));
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (pairs{{1, 10}, {2, 20}}));
  EXPECT_EQ(a.left + b.left, 2);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, zip_keeps_half_of_a_pair_when_a_pull_is_given_up) {
  probe a, b;
  auto s = weir::zip(timed_items({{1ms, 1}, {1ms, 2}}, a), timed_items({{5ms, 10}, {5ms, 20}}, b));
  int given_up = 0;
  auto all = co_await pull_all_impatiently(s, 2ms, given_up);
  EXPECT_EQ(all, (pairs{{1, 10}, {2, 20}}));
  EXPECT_GE(given_up, 2);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, combine_latest_tells_each_change_once_there_is_one_of_each) {
  probe a, b;
  auto s = weir::combine_latest(timed_items({{1ms, 1}, {2ms, 2}, {4ms, 3}}, a),
                                timed_items({{2ms, 10}, {3ms, 20}}, b));
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (pairs{{1, 10}, {2, 10}, {2, 20}, {3, 20}}));
  EXPECT_EQ(a.left + b.left, 2);
}

FIBER_TEST(stream_join, combine_latest_ends_when_one_ends_without_an_item) {
  text_log log;
  auto s = weir::combine_latest(weir::never<int>() | cleanup_in_a_scope(log, "never"),
                                weir::empty<int>());
  auto end = co_await s.next();
  EXPECT_FALSE(end.has_value());
  EXPECT_EQ(joined(log), "never");
}

FIBER_TEST(stream_join, combine_latest_keeps_nobody_out_for_one_that_is_always_ready) {
  auto s = weir::combine_latest(weir::iota(0), weir::iota(100, 103)) | weir::take(4);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (pairs{{0, 100}, {1, 100}, {1, 101}, {2, 101}}));
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, the_stream_that_is_first_wins_and_the_others_are_closed) {
  text_log log;
  probe a, b;
  auto s =
      weir::race_streams(timed_items({{2ms, 1}, {9ms, 2}}, a) | cleanup_in_a_scope(log, "loser"),
                         timed_items({{1ms, 10}, {1ms, 20}}, b));
  int ten = co_await pull_one(s);
  EXPECT_EQ(ten, 10);
  EXPECT_EQ(joined(log), "loser");
  auto rest = co_await pull_all(s);
  EXPECT_EQ(rest, numbers{20});
  EXPECT_EQ(a.given, 0);
  EXPECT_EQ(a.left + b.left, 2);
}

// What the winner still has under way must not disturb the cleanup of a loser.
FIBER_TEST_IN_EVERY_ORDER(stream_join,
                          a_loser_is_closed_completely_also_if_the_winner_goes_on_meanwhile) {
  text_log log;
  probe a, b;
  auto s = weir::race_streams(weir::merge(timed_items({{1ms, 1}}, a), timed_items({{4ms, 2}}, b)),
                              weir::never<int>() | cleanup_in_a_scope(log, "loser"));
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{1, 2}));
  EXPECT_EQ(joined(log), "loser");
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, a_stream_that_ends_or_fails_first_wins_too) {
  probe p{.items = {1}, .pause = 1h};
  auto ends = weir::race_streams(feed(p), weir::empty<int>());
  int end = co_await pull_one(ends);
  EXPECT_EQ(end, -1);
  auto fails = weir::race_streams(feed(p), fails_after_ms(2));
  auto error = co_await pull_error(fails);
  EXPECT_EQ(boom_of(error), 2);
  EXPECT_EQ(p.entered, p.left);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join,
                          with_latest_from_pairs_each_item_with_the_latest_of_the_other) {
  probe a, b;
  auto s = timed_items({{1ms, 1}, {2ms, 2}, {3ms, 3}, {6ms, 4}}, a) |
           weir::with_latest_from(timed_items({{2ms, 10}, {3ms, 20}, {2ms, 30}}, b));
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (pairs{{2, 10}, {3, 20}, {4, 30}}));
  EXPECT_EQ(a.left + b.left, 2);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join,
                          an_error_of_the_other_stream_is_an_error_of_with_latest_from) {
  probe p{.items = {1, 2, 3}, .pause = 2ms};
  auto s = feed(p) | weir::with_latest_from(fails_after_ms(3));
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 3);
  EXPECT_EQ(p.left, 1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, take_until_ends_with_its_operation_and_closes_the_source) {
  probe p{.items = from_to(1, 9), .pause = 2ms};
  auto s = feed(p) | weir::take_until(after(5ms, 0));
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{1, 2}));
  EXPECT_EQ(p.left, 1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, the_error_of_the_operation_of_take_until_is_the_streams) {
  probe p{.items = from_to(1, 9), .pause = 2ms};
  auto s = feed(p) | weir::take_until(fails_after(3ms, 4));
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 4);
  EXPECT_EQ(p.left, 1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_join, take_until_loses_nothing_if_pulls_are_given_up) {
  weir::event stop;
  probe p{.items = from_to(1, 4), .pause = 2ms};
  auto s = feed(p) | weir::take_until(stop.wait());
  int given_up = 0;
  auto all = co_await pull_all_impatiently(s, 500us, given_up);
  EXPECT_EQ(all, from_to(1, 4));
  auto t = feed(p) | weir::take_until(stop.wait());
  stop.set();
  const int given = p.given;
  int end = co_await pull_one(t);
  EXPECT_EQ(end, -1);
  EXPECT_EQ(p.given, given);
}

// A deadlock over several streams says what each of them waits for.
TEST(stream_join, a_deadlock_names_every_source_that_is_waited_for) {
  weir::queue<int> a(1, {.name = "a"}), b(1, {.name = "b"}), c(1, {.name = "c"});
  const auto deadlock_of = [](auto make) {
    const auto error = thrown_by([&] {
      weir::sim::run({}, [&]() -> task<> {
        auto s = make();
        (void)co_await s.next();
      });
    });
    EXPECT_EQ(code_of(error), errc::deadlock);
    return what_of(error);
  };
  const auto names = [](const std::string& text) {
    std::string found;
    for (const char* name : {"'a'", "'b'", "'c'"})
      if (contains(text, name)) found += name;
    return found;
  };
  EXPECT_EQ(names(deadlock_of([&] { return weir::merge(a.stream(), b.stream(), c.stream()); })),
            "'a''b''c'");
  EXPECT_EQ(names(deadlock_of([&] { return weir::zip(weir::once(1), b.stream(), c.stream()); })),
            "'b''c'");
  EXPECT_EQ(
      names(deadlock_of([&] { return weir::concat(weir::empty<int>(), b.stream(), c.stream()); })),
      "'b'");
  EXPECT_EQ(names(deadlock_of([&] { return weir::combine_latest(a.stream(), b.stream()); })),
            "'a''b'");
  EXPECT_EQ(names(deadlock_of([&] { return a.stream() | weir::with_latest_from(b.stream()); })),
            "'a''b'");
  EXPECT_EQ(names(deadlock_of([&] { return a.stream() | weir::take_until(b.next()); })), "'a''b'");
  EXPECT_EQ(names(deadlock_of([&] {
              return a.stream() | weir::switch_map([](int n) { return weir::once(n); });
            })),
            "'a'");
}
