// SPDX-License-Identifier: MIT
// Policies together, under the adversary: their promises hold in every order.
#include <weir/interop/gtest.hpp>

#include "policy_support.hpp"

using namespace policy_test;

namespace {

constexpr weir::sim::explore_options many_orders{.runs = 300, .strategy = weir::sim::pct(3)};

}  // namespace

TEST(policy_order, permits_attempts_and_values_are_never_lost) {
  weir::testing::explore(many_orders, []() -> task<> {
    weir::counting_governor gov(2);
    weir::circuit_breaker cb({.minimum_calls = 1000});
    int inside = 0, calls = 0, done = 0;
    auto works = [&]() -> task<int> {
      const int me = ++calls;
      ++inside;
      const auto leave = weir::scope_exit([&] { --inside; });
      EXPECT_LE(inside, 2);
      co_await weir::sleep(me % 3 * 7ms);
      if (me % 4 == 0) throw boom(me);
      co_return me;
    };
    auto o = weir::op(works) | weir::bulkhead(gov) | weir::breaker(cb) |
             weir::retry({.attempts = 50, .base = 1ms}) | weir::hedge({.after = 10ms, .max = 3}) |
             weir::timeout(60s);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 5; ++i) {
        s.spawn([&]() -> task<> {
          (void)co_await o();
          ++done;
        });
      }
      co_await s.join();
    });
    EXPECT_EQ(done, 5);
    EXPECT_EQ(inside, 0);
    EXPECT_EQ(gov.active() + gov.waiting(), 0);
  });
}

TEST(policy_order, a_hedge_whose_attempts_end_at_one_instant_has_one_value) {
  weir::testing::explore({.runs = 500, .strategy = weir::sim::random}, []() -> task<> {
    int started = 0, ended = 0;
    auto even = [&]() -> task<int> {
      const int me = ++started;
      const auto count = weir::scope_exit([&] { ++ended; });
      co_await weir::sleep(me == 1 ? 20ms : 10ms);
      if (me == 3) throw boom(3);
      co_return me;
    };
    auto o = weir::op(even) | weir::hedge({.after = 10ms, .max = 3});
    const int won = co_await o();
    EXPECT_TRUE(won == 1 || won == 2);
    EXPECT_EQ(started, ended);
    EXPECT_EQ(live_timers(), 0);
  });
}

TEST(policy_order, a_probe_that_is_cancelled_at_any_point_leaves_its_place_free) {
  weir::testing::explore(many_orders, []() -> task<> {
    weir::circuit_breaker cb({.failure_ratio = 1, .minimum_calls = 1, .open_for = 1ms});
    bool bad = true;
    auto works = [&]() -> task<> {
      co_await weir::sleep(5ms);
      if (bad) throw boom(1);
    };
    auto o = weir::op(works) | weir::breaker(cb);
    (void)co_await error_of(o());
    co_await weir::sleep(1ms);
    bad = false;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto probe = s.spawn(weir::settle(o));
      auto other = s.spawn(weir::settle(o));
      co_await weir::sleep(5ms);
      probe.cancel();
      co_await s.idle();
    });
    co_await weir::sleep(1ms);
    (void)co_await error_of(o());
    EXPECT_EQ(cb.state(), weir::circuit_state::closed);
  });
}
