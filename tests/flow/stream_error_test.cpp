// SPDX-License-Identifier: MIT
// What streams do about errors and at their end: catch_with, retry_stream, finally.
#include "stream_support.hpp"

using namespace weir_test;

namespace {

using any_ints = weir::any_stream<int>;

constexpr weir::retry_options three_attempts{
    .attempts = 3, .base = 10ms, .factor = 2, .jitter = weir::jitter::none};

/// A cleanup that takes 10 ms, in a scope of its own if `scoped`.
auto cleanup_in_two_steps(text_log& log, bool scoped = false) {
  return weir::finally([&log, scoped]() -> task<> {
    log.push_back("begins");
    if (scoped) {
      co_await weir::with_scope([](weir::scope& s) -> task<> {
        s.spawn(sleep_for(10ms));
        co_return;
      });
    } else {
      co_await weir::sleep(10ms);
    }
    log.push_back("ends");
  });
}

}  // namespace

FIBER_TEST(stream_error, catch_with_goes_on_with_another_stream) {
  probe p{.items = {1, 2, 3}, .pause = 1ms, .fails_behind = 2}, q{.items = {8, 9}, .pause = 1ms};
  int seen = 0;
  auto s = feed(p) | weir::catch_with([&](std::exception_ptr error) {
             seen = boom_of(error);
             EXPECT_EQ(p.left, 1);  // closed before
             return feed(q);
           });
  int given_up = 0;
  auto all = co_await pull_all_impatiently(s, 600us, given_up);
  EXPECT_EQ(all, (numbers{1, 2, 8, 9}));
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(q.left, 1);
}

FIBER_TEST(stream_error, errors_of_the_second_stream_and_of_the_handler_are_not_caught_again) {
  probe p{.items = {}, .fails_behind = 0};
  int calls = 0;
  auto s = feed(p) | weir::catch_with([&](std::exception_ptr) {
             ++calls;
             return feed(p);
           });
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 7);
  EXPECT_EQ(calls, 1);
  auto throws = [](std::exception_ptr) -> any_ints { throw boom(8); };
  auto t = feed(p) | weir::catch_with(throws);
  error = co_await pull_error(t);
  EXPECT_EQ(boom_of(error), 8);
  int end = co_await pull_one(t);
  EXPECT_EQ(end, -1);
  EXPECT_EQ(p.entered, p.left);
}

FIBER_TEST(stream_error, retry_stream_makes_the_stream_anew_after_growing_pauses) {
  const auto start = weir::now();
  int made = 0;
  auto s = weir::retry_stream(
      [&]() -> weir::stream<int> {
        if (++made < 3) throw boom(made);
        co_yield made;
      },
      three_attempts);
  int got = co_await pull_one(s);
  EXPECT_EQ(got, 3);
  EXPECT_EQ(ms_since(start), 30);  // 10 and 20
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST(stream_error, retry_stream_gives_up_with_the_last_error_and_is_then_empty) {
  int made = 0;
  auto s = weir::retry_stream([&]() -> any_ints { throw boom(++made); }, three_attempts);
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 3);
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
  EXPECT_EQ(made, 3);
}

FIBER_TEST(stream_error, an_item_resets_the_count_of_retry_stream) {
  int made = 0;
  auto flaky = [&]() -> weir::stream<int> {
    if (++made % 2 == 1 && made < 10) throw boom(made);
    co_yield made;
    if (made < 10) throw boom(made);
  };
  auto s = weir::retry_stream(flaky, three_attempts);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{2, 4, 6, 8, 10}));
}

// "a delivered item resets the count unless `.reset_on_item = false`"
FIBER_TEST_IN_EVERY_ORDER(stream_error, without_reset_on_item_retry_stream_counts_all_attempts) {
  int made = 0;
  auto flaky = [&]() -> weir::stream<int> {
    co_yield ++made;
    throw boom(made);
  };
  auto counted = weir::retry_stream(
      flaky, {.attempts = 3, .base = 1ms, .jitter = weir::jitter::none, .reset_on_item = false});
  numbers seen;
  const std::exception_ptr error =
      co_await attempt([&]() -> task<> { co_await take_all(counted, seen); });
  EXPECT_EQ(seen, (numbers{1, 2, 3}));
  EXPECT_EQ(boom_of(error), 3);
}

// "`.when` as in `retry`"
FIBER_TEST_IN_EVERY_ORDER(stream_error,
                          retry_stream_asks_its_predicate_what_is_worth_another_attempt) {
  int made = 0;
  int asked = 0;
  auto flaky = [&]() -> weir::stream<int> {
    if (++made < 5) throw boom(made);
    co_yield made;
  };
  auto twice = [&](const std::exception_ptr& error) {
    ++asked;
    return boom_of(error) < 2;
  };
  auto some = weir::retry_stream(flaky, {.attempts = 9, .base = 1ms}).when(twice);
  const std::exception_ptr error = co_await attempt([&] { return some.next(); });
  EXPECT_EQ(boom_of(error), 2);
  EXPECT_EQ(asked, 2);
  made = 0;
  const auto start = weir::now();
  auto after = [](const std::exception_ptr&) { return weir::retry_decision::retry_after(7ms); };
  auto all = co_await (weir::retry_stream(flaky, {.attempts = 9}).when(after) |
                       weir::map([](int n) { return n * 2; }) | weir::to_vector());
  EXPECT_EQ(all, numbers{10});
  EXPECT_EQ(ms_since(start), 28);
}

FIBER_TEST_IN_EVERY_ORDER(stream_error,
                          retry_stream_keeps_the_time_of_its_pause_if_a_pull_is_given_up) {
  const auto start = weir::now();
  int made = 0;
  auto s = weir::retry_stream(
      [&]() -> weir::stream<int> {
        if (++made < 3) throw boom(made);
        co_yield made;
      },
      three_attempts);
  int given_up = 0;
  auto all = co_await pull_all_impatiently(s, 3ms, given_up);
  EXPECT_EQ(all, numbers{3});
  EXPECT_EQ(ms_since(start), 30);
  EXPECT_GE(given_up, 8);
}

FIBER_TEST(stream_error, finally_runs_once_after_the_end_an_error_and_a_close) {
  for (const int fails_behind : {-1, 1}) {
    probe p{.items = {1, 2}, .fails_behind = fails_behind};
    int cleanups = 0;
    auto s = feed(p) | weir::finally([&] {
               EXPECT_EQ(p.left, 1);  // after everything below it
               ++cleanups;
             });
    try {
      (void)co_await pull_all(s);
    } catch (const boom&) {
      EXPECT_EQ(cleanups, 1);
    }
    co_await s.close();
    EXPECT_EQ(cleanups, 1);
  }
  probe p{.items = {1, 2}};
  int cleanups = 0;
  auto s = feed(p) | weir::finally([&] { ++cleanups; });
  (void)co_await pull_one(s);
  co_await s.close();
  co_await s.close();
  EXPECT_EQ(cleanups, 1);
}

FIBER_TEST(stream_error, finally_does_not_run_if_nothing_was_ever_pulled) {
  int cleanups = 0;
  {
    auto unused = weir::iota(0) | weir::finally([&] { ++cleanups; });
    auto closed = weir::iota(0) | weir::finally([&] { ++cleanups; });
    co_await closed.close();
  }
  EXPECT_EQ(cleanups, 0);
}

FIBER_TEST(stream_error, a_plain_cleanup_runs_when_the_stream_is_only_destroyed) {
  const event_count skipped("cleanup_skipped");
  text_log log;
  {
    auto s = weir::iota(0) | weir::finally([&] { log.push_back("inner"); }) |
             weir::map([](int n) { return n; }) | weir::finally([&] { log.push_back("outer"); });
    (void)co_await pull_one(s);
  }
  EXPECT_EQ(joined(log), "inner,outer");
  EXPECT_EQ(skipped.get(), 0);
}

FIBER_TEST(stream_error,
           a_cleanup_that_awaits_is_skipped_and_told_if_the_stream_is_only_destroyed) {
  const event_count skipped("cleanup_skipped");
  text_log log;
  {
    auto s = weir::iota(0) | cleanup_in_two_steps(log);
    (void)co_await pull_one(s);
  }
  EXPECT_EQ(joined(log), "");
  EXPECT_EQ(skipped.get(), 1);
}

FIBER_TEST(stream_error, a_cleanup_that_was_begun_and_is_cut_off_is_told_too) {
  const event_count skipped("cleanup_skipped");
  text_log log;
  {
    auto s = weir::iota(0, 1) | cleanup_in_two_steps(log);
    (void)co_await pull_one(s);
    (void)co_await error_of(weir::with_timeout(5ms, s.next()));
  }
  EXPECT_EQ(joined(log), "begins");
  EXPECT_EQ(skipped.get(), 1);
}

FIBER_TEST(stream_error, next_close_and_sinks_await_the_cleanup) {
  for (const bool scoped : {false, true}) {
    text_log log;
    auto ended = weir::iota(0, 1) | cleanup_in_two_steps(log, scoped);
    (void)co_await pull_all(ended);
    EXPECT_EQ(joined(log), "begins,ends");
    auto closed = weir::iota(0) | cleanup_in_two_steps(log, scoped);
    (void)co_await pull_one(closed);
    co_await closed.close();
    EXPECT_EQ(log.size(), 4U);
    (void)co_await (weir::iota(0) | cleanup_in_two_steps(log, scoped) | weir::first());
    EXPECT_EQ(log.size(), 6U);
    auto taken = weir::iota(0) | cleanup_in_two_steps(log, scoped) | weir::take(1);
    (void)co_await pull_all(taken);
    EXPECT_EQ(log.size(), 8U);
  }
}

TEST(stream_error, a_cleanup_that_a_pull_was_given_up_in_goes_on_with_the_next_pull_or_close) {
  for (const bool closes : {true, false}) {
    in_every_order([closes]() -> task<> {
      text_log log;
      const auto start = weir::now();
      auto s = weir::iota(0) | cleanup_in_two_steps(log) | weir::take(1);
      (void)co_await pull_one(s);
      (void)co_await error_of(weir::with_timeout(5ms, s.next()));
      EXPECT_EQ(joined(log), "begins");
      if (closes) co_await s.close();
      int end = co_await pull_one(s);
      EXPECT_EQ(end, -1);
      EXPECT_EQ(joined(log), "begins,ends");
      EXPECT_EQ(ms_since(start), 10);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(stream_error,
                          a_cleanup_in_a_scope_is_not_cut_off_by_a_pull_that_is_given_up) {
  text_log log;
  auto s = weir::iota(0) | cleanup_in_two_steps(log, true) | weir::take(1);
  (void)co_await pull_one(s);
  (void)co_await error_of(weir::with_timeout(5ms, s.next()));
  auto error = co_await pull_error(s);
  EXPECT_EQ(error, nullptr) << what_of(error);
  EXPECT_EQ(joined(log), "begins,ends");
}

TEST(stream_error, a_sink_that_is_cancelled_awaits_the_whole_cleanup) {
  for (const bool scoped : {false, true}) {
    for (const int moment : {1, 5}) {  // before the end, and in the cleanup at the end
      in_every_order([=]() -> task<> {
        text_log log;
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          probe p{.items = {1}, .pause = 1ms};
          auto child = s.spawn(feed(p) | cleanup_in_two_steps(log, scoped) | weir::to_vector());
          co_await weir::sleep(moment * 1ms + 500us);
          child.cancel();
          co_await s.idle();
        });
        EXPECT_EQ(joined(log), "begins,ends");
      });
    }
  }
}

FIBER_TEST(stream_error, an_error_of_the_cleanup_counts_only_if_there_is_no_other) {
  auto fails = [] { return weir::finally([]() -> task<> { co_await fails_after(1ms, 9); }); };
  auto ends = weir::iota(0, 1) | fails();
  (void)co_await pull_one(ends);
  auto error = co_await pull_error(ends);
  EXPECT_EQ(boom_of(error), 9);
  int end = co_await pull_one(ends);
  EXPECT_EQ(end, -1);
  const event_count suppressed("suppressed");
  probe p{.items = {}, .fails_behind = 0};
  auto both = feed(p) | fails();
  error = co_await pull_error(both);
  EXPECT_EQ(boom_of(error), 7);
  EXPECT_EQ(suppressed.get(), 1);
  auto closed = weir::iota(0) | fails();
  (void)co_await pull_one(closed);
  error = co_await error_of(closed.close());
  EXPECT_EQ(boom_of(error), 9);
}

FIBER_TEST_IN_EVERY_ORDER(stream_error, two_closes_at_once_and_a_next_meanwhile_all_end) {
  text_log log;
  auto s = weir::iota(0) | cleanup_in_two_steps(log);
  (void)co_await pull_one(s);
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    scope.spawn(s.close());
    co_await weir::sleep(1ms);
    scope.spawn(s.close());
    int end = co_await pull_one(s);
    EXPECT_EQ(end, -1);
  });
  EXPECT_EQ(joined(log), "begins,ends");
}

namespace {

/// Both begin in the same turn; the close may lose its turn before it has begun to wait.
template <class Stream>
task<> close_beside_a_next(Stream s, int awaits_before) {
  weir::event set;
  set.set();
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    auto closes = [&]() -> task<> {
      for (int i = 0; i < awaits_before; ++i) co_await set.wait();
      co_await s.close();
    };
    scope.spawn(closes);
    auto pending = scope.spawn(pull_one(s));
    int end = co_await pending;
    EXPECT_EQ(end, -1);
  });
}

}  // namespace

// "close() ends it early and awaits its cleanup. A next() that is pending returns empty."
FIBER_TEST_IN_EVERY_ORDER(stream_error,
                          a_next_that_begins_before_a_close_has_its_turn_is_ended_too) {
  co_await close_beside_a_next(weir::never<int>(), 0);
  co_await close_beside_a_next(weir::merge(weir::never<int>(), weir::never<int>()), 0);
  text_log log;
  co_await close_beside_a_next(weir::never<int>() | cleanup_in_two_steps(log), 0);
}

FIBER_TEST(stream_error, a_close_whose_turn_is_used_up_ends_a_next_that_began_meanwhile) {
  for (int awaits = 0; awaits < 600; ++awaits)
    co_await close_beside_a_next(weir::never<int>(), awaits);
}

FIBER_TEST_IN_EVERY_ORDER(stream_error, two_closes_under_a_next_that_takes_its_time_to_end) {
  held<int> answers;
  auto make = [&]() -> weir::stream<int> {
    int v = co_await asked_it_says<int>(weir::cancel_result::later, answers);
    co_yield v;
  };
  auto s = make();
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    auto pending = scope.spawn(pull_one(s));
    co_await weir::sleep(1ms);
    scope.spawn(s.close());
    scope.spawn(s.close());
    co_await weir::sleep(1ms);
    answers.front().complete(1);
    int end = co_await pending;
    EXPECT_EQ(end, -1);
  });
}

// "Events carry the error": also that of a generator which was interrupted before.
FIBER_TEST(stream_error, the_error_of_an_interrupted_generator_is_in_the_event) {
  std::exception_ptr told;
  const auto observer = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "suppressed" && e.object == "stream") told = e.error;
  });
  auto fails = []() -> weir::stream<int> {
    const int v = co_await weir::shield(after(5ms, 1));
    if (v == 1) throw boom(3);
    co_yield v;
  };
  auto st = fails();
  (void)co_await error_of(weir::with_timeout(1ms, st.next()));
  EXPECT_EQ(boom_of(told), 3);
}
