// SPDX-License-Identifier: MIT
// buffer, conflate, sample, debounce, delay, throttle, timeout_each: what they drop, when they
// give, and what they do at the end.
#include <memory>
#include <optional>
#include <string>

#include "stream_async_support.hpp"

using namespace weir_test;
using weir::overflow;

namespace {

/// One item at each of these milliseconds from the first pull on: 1, 2, ...
weir::stream<int> items_at(std::vector<int> times, int fails_after_last = 0) {
  const weir::time_point start = weir::now();
  int i = 0;
  for (const int ms : times) {
    co_await weir::sleep_until(start + ms * 1ms);
    co_yield ++i;
  }
  if (fails_after_last != 0) throw boom(fails_after_last);
}

/// What a stream gives and when: "1@10 2@20 end@20".
task<std::string> story_of(int_stream s) {
  const weir::time_point start = weir::now();
  std::string all;
  for (;;) {
    auto v = co_await s.next();
    all += (v ? std::to_string(*v) : "end") + "@" + std::to_string(ms_since(start));
    if (!v) co_return all;
    all += ' ';
  }
}

/// What a stream gives and how it ends: "1 2 end" or "1 2 boom 7".
task<std::string> told(int_stream s) {
  std::string all;
  std::exception_ptr error;
  try {
    for (;;) {
      auto v = co_await s.next();
      if (!v) break;
      all += std::to_string(*v) + " ";
    }
  } catch (...) {
    error = std::current_exception();
  }
  co_return all + (error == nullptr ? "end" : what_of(error));
}

long events_of(std::string_view name, std::string_view object) {
  long all = 0;
  for (const auto& e : weir::recent_events().events)
    if (e.name == name && e.object == object) all += static_cast<long>(e.number);
  return all;
}

// Not an initializer list: g++-12 rejects one inside an await.
template <class... Times>
int_stream at(Times... times) {
  std::vector<int> all;
  (all.push_back(times), ...);
  return items_at(std::move(all));
}

}  // namespace

FIBER_TEST(buffer, waits_when_it_is_full_and_loses_nothing) {
  plant p;
  auto s = int_stream(items(p, 10)) | weir::buffer(3);
  co_await settled();
  EXPECT_EQ(p.opened, 0);
  const int first = co_await take_one(s);
  EXPECT_EQ(first, 1);
  co_await weir::sleep(1s);
  EXPECT_EQ(p.pulled, 4);
  numbers rest;
  co_await take_all(s, rest);
  EXPECT_EQ(rest, from_to(2, 10));
  EXPECT_EQ(events_of("dropped", "buffer"), 0);
  EXPECT_EQ(p.closed, 1);
}

TEST(buffer, drops_what_its_policy_says_and_counts) {
  struct expectation {
    overflow policy;
    numbers rest;
    long dropped;
  };
  const expectation all[] = {{overflow::drop_oldest, {8, 9, 10}, 6},
                             {overflow::drop_newest, {2, 3, 4}, 6},
                             {overflow::conflate, {8, 9, 10}, 6}};
  for (const expectation& e : all) {
    SCOPED_TRACE(static_cast<int>(e.policy));
    in_order([&]() -> task<> {
      plant p;
      auto s = int_stream(items(p, 10, 1ms)) | weir::buffer(3, e.policy);
      const int first = co_await take_one(s);
      EXPECT_EQ(first, 1);
      co_await weir::sleep(100ms);
      numbers rest;
      co_await take_all(s, rest);
      EXPECT_EQ(rest, e.rest);
      EXPECT_EQ(events_of("dropped", "buffer"), e.dropped);
    });
  }
}

FIBER_TEST(buffer, an_error_comes_behind_what_it_kept_once) {
  plant p;
  auto s = int_stream(items(p, 9, {}, 4)) | weir::buffer(8);
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(got, from_to(1, 3));
  EXPECT_EQ(boom_of(error), 99);
  auto end = co_await s.next();
  EXPECT_EQ(end, std::nullopt);
}

FIBER_TEST(buffer, its_child_is_hidden_and_ends_with_the_stream) {
  plant p;
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    {
      auto s = int_stream(items(p, 99, 10ms)) | weir::buffer(3);
      (void)co_await take_one(s);
      EXPECT_EQ(sc.size(), 0U);
      co_await s.close();
      EXPECT_EQ(p.closed, 1);
    }
    auto dropped = int_stream(items(p, 99, 10ms)) | weir::buffer(3);
    (void)co_await take_one(dropped);
  });
  EXPECT_EQ(p.closed, 2);
}

FIBER_TEST_IN_EVERY_ORDER(buffer, loses_nothing_in_any_order_when_pulls_are_given_up) {
  plant p;
  weir::event tick;
  auto s = int_stream(items(p, 4)) | weir::buffer(2);
  numbers got;
  auto ticking = [&]() -> task<> {
    for (int i = 0; i < 8; ++i) {
      tick.set();
      co_await weir::yield();
    }
  };
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    sc.spawn(ticking());
    for (;;) {
      auto won = co_await weir::race(s.next(), tick.wait());
      tick.reset();
      if (won.index() == 1) continue;
      if (!std::get<0>(won)) break;
      got.push_back(*std::get<0>(won));
    }
  });
  EXPECT_EQ(got, from_to(1, 4));
}

FIBER_TEST(conflate, joins_what_a_slow_consumer_has_not_taken) {
  auto add = [](int a, int b) { return a + b; };
  auto s = at(1, 11, 12, 13, 31) | weir::conflate(add);
  numbers got;
  for (;;) {
    auto v = co_await s.next();
    if (!v) break;
    got.push_back(*v);
    co_await weir::sleep(20ms);
  }
  EXPECT_EQ(got, (numbers{1, 9, 5}));
}

FIBER_TEST(conflate, an_error_of_its_function_ends_it_and_gives_no_value_that_was_moved_from) {
  auto join = [](std::string a, const std::string& b) -> std::string {
    if (b == "3") throw boom(3);
    return a + b;
  };
  auto texts = [](int i) { return std::to_string(i); };
  auto s = at(1, 2, 3) | weir::map(texts) | weir::conflate(join);
  auto first = co_await s.next();
  EXPECT_EQ(first, "1");
  co_await weir::sleep(10ms);
  const std::exception_ptr error = co_await error_of(s.next());
  EXPECT_EQ(boom_of(error), 3);
  auto end = co_await s.next();
  EXPECT_EQ(end, std::nullopt);
}

FIBER_TEST(sample, gives_the_latest_at_each_tick_if_there_is_something_new) {
  const std::string saw = co_await story_of(at(1, 2, 15, 45, 46, 47, 62) | weir::sample(10ms));
  EXPECT_EQ(saw, "2@10 3@20 6@50 7@70 end@70");
}

FIBER_TEST(sample, ticks_that_nobody_asked_at_do_not_pile_up) {
  auto s = at(1, 3'600'000) | weir::sample(1ns);
  const int first = co_await take_one(s);
  EXPECT_EQ(first, 1);
  const int second = co_await take_one(s);  // an hour later: 3.6e12 ticks
  EXPECT_EQ(second, 2);
}

FIBER_TEST(debounce, gives_an_item_after_a_quiet_time_and_the_last_one_at_the_end) {
  const std::string saw = co_await story_of(at(1, 5, 9, 30, 55, 58) | weir::debounce(10ms));
  EXPECT_EQ(saw, "3@19 4@40 6@58 end@58");
}

FIBER_TEST(debounce, an_error_comes_behind_the_last_item) {
  std::vector<int> times = from_to(1, 2);
  const std::string saw =
      co_await told(int_stream(items_at(std::move(times), 7)) | weir::debounce(10ms));
  EXPECT_EQ(saw, "2 boom 7");
}

FIBER_TEST(delay, shifts_without_slowing) {
  const std::string saw = co_await story_of(at(1, 2, 3, 30) | weir::delay(100ms));
  EXPECT_EQ(saw, "1@101 2@102 3@103 4@130 end@130");
  const std::string none = co_await story_of(at(1, 2) | weir::delay(0ms));
  EXPECT_EQ(none, "1@1 2@2 end@2");
}

FIBER_TEST(delay, a_pull_that_is_given_up_keeps_the_times) {
  auto s = at(1, 2) | weir::delay(20ms);
  const weir::time_point start = weir::now();
  for (int i = 0; i < 3; ++i) {
    auto won = co_await weir::race(s.next(), weir::sleep(5ms));
    EXPECT_EQ(won.index(), 1U);
  }
  (void)co_await take_one(s);
  EXPECT_EQ(ms_since(start), 21);
  (void)co_await take_one(s);
  EXPECT_EQ(ms_since(start), 22);
}

FIBER_TEST(throttle, passes_one_and_drops_and_counts_those_of_the_time_after) {
  const std::string saw = co_await story_of(at(1, 2, 3, 11, 12, 30) | weir::throttle(10ms));
  EXPECT_EQ(saw, "1@1 4@11 6@30 end@30");
  EXPECT_EQ(events_of("throttled", "stream"), 3);
}

FIBER_TEST(throttle, counts_what_it_dropped_last_when_the_stream_ends) {
  const std::string saw = co_await story_of(at(1, 2, 3) | weir::throttle(10ms));
  EXPECT_EQ(saw, "1@1 end@3");
  EXPECT_EQ(events_of("throttled", "stream"), 2);
}

FIBER_TEST(throttle, pulls_only_while_it_is_pulled) {
  plant p;
  auto s = int_stream(items(p, 9, 1ms)) | weir::throttle(5ms);
  (void)co_await take_one(s);
  co_await weir::sleep(1s);
  EXPECT_EQ(p.pulled, 1);
}

FIBER_TEST(timeout_each, an_item_that_takes_too_long_is_an_error_that_ends_the_stream) {
  auto s = at(5, 12, 30) | weir::timeout_each(10ms);
  numbers got;
  const std::exception_ptr error = co_await take_until_error(s, got);
  EXPECT_EQ(got, from_to(1, 2));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_TRUE(contains(what_of(error), "timeout_each")) << what_of(error);
  auto end = co_await s.next();
  EXPECT_EQ(end, std::nullopt);
}

FIBER_TEST(timeout_each, the_time_of_the_consumer_does_not_count) {
  plant p;
  auto s = int_stream(items(p, 4, 8ms)) | weir::timeout_each(10ms);
  for (int i = 1; i <= 4; ++i) {
    const int v = co_await take_one(s);
    EXPECT_EQ(v, i);
    co_await weir::sleep(100ms);
  }
}

// Each of several pulls of one next() has the whole time.
FIBER_TEST(timeout_each, the_limit_is_for_each_item_also_below_a_filter) {
  plant p;
  auto even = [](int v) { return v % 2 == 0; };
  const std::string saw =
      co_await told(int_stream(items(p, 6, 8ms)) | weir::timeout_each(10ms) | weir::filter(even));
  EXPECT_EQ(saw, "2 4 6 end");
}

TEST(stream_rate, misuse_is_refused_with_a_clear_error) {
  const auto refused = errc::invalid_argument;
  EXPECT_EQ(code_thrown_by([] { (void)weir::buffer(0); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::buffer(-1); }), refused);
  for (overflow policy :
       {overflow::reject, overflow::disconnect, overflow::fail_emitter, overflow::stop}) {
    const auto error = thrown_by([policy] { (void)weir::buffer(1, policy); });
    EXPECT_EQ(code_of(error), refused);
    EXPECT_TRUE(contains(what_of(error), "drop_newest")) << what_of(error);
  }
  EXPECT_EQ(code_thrown_by([] { (void)weir::sample(0ms); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::sample(-1ms); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::debounce(-1ms); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::delay(-1ms); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::throttle(-1ms); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::timeout_each(-1ms); }), refused);
}

FIBER_TEST(stream_rate, a_stage_that_outlives_the_scope_of_its_first_pull_is_interrupted) {
  plant p;
  int_stream all[] = {int_stream(items(p, 99, 10ms)) | weir::buffer(2),
                      int_stream(items(p, 99, 10ms)) | weir::sample(10ms),
                      int_stream(items(p, 99, 10ms)) | weir::debounce(1ms),
                      int_stream(items(p, 99, 10ms)) | weir::delay(1ms)};
  for (int_stream& s : all) {
    co_await weir::with_scope([&](weir::scope&) -> task<> { (void)co_await take_one(s); });
    EXPECT_EQ(p.opened, p.closed);
    numbers rest;
    const std::exception_ptr error = co_await take_until_error(s, rest);
    EXPECT_EQ(code_of(error), errc::stream_interrupted);
    EXPECT_LE(rest.size(), 1U);
  }
}
