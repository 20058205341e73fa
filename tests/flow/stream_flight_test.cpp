// SPDX-License-Identifier: MIT
// What a generator awaits when a pull ends with a value. Keeps of the page: "What a generator may
// await does not depend on what is stacked above it. After a value, a wait that cannot be withdrawn
// stays in flight, and the next pull attaches to it; if the stream is closed or destroyed meanwhile
// it is cancelled at once, and the scope of the pull joins what is left of it; only cancelling a
// pending next() interrupts it, and stream_interrupted then names the generator, the line of its
// await and what it awaited."
#include "stream_support.hpp"

using namespace weir_test;

namespace {

constexpr int line_of_await = __LINE__ + 4;
/// Awaits what cannot be paused: a task under a time limit.
weir::stream<int> answers(int count, weir::duration each) {
  for (int i = 0; i < count; ++i) {
    int v = co_await weir::with_timeout(1h, after(each, i));
    co_yield v;
  }
}

/// The same inside a scope with a child.
weir::stream<int> scoped_answers(int count, weir::duration each) {
  for (int i = 0; i < count; ++i) {
    int v = co_await weir::with_scope([&](weir::scope& s) -> task<int> {
      auto child = s.spawn(after(each, i));
      co_return co_await child;
    });
    co_yield v;
  }
}

/// The same by a callback that cannot be called off.
weir::stream<int> called_back(held<int>& asked, int count) {
  for (int i = 0; i < count; ++i) {
    int v = co_await asked_it_says<int>(weir::cancel_result::no, asked);
    co_yield v;
  }
}

/// One such answer; the log tells when the generator has ended.
weir::stream<int> noted_answer(text_log& log) {
  const end_note left(log, "generator");
  int v = co_await weir::with_timeout(1h, after(50ms, 1));
  co_yield v;
}

/// Waits in a scope that takes `d` to clean up, at the end of which `last()` is called.
template <class F>
weir::stream<int> cleaning_up(text_log& log, weir::duration d, F& last) {
  const end_note left(log, "generator");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.defer([&]() -> task<> {
      co_await weir::sleep(d);
      last();
    });
    co_await weir::sleep(1h);
  });
  co_yield 1;
}

weir::stream<int> ticks(int count, weir::duration each) {
  for (int i = 0; i < count; ++i) {
    co_await weir::sleep(each);
    co_yield 100 + i;
  }
}

template <class V>
numbers flat(const std::vector<V>& all) {
  numbers values;
  for (const V& one : all) {
    if constexpr (std::is_same_v<V, int>) {
      values.push_back(one);
    } else if constexpr (requires { one.size(); }) {
      values.insert(values.end(), one.begin(), one.end());
    } else {
      values.push_back(std::get<0>(one) * 1000 + std::get<1>(one));
    }
  }
  return values;
}

/// Pull by pull, with pauses, it gives what a sink gives.
template <class Make>
void is_the_same_pull_by_pull(Make make) {
  in_every_order([&]() -> task<> {
    const auto whole = co_await (make() | weir::to_vector());
    auto s = make();
    const auto all = co_await pull_all(s);
    EXPECT_EQ(flat(all), flat(whole));
    EXPECT_FALSE(all.empty());
  });
}

}  // namespace

TEST(stream_flight, every_stage_gives_pull_by_pull_what_its_sink_gives) {
  is_the_same_pull_by_pull([] { return weir::merge(answers(3, 5ms), ticks(6, 1900us)); });
  is_the_same_pull_by_pull([] { return weir::merge(scoped_answers(3, 5ms), ticks(6, 1900us)); });
  is_the_same_pull_by_pull([] { return weir::combine_latest(answers(3, 5ms), ticks(6, 1900us)); });
  is_the_same_pull_by_pull(
      [] { return ticks(6, 1900us) | weir::with_latest_from(answers(3, 3ms)); });
  is_the_same_pull_by_pull([] { return answers(5, 3ms) | weir::chunks(3, 4ms); });
  is_the_same_pull_by_pull([] { return ticks(4, 2ms) | weir::take_until(after(7ms, 1)); });
  is_the_same_pull_by_pull([] { return weir::zip(answers(3, 5ms), ticks(3, 2ms)); });
  is_the_same_pull_by_pull([] { return weir::race_streams(answers(3, 5ms), ticks(3, 2ms)); });
  is_the_same_pull_by_pull(
      [] { return ticks(2, 10ms) | weir::switch_map([](int) { return answers(3, 3ms); }); });
  is_the_same_pull_by_pull([] { return answers(5, 3ms) | weir::ready_chunks(3); });
  is_the_same_pull_by_pull(
      [] { return weir::any_stream<int>(weir::merge(answers(3, 5ms), ticks(6, 1900us))); });
}

TEST(stream_flight, a_generator_around_one_in_flight_goes_on_with_it) {
  auto outer = [](int depth, auto& self) -> weir::stream<int> {
    auto inner = weir::merge(answers(3, 5ms), ticks(3, 1900us));
    if (depth == 0) {
      for (;;) {
        auto v = co_await inner.next();
        if (!v) co_return;
        co_yield *v;
      }
    }
    auto below = self(depth - 1, self);
    for (;;) {
      auto v = co_await below.next();
      if (!v) co_return;
      co_yield *v + 1000;
    }
  };
  is_the_same_pull_by_pull([&] { return weir::merge(outer(2, outer), ticks(9, 1300us)); });
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight,
                          what_is_in_flight_goes_on_while_nobody_pulls_and_its_value_waits) {
  auto s = weir::merge(answers(2, 5ms), ticks(1, 1ms));
  int first = co_await pull_one(s);
  EXPECT_EQ(first, 100);
  co_await weir::sleep(100ms);
  const auto start = weir::now();
  int second = co_await pull_one(s);
  EXPECT_EQ(second, 0);
  EXPECT_EQ(ms_since(start), 0);
  int third = co_await pull_one(s);  // it had not begun with the next one
  EXPECT_EQ(third, 1);
  EXPECT_EQ(ms_since(start), 5);
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight,
                          destroyed_it_is_cancelled_at_once_and_joined_by_the_scope_of_the_pull) {
  text_log log;
  const auto cleaned = [&] { log.push_back("defer"); };
  const auto make = [&] { return cleaning_up(log, 3ms, cleaned); };
  const auto start = weir::now();
  co_await weir::with_scope([&](weir::scope&) -> task<> {
    {
      auto s = weir::merge(make(), ticks(1, 1ms));
      (void)co_await s.next();
    }
    EXPECT_EQ(ms_since(start), 1);  // a destructor never blocks
    EXPECT_EQ(joined(log), "");
    log.push_back("body");
  });
  EXPECT_EQ(joined(log), "body,defer,generator");
  EXPECT_EQ(ms_since(start), 4);
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight, close_waits_for_what_is_in_flight) {
  text_log log;
  auto s = weir::merge(with_a_child(log), ticks(1, 1ms));
  (void)co_await s.next();
  EXPECT_EQ(joined(log), "");
  co_await s.close();
  EXPECT_EQ(joined(log), "child,generator");
  EXPECT_EQ(co_await pull_one(s), -1);
  log.clear();
  auto two = weir::merge(with_a_child(log), ticks(3, 1ms)) | weir::take(2);
  auto taken = co_await (std::move(two) | weir::to_vector());
  EXPECT_EQ(taken.size(), 2U);
  EXPECT_EQ(joined(log), "child,generator");
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight,
                          a_wait_that_confirms_at_once_is_destroyed_with_the_stream) {
  text_log log;
  held<int> asked;
  auto make = [&]() -> weir::stream<int> {
    const end_note left(log, "generator");
    int v = co_await asked_it_says<int>(weir::cancel_result::done, asked);
    co_yield v;
  };
  {
    auto s = weir::merge(make(), ticks(1, 1ms));
    (void)co_await s.next();
    EXPECT_EQ(asked.size(), 1U);
  }
  EXPECT_EQ(joined(log), "generator");
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight, one_that_refuses_to_be_cancelled_is_joined_by_the_scope) {
  held<int> asked;
  long items = 0;
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    auto s = std::make_unique<decltype(weir::merge(called_back(asked, 2), ticks(1, 1ms)))>(
        weir::merge(called_back(asked, 2), ticks(1, 1ms)));
    while (auto v = co_await s->next()) {
      ++items;
      if (*v >= 100) break;
    }
    s.reset();
    scope.spawn([&]() -> task<> {
      co_await weir::sleep(2ms);
      asked.back().complete(1);
    });
  });
  EXPECT_EQ(items, 1);
  EXPECT_EQ(asked.size(), 1U);
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight,
                          the_end_of_the_scope_of_the_pull_interrupts_it_and_the_error_says_where) {
  auto s = weir::merge(answers(2, 5ms), ticks(1, 1ms));
  co_await weir::with_scope([&](weir::scope&) -> task<> { (void)co_await s.next(); });
  const auto error = co_await pull_error(s);
  EXPECT_EQ(code_of(error), errc::stream_interrupted) << what_of(error);
  EXPECT_TRUE(contains(what_of(error), "answers")) << what_of(error);
  EXPECT_TRUE(contains(what_of(error), at_line(line_of_await))) << what_of(error);
  EXPECT_TRUE(contains(what_of(error), "sleep")) << what_of(error);
  EXPECT_EQ(co_await pull_one(s), -1);
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight,
                          only_a_cancelled_next_interrupts_and_says_what_was_awaited) {
  auto s = weir::merge(answers(3, 5ms), ticks(1, 1ms));
  EXPECT_EQ(co_await pull_one(s), 100);
  EXPECT_EQ(co_await pull_one(s), 0);
  auto error = co_await error_of(weir::with_timeout(2ms, s.next()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  error = co_await pull_error(s);
  EXPECT_EQ(code_of(error), errc::stream_interrupted);
  EXPECT_TRUE(contains(what_of(error), "answers")) << what_of(error);
  EXPECT_TRUE(contains(what_of(error), at_line(line_of_await))) << what_of(error);
  EXPECT_TRUE(contains(what_of(error), "sleep")) << what_of(error);
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight,
                          a_pull_that_attached_to_it_and_is_cancelled_interrupts_it) {
  text_log log;
  auto s = weir::merge(noted_answer(log), ticks(1, 1ms));
  EXPECT_EQ(co_await pull_one(s), 100);
  (void)co_await error_of(weir::with_timeout(2ms, s.next()));
  EXPECT_EQ(joined(log), "generator");  // nothing is in flight after a cancelled next()
  EXPECT_EQ(code_of(co_await pull_error(s)), errc::stream_interrupted);
}

// Each pull in a fiber, a region or a time limit of its own; the consumer may be gone in between.
FIBER_TEST_IN_EVERY_ORDER(stream_flight, the_next_pull_may_come_from_another_fiber_or_region) {
  auto s = weir::merge(answers(4, 5ms), ticks(8, 2ms));
  numbers all;
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    for (int i = 0; i < 3; ++i) {
      auto one = co_await weir::with_timeout(1h, pull_one(s));
      all.push_back(one);
      auto two = co_await scope.spawn(pull_one(s));
      all.push_back(two);
      auto three = co_await weir::settle(pull_one(s));
      all.push_back(three.value());
      auto four = co_await weir::race(pull_one(s), after(1h, -7));
      all.push_back(four);
    }
    EXPECT_EQ(co_await pull_one(s), -1);
  });
  EXPECT_EQ(sorted(all), (numbers{0, 1, 2, 3, 100, 101, 102, 103, 104, 105, 106, 107}));
}

TEST(stream_flight, a_local_around_the_pull_outlives_what_uses_it) {
  static weir::local<int> key{7};
  in_every_order([]() -> task<> {
    numbers seen;
    text_log log;
    const auto look = [&] { seen.push_back(key.get()); };
    auto s = weir::merge(cleaning_up(log, 1ms, look), ticks(1, 1ms));
    EXPECT_EQ(co_await weir::with_local(key, 8, pull_one(s)), 100);
    EXPECT_EQ(seen, numbers{8});
    EXPECT_EQ(code_of(co_await pull_error(s)), errc::stream_interrupted);
  });
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight, a_cancelled_consumer_takes_it_along_between_two_pulls) {
  text_log log;
  co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
    auto consumer = s.spawn([&]() -> task<> {
      auto both = weir::merge(noted_answer(log), ticks(1, 1ms));
      (void)co_await both.next();
      co_await weir::sleep(1h);
    });
    co_await weir::sleep(2ms);
    EXPECT_EQ(joined(log), "");
    consumer.cancel();
    co_await s.idle();
  });
  EXPECT_EQ(joined(log), "generator");
}

FIBER_TEST_IN_EVERY_ORDER(stream_flight,
                          a_service_keeps_what_its_stream_has_in_flight_until_it_ends) {
  numbers all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.background([&]() -> task<> {
      auto both = weir::merge(answers(3, 5ms), ticks(6, 1900us));
      all = co_await pull_all(both);
    });
    s.defer([&]() -> task<> { co_await weir::sleep(50ms); });
    co_await weir::sleep(3ms);
  });
  EXPECT_EQ(sorted(all), (numbers{0, 1, 2, 100, 101, 102, 103, 104, 105}));
}

TEST(stream_flight, a_dump_shows_what_is_in_flight) {
  weir::sim::run({}, []() -> task<> {
    auto s = weir::merge(answers(1, 5ms), ticks(1, 1ms));
    (void)co_await s.next();
    const std::string text = dump_text();
    EXPECT_TRUE(contains(text, "service 'stream'")) << text;
    EXPECT_TRUE(contains(text, at_line(line_of_await))) << text;
    EXPECT_TRUE(contains(text, "waits on sleep")) << text;
  });
}

TEST(stream_flight, a_deadlock_names_what_is_in_flight) {
  weir::event never;
  const auto error = thrown_by([&] {
    weir::sim::run({}, [&]() -> task<> {
      auto make = [&]() -> weir::stream<int> {
        co_await weir::with_scope([&](weir::scope&) -> task<> { co_await never.wait(); });
        co_yield 1;
      };
      auto s = weir::merge(make(), ticks(1, 1ms));
      (void)co_await s.next();
      (void)co_await s.next();
    });
  });
  EXPECT_EQ(code_of(error), errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "service 'stream'")) << what_of(error);
}
