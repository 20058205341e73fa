// SPDX-License-Identifier: MIT
// state: a value that changes, and subscribers that see the latest.
#include <string>

#include "flow_support.hpp"

using namespace weir_test;

FIBER_TEST(state, a_subscriber_sees_the_present_value_and_then_changes) {
  weir::state<int> st(1);
  EXPECT_EQ(st.get(), 1);
  auto sub = st.subscribe();
  numbers got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(take_all(sub, got));
    for (int i = 2; i <= 4; ++i) {
      co_await settled();
      st.set(i);
      EXPECT_EQ(st.get(), i);
    }
    co_await settled();
    st.close();
  });
  EXPECT_EQ(got, from_to(1, 4));
}

FIBER_TEST(state, a_slow_subscriber_sees_only_the_latest_and_is_told_how_many_it_missed) {
  weir::state<int> st(0);
  auto sub = st.subscribe();
  for (int i = 1; i <= 10; ++i) st.set(i);
  const int seen = co_await take_one(sub);
  EXPECT_EQ(seen, 10);
  EXPECT_EQ(sub.missed(), 10U);
  st.set(11);
  const int next = co_await take_one(sub);
  EXPECT_EQ(next, 11);
  EXPECT_EQ(sub.missed(), 0U);
  EXPECT_EQ(sub.missed_total(), 10U);
}

FIBER_TEST(state, setting_an_equal_value_is_no_change) {
  weir::state<std::string> st("a");
  auto sub = st.subscribe();
  auto first = co_await sub.next();
  EXPECT_EQ(first, "a");
  bool woken = false;
  auto reader = [&]() -> task<> {
    auto v = co_await sub.next();
    EXPECT_EQ(v, "b");
    woken = true;
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(reader());
    co_await settled();
    st.set("a");
    co_await settled();
    EXPECT_FALSE(woken);
    st.set("b");
    co_await settled();
    EXPECT_TRUE(woken);
  });
  EXPECT_EQ(sub.missed_total(), 0U);
}

FIBER_TEST(state, a_late_subscriber_begins_with_the_present_value_also_after_the_end) {
  weir::state<int> st(1);
  st.set(2);
  st.close();
  auto sub = st.subscribe();
  numbers got;
  co_await take_all(sub, got);
  EXPECT_EQ(got, numbers{2});
  EXPECT_EQ(st.get(), 2);
  EXPECT_EQ(code_thrown_by([&] { st.set(3); }), errc::queue_closed);
  EXPECT_EQ(st.get(), 2);
}

FIBER_TEST(state, leaving_unsubscribes_at_once) {
  weir::state<int> st(1);
  {
    auto one = st.subscribe();
    auto two = st.subscribe();
    EXPECT_EQ(st.subscribers(), 2U);
  }
  EXPECT_EQ(st.subscribers(), 0U);
  co_return;
}

FIBER_TEST(state, a_value_made_from_the_present_one_can_be_set) {
  weir::state<std::string> st(std::string(100, 'a'));
  for (int i = 0; i < 5; ++i) st.set(st.get() + "b");
  EXPECT_EQ(st.get(), std::string(100, 'a') + "bbbbb");
  co_return;
}

FIBER_TEST_IN_EVERY_ORDER(state,
                          subscribers_in_every_order_end_with_the_last_value_and_never_go_back) {
  weir::state<int> st(0);
  auto reader = [&](weir::subscription<int> sub) -> task<> {
    numbers got;
    co_await take_all(sub, got);
    EXPECT_EQ(got, sorted(got));
    EXPECT_EQ(got.back(), 5);
    EXPECT_EQ(got.size() + sub.missed_total(), 6U);
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(reader(st.subscribe()));
    s.spawn(reader(st.subscribe()));
    for (int i = 1; i <= 5; ++i) {
      st.set(i);
      co_await weir::yield();
    }
    st.close();
  });
}

TEST(state, use_on_another_loop_is_refused) {
  weir::run([]() -> task<> {
    weir::state<int> st(1);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread other(s);
      auto abroad = [&]() -> task<> {
        EXPECT_EQ(code_thrown_by([&] { st.set(2); }), errc::wrong_loop);
        EXPECT_EQ(code_thrown_by([&] { (void)st.subscribe(); }), errc::wrong_loop);
        co_return;
      };
      co_await s.spawn_on(other, abroad());
    });
    EXPECT_EQ(st.get(), 1);
  });
}
