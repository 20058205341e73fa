// SPDX-License-Identifier: MIT
// Several items as one, and limits in time: chunks, ready_chunks, sliding, group_by, throttle,
// timeout_each; and interval, which is nothing but time.
#include <limits>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

using batches = std::vector<numbers>;

/// The sum of the numbers of the events of one name.
class event_sum {
 public:
  explicit event_sum(std::string_view name) : subscription_(weir::on_event(counter{name, &sum_})) {}
  std::uint64_t get() const { return sum_; }

 private:
  struct counter {
    std::string_view name;
    std::uint64_t* sum;
    void operator()(const weir::event_info& e) const { *sum += e.name == name ? e.number : 0; }
  };
  std::uint64_t sum_ = 0;
  decltype(weir::on_event(std::declval<counter>())) subscription_;
};

/// 1 and 2 at once, then one every 4 ms.
weir::stream<int> bursts() {
  co_yield 1;
  co_yield 2;
  for (int i = 3; i <= 6; ++i) {
    co_await weir::sleep(4ms);
    co_yield i;
  }
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(stream_batch,
                          timed_chunks_are_given_when_their_first_item_is_old_enough) {
  const auto start = weir::now();
  auto s = bursts() | weir::chunks(10, 5ms);
  batches all;
  std::vector<long> when;
  for (;;) {
    auto batch = co_await s.next();
    if (!batch) break;
    all.push_back(*batch);
    when.push_back(ms_since(start));
  }
  EXPECT_EQ(all, (batches{{1, 2, 3}, {4, 5}, {6}}));  // 1 2 3 from 0 on; 4 5 from 8 on
  EXPECT_EQ(when, (std::vector<long>{5, 13, 16}));
}

FIBER_TEST(stream_batch, timed_chunks_that_are_full_do_not_wait_and_are_never_empty) {
  const auto start = weir::now();
  auto s = weir::iota(0, 4) | weir::chunks(2, 1h);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(ms_since(start), 0);
  EXPECT_EQ(live_timers(), 0);
  auto quiet = weir::never<int>() | weir::chunks(2, 1ms);
  auto error = co_await error_of(weir::with_timeout(100ms, quiet.next()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
}

FIBER_TEST_IN_EVERY_ORDER(stream_batch, a_timed_chunk_survives_pulls_that_are_given_up) {
  const auto start = weir::now();
  auto s = bursts() | weir::chunks(10, 5ms);
  int given_up = 0;
  auto all = co_await pull_all_impatiently(s, 1500us, given_up);
  EXPECT_EQ(all, (batches{{1, 2, 3}, {4, 5}, {6}}));
  EXPECT_LE(ms_since(start), 18);
  EXPECT_GE(given_up, 3);
}

FIBER_TEST(stream_batch, ready_chunks_gives_what_is_there_and_waits_only_for_the_first) {
  weir::queue<int> q(10);
  for (int i = 1; i <= 5; ++i) (void)q.try_push(i);
  auto s = weir::from(q) | weir::ready_chunks(3);
  auto one = co_await s.next();
  auto two = co_await s.next();
  EXPECT_EQ(*one, (numbers{1, 2, 3}));
  EXPECT_EQ(*two, (numbers{4, 5}));
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    scope.spawn([&]() -> task<> {
      co_await weir::sleep(1ms);
      (void)q.try_push(6);
      q.close();
    });
    auto three = co_await s.next();
    EXPECT_EQ(*three, numbers{6});
    auto end = co_await s.next();
    EXPECT_FALSE(end.has_value());
  });
}

FIBER_TEST(stream_batch, ready_chunks_goes_on_behind_a_generator_that_has_to_wait) {
  const auto start = weir::now();
  auto s = bursts() | weir::ready_chunks(10);
  auto one = co_await s.next();
  EXPECT_EQ(*one, (numbers{1, 2}));
  EXPECT_EQ(ms_since(start), 0);
  auto rest = co_await pull_all(s);
  EXPECT_EQ(rest, (batches{{3}, {4}, {5}, {6}}));
  EXPECT_EQ(ms_since(start), 16);
}

FIBER_TEST(stream_batch, sliding_over_fewer_items_than_its_size_gives_nothing) {
  auto few = weir::iota(0, 2) | weir::sliding(3);
  auto none = co_await pull_all(few);
  EXPECT_TRUE(none.empty());
  auto s = weir::iota(0, 3) | weir::sliding(1);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (batches{{0}, {1}, {2}}));
}

FIBER_TEST(stream_batch, group_by_makes_one_group_of_each_run) {
  const numbers items{1, 3, 2, 4, 5, 6, 6};
  auto s = weir::from(items) | weir::group_by([](int n) { return n % 2; });
  auto all = co_await pull_all(s);
  std::string text;
  for (const auto& [key, group] : all) text += std::to_string(key) + std::to_string(group.size());
  EXPECT_EQ(text, "12021102");
}

TEST(stream_batch, sizes_below_one_and_negative_counts_are_refused_with_their_name) {
  const auto refused = [](auto make, const char* name) {
    const auto error = thrown_by(make);
    EXPECT_EQ(code_of(error), errc::invalid_argument) << name;
    EXPECT_TRUE(contains(what_of(error), name)) << what_of(error);
    return what_of(error);
  };
  refused([] { return weir::chunks(0); }, "chunks");
  refused([] { return weir::chunks(-1, 1ms); }, "chunks");
  refused([] { return weir::chunks(1, -1ms); }, "chunks");
  refused([] { return weir::ready_chunks(0); }, "ready_chunks");
  refused([] { return weir::sliding(0); }, "sliding");
  refused([] { return weir::take(-1); }, "take");
  refused([] { return weir::drop(-1); }, "drop");
  refused([] { return weir::take_last(-1); }, "take_last");
  refused([] { return weir::skip_last(-1); }, "skip_last");
  refused([] { return weir::throttle(-1ms); }, "throttle");
  refused([] { return weir::timeout_each(-1ms); }, "timeout_each");
  refused([] { return weir::interval(0ms); }, "interval");
  refused([] { return weir::distinct(std::numeric_limits<std::int64_t>::min()); }, "distinct");
  const std::string text = refused([] { return weir::distinct(0); }, "distinct");
  EXPECT_TRUE(contains(text, "1 or more")) << text;
}

FIBER_TEST(stream_batch, throttle_passes_one_item_for_each_length_and_counts_the_others) {
  const event_sum dropped("throttled");
  probe p{.items = from_to(1, 10), .pause = 1ms};
  auto s = feed(p) | weir::throttle(3ms);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{1, 4, 7, 10}));
  EXPECT_EQ(dropped.get(), 6U);
}
FIBER_TEST(stream_batch, what_throttle_dropped_is_told_also_if_the_stream_is_closed_early) {
  const event_sum dropped("throttled");
  probe p{.items = from_to(1, 10), .pause = 1ms};
  auto s = feed(p) | weir::throttle(1h);
  int one = co_await pull_one(s);
  EXPECT_EQ(one, 1);
  (void)co_await error_of(weir::with_timeout(4500us, s.next()));
  co_await s.close();
  EXPECT_EQ(dropped.get(), 4U);
}

FIBER_TEST(stream_batch, timeout_each_counts_from_when_an_item_was_asked_for) {
  probe p{.items = from_to(1, 3), .pause = 8ms};
  auto s = feed(p) | weir::timeout_each(10ms);
  for (int i = 1; i <= 3; ++i) {
    int got = co_await pull_one(s);
    EXPECT_EQ(got, i);
    co_await weir::sleep(50ms);
  }
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST(stream_batch, timeout_each_begins_anew_with_each_item_of_a_sink) {
  probe p{.items = from_to(1, 5), .pause = 8ms};
  auto all = co_await (feed(p) | weir::timeout_each(10ms) | weir::to_vector());
  EXPECT_EQ(all, from_to(1, 5));
  EXPECT_EQ(live_timers(), 0);
}

// What of the source is slow to become quiet must not keep the limit of the item before.
FIBER_TEST_IN_EVERY_ORDER(stream_batch,
                          timeout_each_begins_anew_although_a_part_of_its_source_is_slow_to_pause) {
  held<int> answers;
  auto stubborn = [&]() -> weir::stream<int> {
    int v = co_await asked_it_says<int>(weir::cancel_result::no, answers);
    co_yield v;
  };
  probe p{.items = from_to(1, 2), .pause = 8ms};
  auto s = weir::merge(feed(p), stubborn()) | weir::timeout_each(10ms);
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    scope.spawn([&]() -> task<> {
      co_await weir::sleep(9ms);
      for (auto& answer : answers) answer.complete(5);
    });
    int one = co_await pull_one(s);
    EXPECT_EQ(one, 1);
  });
  co_await weir::sleep(50ms);
  auto rest = co_await pull_all(s);
  EXPECT_EQ(sorted(rest), (numbers{2, 5}));
}

FIBER_TEST_IN_EVERY_ORDER(stream_batch, timeout_each_ends_a_stream_that_takes_too_long) {
  probe p{.items = from_to(1, 3), .pause = 8ms};
  auto s = feed(p) | weir::timeout_each(5ms);
  const auto start = weir::now();
  auto error = co_await pull_error(s);
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_TRUE(contains(what_of(error), "timeout_each")) << what_of(error);
  EXPECT_EQ(ms_since(start), 5);
  EXPECT_EQ(p.left, 1);
  int end = co_await pull_one(s);
  EXPECT_EQ(end, -1);
}

FIBER_TEST(stream_batch, an_interval_begins_one_length_after_the_first_pull_and_keeps_its_grid) {
  auto s = weir::interval(10ms);
  co_await weir::sleep(7ms);
  const auto start = weir::now();
  for (int i = 0; i < 3; ++i) {
    auto tick = co_await s.next();
    EXPECT_EQ(*tick, i);
    EXPECT_EQ(ms_since(start), 10 * (i + 1));
    co_await weir::sleep(4ms);
  }
}

FIBER_TEST(stream_batch, an_interval_skips_and_counts_the_ticks_that_nobody_pulled) {
  const event_sum skipped("interval_skipped");
  const auto start = weir::now();
  auto s = weir::interval(10ms);
  auto zero = co_await s.next();
  EXPECT_EQ(*zero, 0);
  co_await weir::sleep(35ms);  // 20, 30 and 40 pass; it is 45
  auto late = co_await s.next();
  EXPECT_EQ(*late, 3);
  EXPECT_EQ(ms_since(start), 45);
  auto next = co_await s.next();
  EXPECT_EQ(*next, 4);
  EXPECT_EQ(ms_since(start), 50);
  EXPECT_EQ(skipped.get(), 2U);
}
