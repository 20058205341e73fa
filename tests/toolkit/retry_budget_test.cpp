// SPDX-License-Identifier: MIT
// retry_budget: what it grants within any window, and what it denies.
#include <deque>
#include <limits>
#include <random>

#include "policy_support.hpp"
#include "toolkit/budget_core.hpp"

using namespace policy_test;
using weir::retry_budget;
using weir::retry_budget_options;

namespace {

/// Calls an operation that always fails once, with a second attempt if the budget grants it.
class caller {
 public:
  explicit caller(retry_budget& b) : budget_(b) {}
  /// How many of so many calls got their second attempt.
  task<int> calls(int n) {
    int runs = 0;
    auto fails = [&]() -> task<> {
      ++runs;
      throw boom(runs);
      co_return;
    };
    auto o = weir::op(fails) | weir::retry({.attempts = 2, .base = 0ms, .budget = &budget_});
    for (int i = 0; i < n; ++i) (void)co_await error_of(o());
    co_return runs - n;
  }

 private:
  retry_budget& budget_;
};

}  // namespace
FIBER_TEST(retry_budget, it_grants_its_ratio_of_the_first_attempts_and_the_reserve) {
  retry_budget ratio({.ratio = 0.2, .min_per_second = 0, .window = 10s});
  caller by_ratio(ratio);
  EXPECT_EQ(co_await by_ratio.calls(100), 20);
  retry_budget both({.ratio = 0.2, .min_per_second = 1, .window = 10s});
  caller by_both(both);
  EXPECT_EQ(co_await by_both.calls(100), 30);
  retry_budget third({.ratio = 0.29, .min_per_second = 0, .window = 10s});
  caller by_third(third);
  EXPECT_EQ(co_await by_third.calls(100), 29);  // 0.29 x 100 is a little below 29 in binary
}
FIBER_TEST(retry_budget, without_first_attempts_that_count_the_reserve_is_granted) {
  retry_budget b({.ratio = 0, .min_per_second = 2, .window = 5s});
  caller c(b);
  EXPECT_EQ(co_await c.calls(100), 10);
  co_await weir::sleep(5s - 1ns);
  EXPECT_EQ(co_await c.calls(100), 0);
  co_await weir::sleep(1ns);
  EXPECT_EQ(co_await c.calls(100), 10);
}
FIBER_TEST(retry_budget, first_attempts_expire_with_the_window) {
  retry_budget b({.ratio = 0.5, .min_per_second = 0, .window = 10s});
  auto fine = weir::op([] { return ready(1); }) | weir::retry({.budget = &b});
  for (int i = 0; i < 100; ++i) (void)co_await fine();
  co_await weir::sleep(10s - 1ns);
  caller c(b);
  EXPECT_EQ(co_await c.calls(1), 1);
  co_await weir::sleep(1ns);
  EXPECT_EQ(co_await c.calls(10), 4);  // 11 first attempts are left, one retry was granted
}
FIBER_TEST(retry_budget, a_denial_gives_the_original_error_and_is_told_once) {
  retry_budget none({.ratio = 0, .min_per_second = 0});
  flaky f(100);
  auto o = weir::op(f.operation()) | weir::retry({.attempts = 5, .budget = &none});
  const event_record events;
  const stopwatch time;
  EXPECT_EQ(boom_of(co_await error_of(o())), 1);
  EXPECT_EQ(f.runs, 1);
  EXPECT_EQ(time.ms(), 0);
  EXPECT_EQ(events.count("budget_denied"), 1);
  EXPECT_EQ(events.of("budget_denied").at(0).object, "retry");
  EXPECT_EQ(events.count("retry"), 0);
}

FIBER_TEST(retry_budget, what_is_not_tried_again_for_another_reason_is_not_charged) {
  retry_budget b({.ratio = 0, .min_per_second = 1, .window = 1s});
  flaky f(100);
  auto stops =
      weir::op(f.operation()) |
      weir::retry({.attempts = 5, .base = 1s, .budget = &b}).when([](const std::exception_ptr&) {
        return false;
      });
  auto late = weir::op(f.operation()) |
              weir::retry({.attempts = 5, .base = 1s, .jitter = weir::jitter::none, .budget = &b}) |
              weir::timeout(1s);
  (void)co_await error_of(stops());
  (void)co_await error_of(late());
  caller c(b);
  EXPECT_EQ(co_await c.calls(5), 1);
}
FIBER_TEST(retry_budget, it_is_shared_by_retries_and_hedges) {
  retry_budget b({.ratio = 0, .min_per_second = 2, .window = 1s});
  caller c(b);
  EXPECT_EQ(co_await c.calls(1), 1);
  int runs = 0;
  auto slow = [&]() -> task<> {
    ++runs;
    co_await weir::sleep(10ms);
  };
  auto hedged = weir::op(slow) | weir::hedge({.after = 1ms, .max = 5, .budget = &b});
  co_await hedged();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(co_await c.calls(1), 0);
}

// Against the definition: every grant must fit into the window that ends with it.
TEST(retry_budget, no_grant_exceeds_the_bound_of_its_window_whatever_the_order_of_calls) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    const double ratio = static_cast<double>(random() % 10) / 10;
    const double reserve = static_cast<double>(random() % 5);
    const weir::duration window = 1s;
    weir::detail::budget_core core({.ratio = ratio, .min_per_second = reserve, .window = window});
    std::deque<weir::time_point> firsts, granted;
    weir::time_point now{};
    int grants = 0;
    for (int i = 0; i < 5000; ++i) {
      now += weir::duration(static_cast<std::int64_t>(random() % 4'000'000));
      const auto forget = [&](auto& times) {
        while (!times.empty() && now - times.front() >= window) times.pop_front();
      };
      forget(firsts);
      forget(granted);
      if (random() % 2 == 0) {
        core.first_attempt(now);
        firsts.push_back(now);
      } else if (core.grants(now)) {
        granted.push_back(now);
        ++grants;
        const double bound = ratio * static_cast<double>(firsts.size()) + reserve;
        ASSERT_LE(static_cast<double>(granted.size()), bound + 1e-6);
      }
    }
    if (ratio + reserve > 0) {
      EXPECT_GT(grants, 0);
    }
  }
}

TEST(retry_budget, bad_options_are_refused_when_it_is_made) {
  const auto made = [](retry_budget_options o) { return thrown_by([&] { retry_budget b(o); }); };
  expect_invalid(made({.ratio = -0.1}), "ratio");
  expect_invalid(made({.ratio = std::numeric_limits<double>::quiet_NaN()}), "ratio");
  expect_invalid(made({.min_per_second = -1}), "min_per_second");
  expect_invalid(made({.window = 0s}), "window");
  expect_invalid(made({.window = -1s}), "window");
  EXPECT_EQ(made({}), nullptr);
  retry_budget empty({});
  retry_budget usual;
}
