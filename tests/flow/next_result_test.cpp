// SPDX-License-Identifier: MIT
// `co_await st.next_for(d)` -> `next_result<T>`: `.item()`, `.ended()`, `.timed_out()`.
#include "flow_support.hpp"
#include "stream_support.hpp"

using namespace weir_test;

FIBER_TEST_IN_EVERY_ORDER(next_for, tells_an_item_from_the_end_and_from_a_timeout) {
  weir::queue<int> q(2);
  auto items = q.stream();
  EXPECT_EQ(q.try_push(5), std::error_code());
  auto one = co_await items.next_for(1ms);
  EXPECT_EQ(one.item(), 5);
  EXPECT_FALSE(one.ended());
  EXPECT_FALSE(one.timed_out());
  auto none = co_await items.next_for(1ms);
  EXPECT_FALSE(none.item());
  EXPECT_FALSE(none.ended());
  EXPECT_TRUE(none.timed_out());
  q.close();
  auto end = co_await items.next_for(1ms);
  EXPECT_FALSE(end.item());
  EXPECT_TRUE(end.ended());
  EXPECT_FALSE(end.timed_out());
}

// A timeout pauses the stream: no value is lost, and a sleep keeps its absolute time.
FIBER_TEST(next_for, loses_nothing_when_it_times_out) {
  auto slow = []() -> weir::stream<int> {
    for (int i = 0; i < 3; ++i) {
      co_await weir::sleep(10ms);
      co_yield i;
    }
  };
  auto items = slow();
  int waits = 0;
  numbers seen;
  for (;;) {
    auto next = co_await items.next_for(3ms);
    if (next.ended()) break;
    if (next.timed_out()) ++waits;
    if (next.item()) seen.push_back(*std::move(next).item());
  }
  EXPECT_EQ(seen, (numbers{0, 1, 2}));
  EXPECT_EQ(waits, 9);
}

FIBER_TEST(next_for, without_time_starts_nothing) {
  bool begun = false;
  auto items = weir::defer_stream([&] {
    begun = true;
    return weir::once(1);
  });
  auto none = co_await items.next_for(0ms);
  EXPECT_TRUE(none.timed_out());
  EXPECT_FALSE(begun);
  auto one = co_await items.next_for(1ms);
  EXPECT_EQ(one.item(), 1);
}

FIBER_TEST(next_for, throws_the_error_of_the_stream) {
  auto bad = []() -> weir::stream<int> {
    co_await weir::sleep(1ms);
    throw boom(4);
    co_yield 0;
  };
  weir::any_stream<int> items = bad();
  const std::exception_ptr error = co_await attempt([&] { return items.next_for(1s); });
  EXPECT_EQ(boom_of(error), 4);
  auto end = co_await items.next_for(1s);
  EXPECT_TRUE(end.ended());
}

FIBER_TEST_IN_EVERY_ORDER(next_for, is_a_wait_like_any_other) {
  weir::queue<int> a(1), b(1);
  auto as = a.stream();
  auto bs = b.stream();
  EXPECT_EQ(b.try_push(2), std::error_code());
  auto got = co_await weir::all(as.next_for(1ms), bs.next_for(1ms));
  EXPECT_TRUE(std::get<0>(got).timed_out());
  EXPECT_EQ(std::get<1>(got).item(), 2);
}
