// SPDX-License-Identifier: MIT
// Permits whose loop has ended come back on whatever threads hold them, at once and all of them.
#include <atomic>
#include <thread>
#include <vector>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

constexpr int threads = 4;
constexpr int units = 64;
constexpr int rounds = 100;

/// Takes all units in a loop of their own, which ends with the permits out.
std::vector<weir::permit> take_all(weir::counting_governor& g) {
  std::vector<weir::permit> taken;
  weir::run([&]() -> task<> {
    for (int i = 0; i < units; ++i) taken.push_back(co_await g.acquire());
  });
  return taken;
}

/// Gives every permit to one of the threads, which all begin at once.
template <class F>
void on_threads(std::vector<weir::permit>& permits, F release) {
  std::atomic<int> ready{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      ++ready;
      while (ready < threads) std::this_thread::yield();
      for (std::size_t i = static_cast<std::size_t>(t); i < permits.size(); i += threads)
        release(permits[i]);
    });
  }
  for (std::thread& t : all) t.join();
}

}  // namespace

TEST(permit, released_by_several_threads_after_their_loop_has_ended_all_come_back) {
  for (int round = 0; round < rounds; ++round) {
    weir::counting_governor g(units);
    auto permits = take_all(g);
    EXPECT_EQ(static_cast<int>(g.active()), units);
    on_threads(permits, [](weir::permit& p) { p.release(); });
    EXPECT_EQ(static_cast<int>(g.active()), 0);
  }
}

TEST(permit, destroyed_by_several_threads_after_their_loop_has_ended_all_come_back) {
  for (int round = 0; round < rounds; ++round) {
    weir::counting_governor g(units);
    auto permits = take_all(g);
    on_threads(permits, [](weir::permit& p) { const weir::permit last = std::move(p); });
    EXPECT_EQ(static_cast<int>(g.active()), 0);
  }
}

TEST(permit, released_by_several_threads_while_their_loop_ends_all_come_back) {
  for (int round = 0; round < rounds; ++round) {
    weir::counting_governor g(units);
    std::vector<weir::permit> permits;
    std::atomic<bool> taken{false};
    std::thread releasers([&] {
      while (!taken) std::this_thread::yield();
      on_threads(permits, [](weir::permit& p) { p.release(); });
    });
    weir::run([&]() -> task<> {
      for (int i = 0; i < units; ++i) permits.push_back(co_await g.acquire());
      taken = true;
    });
    releasers.join();
    EXPECT_EQ(static_cast<int>(g.active()), 0);
  }
}

TEST(permit, after_its_loop_has_ended_a_governor_serves_the_next_one) {
  weir::counting_governor g(units);
  auto permits = take_all(g);
  on_threads(permits, [](weir::permit& p) { p.release(); });
  auto again = take_all(g);
  EXPECT_EQ(again.size(), static_cast<std::size_t>(units));
  again.clear();
  EXPECT_EQ(static_cast<int>(g.active()), 0);
}

TEST(permit, of_a_loop_that_has_ended_wakes_a_waiter_in_the_next_loop_of_its_governor) {
  weir::counting_governor g(units);
  auto permits = take_all(g);
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto waiter = s.spawn([&]() -> task<> { weir::permit p = co_await g.acquire(); });
      while (g.waiting() == 0) co_await weir::yield();
      permits.back().release();
      co_await waiter;
    });
  });
  permits.clear();
  EXPECT_EQ(static_cast<int>(g.active()), 0);
}

TEST(permit, of_a_loop_that_has_ended_may_be_released_by_a_thread_while_the_next_loop_waits) {
  weir::counting_governor g(units);
  auto permits = take_all(g);
  weir::run([&]() -> task<> {
    std::thread other;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto waiter = s.spawn([&]() -> task<> { weir::permit p = co_await g.acquire_for(1h); });
      while (g.waiting() == 0) co_await weir::yield();
      other = std::thread([&] { permits.back().release(); });
      co_await waiter;
    });
    other.join();
  });
  permits.clear();
  EXPECT_EQ(static_cast<int>(g.active()), 0);
}
