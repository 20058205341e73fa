// SPDX-License-Identifier: MIT
// Streams whose type is erased, and streams as ranges outside of any loop.
#include <algorithm>
#include <ranges>
#include <sstream>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

using any_ints = weir::any_stream<int>;

any_ints evens_up_to(int last) {
  return weir::iota(0, last + 1) | weir::filter([](int n) { return n % 2 == 0; });
}

any_ints erased_feed(probe& p) { return feed(p); }

/// A cleanup that takes 10 ms and looks at what it has captured when it is done.
auto late_cleanup(text_log& log, std::string name) {
  return weir::finally([&log, name]() -> task<> {
    co_await weir::sleep(10ms);
    log.push_back(name);
  });
}

weir::stream<int> sleeps() {
  co_yield 1;
  co_await weir::sleep(1ms);
  co_yield 2;
}

}  // namespace

FIBER_TEST(any_stream, every_pipeline_converts_and_behaves_as_before) {
  auto s = evens_up_to(6);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{0, 2, 4, 6}));
  probe p{.items = {1, 2, 3}, .pause = 1ms, .fails_behind = 2};
  any_ints t = erased_feed(p) | weir::map([](int n) { return n * 2; });
  int given_up = 0;
  std::exception_ptr error;
  try {
    (void)co_await pull_all_impatiently(t, 300us, given_up);
  } catch (...) {
    error = std::current_exception();
  }
  EXPECT_EQ(boom_of(error), 7);
  EXPECT_GE(given_up, 4);
  int end = co_await pull_one(t);
  EXPECT_EQ(end, -1);
}

FIBER_TEST(any_stream, different_pipelines_fit_into_one_container) {
  std::vector<any_ints> all;
  all.push_back(weir::once(1));
  all.push_back(evens_up_to(2));
  all.push_back(weir::concat(weir::empty<int>(), weir::once(5)));
  auto s = weir::from(std::move(all)) | weir::flatten();
  auto items = co_await pull_all(s);
  EXPECT_EQ(items, (numbers{1, 0, 2, 5}));
}

FIBER_TEST(any_stream, concat_and_start_with_keep_the_order) {
  any_ints middle = weir::once(3);
  any_ints s =
      weir::concat(std::move(middle) | weir::start_with(2), weir::once(4), weir::iota(5, 7)) |
      weir::start_with(1);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, from_to(1, 6));
}

FIBER_TEST(any_stream, closing_a_spliced_one_closes_what_was_begun_and_begins_nothing) {
  text_log log;
  probe a{.items = {1, 2}}, b{.items = {3}};
  any_ints first = feed(a) | late_cleanup(log, "first");
  any_ints s = weir::concat(std::move(first), feed(b) | late_cleanup(log, "second"));
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  co_await s.close();
  EXPECT_EQ(joined(log), "first");
  EXPECT_EQ(a.left, 1);
  EXPECT_EQ(b.entered, 0);
}

// The cleanup's own captures must live as long as it runs.
FIBER_TEST_IN_EVERY_ORDER(any_stream, a_cleanup_that_was_begun_by_a_pull_is_finished_by_close) {
  text_log log;
  any_ints s = weir::iota(0, 1) | late_cleanup(log, "a name that needs memory of its own");
  int zero = co_await pull_one(s);
  EXPECT_EQ(zero, 0);
  auto error = co_await error_of(weir::with_timeout(5ms, s.next()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  co_await s.close();
  EXPECT_EQ(joined(log), "a name that needs memory of its own");
}

FIBER_TEST(any_stream, an_error_in_the_first_part_leaves_the_others_alone) {
  probe a{.items = {}, .fails_behind = 0}, b{.items = {3}};
  any_ints s = weir::concat(any_ints(feed(a)), feed(b));
  auto error = co_await pull_error(s);
  EXPECT_EQ(boom_of(error), 7);
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
  EXPECT_EQ(b.entered, 0);
}

// ------------------------------------------------------------------ blocking_range

TEST(blocking_range, a_synchronous_stream_is_a_range_without_a_loop) {
  numbers got;
  for (int n : weir::blocking_range(evens_up_to(6))) got.push_back(n);
  EXPECT_EQ(got, (numbers{0, 2, 4, 6}));
  probe p{.items = {5, 3, 9}};
  auto range = weir::blocking_range(feed(p));
  EXPECT_EQ(std::ranges::count_if(range, [](int n) { return n > 4; }), 2);
  EXPECT_EQ(p.left, 1);
}

TEST(blocking_range, it_awaits_tasks_that_are_ready_and_other_generators) {
  auto make = []() -> weir::stream<int> {
    auto inner = weir::iota(0, 100'000);
    for (;;) {
      auto v = co_await inner.next();
      if (!v) break;
      int same = co_await ready(*v);
      co_yield same;
    }
  };
  long sum = 0;
  for (int n : weir::blocking_range(make())) sum += n;
  EXPECT_EQ(sum, 4'999'950'000);
}

TEST(blocking_range, leaving_early_destroys_the_generator) {
  probe p{.items = {1, 2, 3}};
  {
    for (int n : weir::blocking_range(feed(p)))
      if (n == 2) break;
    EXPECT_EQ(p.given, 2);
  }
  EXPECT_EQ(p.left, 1);
}

TEST(blocking_range, an_error_is_thrown_once) {
  probe p{.items = {1, 2}, .fails_behind = 1};
  auto range = weir::blocking_range(feed(p));
  auto it = range.begin();
  EXPECT_EQ(*it, 1);
  EXPECT_EQ(boom_of(thrown_by([&] {
              ++it;
              return 0;
            })),
            7);
  EXPECT_TRUE(it == range.end());
}

TEST(blocking_range, a_wait_that_would_park_is_a_deadlock_with_or_without_a_loop) {
  const auto pull_all_of = [](auto make) {
    return thrown_by([&] {
      numbers got;
      for (int n : weir::blocking_range(make())) got.push_back(n);
      return 0;
    });
  };
  EXPECT_EQ(code_of(pull_all_of(sleeps)), errc::would_deadlock);
  EXPECT_EQ(code_of(pull_all_of([] { return weir::never<int>(); })), errc::would_deadlock);
  auto ticks = [] { return weir::interval(1ms) | weir::map([](std::int64_t) { return 1; }); };
  EXPECT_EQ(code_of(pull_all_of(ticks)), errc::would_deadlock);
  in_order([&]() -> task<> {
    EXPECT_EQ(code_of(pull_all_of(sleeps)), errc::would_deadlock);
    EXPECT_EQ(code_of(pull_all_of([] { return weir::never<int>(); })), errc::would_deadlock);
    EXPECT_EQ(code_of(pull_all_of(ticks)), errc::would_deadlock);
    EXPECT_EQ(live_timers(), 0);
    co_await weir::sleep(5ms);
  });
}

TEST(blocking_range, three_million_rejected_items_are_no_wait) {
  auto s = weir::iota(0, 3'000'001) | weir::filter([](int n) { return n == 3'000'000; });
  numbers got;
  for (int n : weir::blocking_range(std::move(s))) got.push_back(n);
  EXPECT_EQ(got, numbers{3'000'000});
}
