// SPDX-License-Identifier: MIT
// What policies share between threads: breakers, budgets and counts. And what they must not share.
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "policy_support.hpp"

using namespace policy_test;
using weir::circuit_state;

namespace {

constexpr int calling_threads = 4;

/// Runs `body(i)` on so many threads at the same time, each with a loop of its own.
template <class F>
void on_threads(F body) {
  std::vector<std::thread> all;
  std::latch start(calling_threads);
  for (int i = 0; i < calling_threads; ++i) {
    all.emplace_back([&, i] {
      start.arrive_and_wait();
      weir::run([&]() -> task<> { co_await body(i); });
    });
  }
  for (std::thread& t : all) t.join();
}

}  // namespace

TEST(policy_threads, the_limit_of_a_budget_holds_for_all_threads_together) {
  weir::retry_budget budget({.ratio = 0.2, .min_per_second = 0, .window = 1h});
  std::atomic<int> runs{0};
  constexpr int calls = 200;
  on_threads([&](int) -> task<> {
    auto fails = [&]() -> task<> {
      ++runs;
      co_await weir::yield();
      throw boom(1);
    };
    auto o = weir::op(fails) | weir::retry({.attempts = 3, .base = 0ms, .budget = &budget});
    for (int i = 0; i < calls; ++i) (void)co_await error_of(o());
  });
  const int firsts = calling_threads * calls;
  EXPECT_LE(runs.load(), firsts + firsts / 5);
  EXPECT_GT(runs.load(), firsts + firsts / 10);
}

TEST(policy_threads, a_breaker_opens_once_and_rejects_everywhere) {
  weir::circuit_breaker cb(
      {.name = "shared by threads", .failure_ratio = 1, .minimum_calls = 100, .open_for = 1h});
  std::atomic<int> ran{0}, rejected{0};
  constexpr int calls = 200;
  on_threads([&](int) -> task<> {
    auto fails = [&]() -> task<> {
      ++ran;
      co_await weir::yield();
      throw boom(1);
    };
    auto o = weir::op(fails) | weir::breaker(cb);
    for (int i = 0; i < calls; ++i) {
      const auto error = co_await error_of(o());
      rejected += holds<weir::circuit_open_error>(error) ? 1 : 0;
    }
  });
  EXPECT_GE(ran.load(), 100);
  EXPECT_LT(ran.load(), 100 + calling_threads);
  EXPECT_EQ(rejected.load(), calling_threads * calls - ran.load());
  EXPECT_EQ(cb.state(), circuit_state::open);
  EXPECT_EQ(weir::stats().counter("shared by threads", "opened"), 1u);
  EXPECT_EQ(weir::stats().counter("shared by threads", "rejected"),
            static_cast<std::uint64_t>(rejected.load()));
}

TEST(policy_threads, half_open_no_more_than_its_probes_run_on_all_threads_together) {
  weir::circuit_breaker cb({.failure_ratio = 1, .minimum_calls = 1, .open_for = 0s, .probes = 2});
  std::atomic<int> inside{0}, most{0};
  on_threads([&](int) -> task<> {
    auto fails = [&]() -> task<> {
      const int now = ++inside;
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
      co_await weir::yield();
      --inside;
      throw boom(1);
    };
    auto o = weir::op(fails) | weir::breaker(cb);
    for (int i = 0; i < 300; ++i) (void)co_await error_of(o());
  });
  // Closed at the very beginning, one call of each thread may be inside.
  EXPECT_LE(most.load(), calling_threads + 2);
  EXPECT_NE(cb.state(), circuit_state::isolated);
}
TEST(policy_threads, resets_and_isolations_at_the_same_time_leave_a_state_that_works) {
  weir::circuit_breaker cb({.failure_ratio = 0.5, .minimum_calls = 1, .open_for = 0s});
  on_threads([&](int number) -> task<> {
    flaky f(1000);
    auto o = weir::op(f.operation()) | weir::breaker(cb);
    for (int i = 0; i < 300; ++i) {
      if (number == 0) cb.reset();
      if (number == 1) cb.isolate();
      (void)co_await error_of(o());
      (void)cb.state();
    }
  });
  cb.reset();
  EXPECT_EQ(cb.state(), circuit_state::closed);
  weir::run([&]() -> task<> {
    auto o = weir::op([] { return ready(1); }) | weir::breaker(cb);
    EXPECT_EQ(co_await o(), 1);
  });
}

TEST(policy_threads, counts_of_all_threads_are_added_up_while_they_count) {
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!done) {
      const std::uint64_t now = weir::stats().counter("counted by threads", "value");
      EXPECT_GE(now, last);
      last = now;
    }
  });
  constexpr int calls = 500;
  for (int round = 0; round < 3; ++round) {  // tables of threads that ended are used again
    on_threads([&](int) -> task<> {
      auto o = weir::op([] { return ready(1); }) | weir::trace("counted by threads");
      for (int i = 0; i < calls; ++i) (void)co_await o();
    });
  }
  done = true;
  reader.join();
  EXPECT_EQ(weir::stats().counter("counted by threads", "value"), 3u * calling_threads * calls);
}

TEST(policy_threads, one_operation_may_run_on_several_loops_at_once) {
  std::atomic<int> runs{0};
  weir::circuit_breaker cb;
  weir::retry_budget budget;
  const auto o = weir::op([&]() -> task<> {
                   ++runs;
                   co_await weir::yield();
                 }) |
                 weir::timeout(1h) | weir::retry({.budget = &budget}) | weir::hedge({.after = 1h}) |
                 weir::breaker(cb) | weir::fallback([] {}) | weir::trace("several loops") |
                 weir::supervise() | weir::chaos();
  on_threads([&](int) -> task<> {
    for (int i = 0; i < 50; ++i) co_await o();
  });
  EXPECT_EQ(runs.load(), calling_threads * 50);
}

TEST(policy_threads, what_belongs_to_one_loop_is_refused_on_another_while_that_runs) {
  auto bulkhead = weir::bulkhead(1);
  auto hedge = weir::hedge({.quantile = 0.5, .min_samples = 1});
  auto quick = weir::op([] { return ready(1); });
  weir::run([&]() -> task<> {
    EXPECT_EQ(co_await (quick | bulkhead)(), 1);
    EXPECT_EQ(co_await (quick | hedge)(), 1);
    std::exception_ptr by_bulkhead, by_hedge;
    std::thread other([&] {
      by_bulkhead = thrown_by([&] { return weir::run(quick | bulkhead); });
      by_hedge = thrown_by([&] { return weir::run(quick | hedge); });
    });
    other.join();
    EXPECT_EQ(code_of(by_bulkhead), errc::wrong_loop);
    EXPECT_TRUE(contains(what_of(by_bulkhead), "shared_governor"));
    EXPECT_EQ(code_of(by_hedge), errc::wrong_loop);
    co_return;
  });
  EXPECT_EQ(weir::run(quick | bulkhead), 1);  // the home has ended
  EXPECT_EQ(weir::run(quick | hedge), 1);
}
