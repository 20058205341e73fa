// SPDX-License-Identifier: MIT
// flat_map(n or governor, fn): "inner streams concurrently, in the order items come".
#include "flow_support.hpp"
#include "stream_support.hpp"

using namespace weir_test;

namespace {

weir::stream<int> ticks_from(int first, int count, weir::duration every) {
  for (int i = 0; i < count; ++i) {
    co_await weir::sleep(every);
    co_yield first + i;
  }
}

}  // namespace

FIBER_TEST(flat_map, items_of_several_streams_come_in_the_order_of_time) {
  numbers firsts{10, 21, 32};
  auto all = co_await (weir::from(std::move(firsts)) |
                       weir::flat_map(3, [](int n) { return ticks_from(n, 2, n * 1ms); }) |
                       weir::to_vector());
  EXPECT_EQ(all, (numbers{10, 11, 21, 32, 22, 33}));
}

FIBER_TEST_IN_EVERY_ORDER(flat_map, every_item_comes_once_whatever_the_order) {
  auto all = co_await (weir::iota(0, 4) |
                       weir::flat_map(2, [](int n) { return ticks_from(n * 10, n, 1ms); }) |
                       weir::to_vector());
  EXPECT_EQ(sorted(all), (numbers{10, 20, 21, 30, 31, 32}));
}

FIBER_TEST_IN_EVERY_ORDER(flat_map, at_most_so_many_streams_are_open_at_once) {
  weir::counting_governor g(2);
  int open = 0;
  int most = 0;
  auto inner = [&](int n) -> weir::stream<int> {
    const auto closed = weir::scope_exit([&] { --open; });
    most = std::max(most, ++open);
    co_await weir::sleep(1ms);
    co_yield n;
    co_await weir::sleep(1ms);
  };
  auto all = co_await (weir::iota(0, 5) | weir::flat_map(g, inner) | weir::to_vector());
  EXPECT_EQ(sorted(all), from_to(0, 4));
  EXPECT_EQ(most, 2);
  EXPECT_EQ(open, 0);
  EXPECT_EQ(g.available(), 2);
}

// No hidden buffer: each inner stream is at most one item ahead.
FIBER_TEST(flat_map, an_inner_stream_waits_until_its_item_is_taken) {
  int made = 0;
  auto inner = [&](int) -> weir::stream<int> {
    for (;;) co_yield ++made;
  };
  auto items = weir::iota(0, 3) | weir::flat_map(3, inner);
  auto first = co_await items.next();
  EXPECT_TRUE(first);
  co_await weir::sleep(1s);
  EXPECT_LE(made, 4);
  co_await items.close();
}

FIBER_TEST_IN_EVERY_ORDER(flat_map,
                          the_first_error_ends_everything_and_arrives_when_that_is_joined) {
  int open = 0;
  auto inner = [&](int n) -> weir::stream<int> {
    const auto closed = weir::scope_exit([&] { --open; });
    ++open;
    co_await weir::sleep(n * 1ms);
    if (n == 2) throw boom(2);
    co_yield n;
    co_await weir::sleep(1h);
  };
  auto items = weir::from(numbers{1, 2, 3}) | weir::flat_map(3, inner);
  auto first = co_await items.next();
  EXPECT_EQ(first, 1);
  const std::exception_ptr error = co_await attempt([&] { return items.next(); });
  EXPECT_EQ(boom_of(error), 2);
  EXPECT_EQ(open, 0);
  auto end = co_await items.next();
  EXPECT_FALSE(end);
}

FIBER_TEST_IN_EVERY_ORDER(flat_map, a_stream_that_is_closed_or_dropped_leaves_nothing_open) {
  int open = 0;
  auto inner = [&](int n) -> weir::stream<int> {
    const auto closed = weir::scope_exit([&] { --open; });
    ++open;
    for (;;) {
      co_yield n;
      co_await weir::sleep(1ms);
    }
  };
  auto some =
      co_await (weir::iota(0) | weir::flat_map(3, inner) | weir::take(5) | weir::to_vector());
  EXPECT_EQ(some.size(), 5U);
  EXPECT_EQ(open, 0);
  co_await weir::with_scope([&](weir::scope&) -> task<> {
    auto items = weir::iota(0) | weir::flat_map(2, inner);
    auto first = co_await items.next();
    EXPECT_TRUE(first);
  });
  EXPECT_EQ(open, 0);
}

FIBER_TEST_IN_EVERY_ORDER(flat_map, a_cancelled_next_loses_no_item) {
  auto items =
      weir::iota(0, 3) | weir::flat_map(2, [](int n) { return ticks_from(n * 10, 3, 2ms); });
  numbers seen;
  for (;;) {
    auto next = co_await items.next_for(1ms);
    if (next.ended()) break;
    if (next.item()) seen.push_back(*next.item());
  }
  EXPECT_EQ(sorted(seen), (numbers{0, 1, 2, 10, 11, 12, 20, 21, 22}));
}

FIBER_TEST(flat_map, an_error_of_the_source_arrives) {
  auto source = []() -> weir::stream<int> {
    co_yield 1;
    throw boom(9);
  };
  auto items = source() | weir::flat_map(2, [](int n) { return weir::once(n); });
  const std::exception_ptr error = co_await attempt([&]() -> task<> {
    while (auto item = co_await items.next()) (void)item;
  });
  EXPECT_EQ(boom_of(error), 9);
}
