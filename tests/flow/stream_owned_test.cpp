// SPDX-License-Identifier: MIT
// "`.stream()` of a temporary subscription or receiver takes it along": it lives as long as the
// stream, is left when the stream ends, and nothing dangles.
#include "flow_support.hpp"
#include "stream_support.hpp"

using namespace weir_test;

FIBER_TEST_IN_EVERY_ORDER(owned_stream, a_temporary_subscription_goes_along) {
  weir::broadcast<int> b(4);
  {
    auto items = b.subscribe({.overflow = weir::overflow::wait}).stream();
    EXPECT_EQ(b.subscribers(), 1U);
    for (int i = 0; i < 3; ++i) co_await b.emit(i);
    auto first = co_await items.next();
    EXPECT_EQ(first, 0);
    auto later = co_await weir::all(items.next(), b.emit(3));
    EXPECT_EQ(std::get<0>(later), 1);
  }
  EXPECT_EQ(b.subscribers(), 0U);
}

// "Leaving unsubscribes at once": also when the stream is closed, or its sink has enough.
FIBER_TEST_IN_EVERY_ORDER(owned_stream, closing_the_stream_unsubscribes) {
  weir::replay<int> r(3);
  for (int i = 0; i < 5; ++i) co_await r.emit(i);
  auto items = r.subscribe().stream() | weir::map([](int n) { return n * 10; });
  auto first = co_await items.next();
  EXPECT_EQ(first, 20);
  co_await items.close();
  EXPECT_EQ(r.subscribers(), 0U);
  auto taken = co_await (r.subscribe().stream() | weir::take(2) | weir::to_vector());
  EXPECT_EQ(taken, (numbers{2, 3}));
  EXPECT_EQ(r.subscribers(), 0U);
}

FIBER_TEST_IN_EVERY_ORDER(owned_stream, a_paused_stream_keeps_its_subscription) {
  weir::state<int> st(1);
  auto changes = st.subscribe().stream();
  auto now = co_await changes.next();
  EXPECT_EQ(now, 1);
  auto none = co_await changes.next_for(1ms);
  EXPECT_TRUE(none.timed_out());
  st.set(2);
  auto then = co_await changes.next();
  EXPECT_EQ(then, 2);
}

FIBER_TEST_IN_EVERY_ORDER(owned_stream, is_moved_into_pipelines_and_children) {
  weir::broadcast<int> b(2);
  numbers seen;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    weir::any_stream<int> items = b.subscribe().stream();
    s.spawn(std::move(items) | weir::for_each([&](int n) { seen.push_back(n); }));
    for (int i = 0; i < 5; ++i) co_await b.emit(i);
    b.close();
    co_await s.join();
  });
  EXPECT_EQ(seen, from_to(0, 4));
  EXPECT_EQ(b.subscribers(), 0U);
}

FIBER_TEST_IN_EVERY_ORDER(owned_stream, a_temporary_receiver_goes_along) {
  auto ends = weir::channel<int>(2);
  auto& tx = ends.first;
  {
    auto items = std::move(ends.second).stream();
    co_await tx.send(1);
    auto first = co_await items.next();
    EXPECT_EQ(first, 1);
    auto none = co_await items.next_for(1ms);
    EXPECT_TRUE(none.timed_out());
    co_await tx.send(2);
    auto second = co_await items.next();
    EXPECT_EQ(second, 2);
    EXPECT_TRUE(tx.try_send(3).accepted());
  }
  EXPECT_TRUE(tx.try_send(4).closed());
}

// "Senders see queue_closed when the receiver is gone": it goes with the end of the stream.
FIBER_TEST(owned_stream, closing_the_stream_lets_its_receiver_go) {
  auto [tx, rx] = weir::channel<int>(2);
  auto items = std::move(rx).stream();
  co_await tx.send(1);
  co_await items.close();
  const auto code = co_await code_after([&to = tx] { return to.send(2); });
  EXPECT_EQ(code, weir::errc::queue_closed);
}
