// SPDX-License-Identifier: MIT
// An item of a fused pipeline costs no allocation, whether it is ready or waited for: counted and
// not timed.
#include "stream_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer every frame is an allocation of its own; nothing is counted there.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using namespace weir_test;

namespace {

constexpr int counted_pulls = 1000;

weir::stream<int> naturals() {
  for (int i = 0;; ++i) co_yield i;
}

weir::stream<int> slow_naturals() {
  for (int i = 0;; ++i) {
    co_await weir::sleep(1ms);
    co_yield i;
  }
}

/// What so many pulls ask for when others have warmed up the caches.
template <class S>
long allocations_of_pulls(S stream) {
  long taken = -1;
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, [&]() -> task<> {
    S s = std::move(stream);
    for (int i = 0; i < 300; ++i) (void)co_await s.next();
    begin_to_count();
    for (int i = 0; i < counted_pulls; ++i) (void)co_await s.next();
    taken = end_count();
  });
  return taken;
}

}  // namespace

TEST(stream_allocation, an_item_of_a_generator_asks_for_nothing) {
  EXPECT_EQ(allocations_of_pulls(naturals()), 0);
  EXPECT_EQ(allocations_of_pulls(slow_naturals()), 0);
}

TEST(stream_allocation, an_item_of_a_fused_pipeline_asks_for_nothing) {
  const auto through = [](auto source) {
    return std::move(source) | weir::map([](int n) { return n * 3; }) | weir::filter(even) |
           weir::scan(0, [](int a, int b) { return a ^ b; }) | weir::enumerate() | weir::drop(2) |
           weir::take(1'000'000);
  };
  EXPECT_EQ(allocations_of_pulls(through(weir::iota(0))), 0);
  EXPECT_EQ(allocations_of_pulls(through(naturals())), 0);
  EXPECT_EQ(allocations_of_pulls(through(slow_naturals())), 0);
}

TEST(stream_allocation, neither_do_inner_streams_that_are_no_generators) {
  auto inner = [](int n) { return weir::iota(n, n + 3); };
  EXPECT_EQ(allocations_of_pulls(naturals() | weir::flat_map(inner)), 0);
  EXPECT_EQ(allocations_of_pulls(slow_naturals() | weir::flat_map(inner)), 0);
  EXPECT_EQ(allocations_of_pulls(slow_naturals() | weir::switch_map(inner)), 0);
}

TEST(stream_allocation, neither_do_joins) {
  EXPECT_EQ(allocations_of_pulls(weir::merge(slow_naturals(), slow_naturals())), 0);
  EXPECT_EQ(allocations_of_pulls(weir::zip(naturals(), slow_naturals())), 0);
  EXPECT_EQ(allocations_of_pulls(weir::combine_latest(slow_naturals(), slow_naturals())), 0);
  EXPECT_EQ(allocations_of_pulls(slow_naturals() | weir::with_latest_from(slow_naturals())), 0);
  EXPECT_EQ(allocations_of_pulls(weir::concat(naturals(), naturals())), 0);
}

TEST(stream_allocation, neither_do_time_limits_and_erased_types) {
  EXPECT_EQ(allocations_of_pulls(slow_naturals() | weir::timeout_each(1h)), 0);
  EXPECT_EQ(allocations_of_pulls(weir::interval(1ms)), 0);
  EXPECT_EQ(allocations_of_pulls(weir::any_stream<int>(slow_naturals())), 0);
}

TEST(stream_allocation, a_pull_that_is_given_up_and_made_again_asks_for_nothing) {
  long taken = -1;
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, [&]() -> task<> {
    auto s = slow_naturals();
    auto pauses = weir::interval(300us) | weir::map([](std::int64_t) { return -1; });
    for (int i = 0; i < 300 + counted_pulls; ++i) {
      if (i == 300) begin_to_count();
      auto v = co_await weir::race(s.next(), pauses.next());
      (void)v;
    }
    taken = end_count();
  });
  EXPECT_EQ(taken, 0);
}

TEST(stream_allocation, a_serial_sink_asks_for_nothing_for_each_item) {
  long few = -1, many = -1;
  weir::run([&]() -> task<> {
    for (int i = 0; i < 3; ++i) {
      begin_to_count();
      (void)co_await (naturals() | weir::filter(even) | weir::take(10) | weir::count());
      few = end_count();
      begin_to_count();
      (void)co_await (naturals() | weir::filter(even) | weir::take(10'000) | weir::count());
      many = end_count();
    }
  });
  EXPECT_EQ(few, many);
}

#endif
