// SPDX-License-Identifier: MIT
// Concurrent streams of several loops under one shared governor: never more at once than it says,
// no item and no permit lost, also if pulls are given up while a grant is on its way.
#include <atomic>

#include "stream_async_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;

namespace {

constexpr int items_per_stream = test_support::sanitized ? 300 : 2'000;

/// Says how many pulls of all loops are under way.
struct gauge {
  std::atomic<int> now{0};
  std::atomic<int> most{0};

  void enter() {
    const int seen = ++now;
    int before = most;
    while (before < seen && !most.compare_exchange_weak(before, seen)) {
    }
  }
  void leave() { --now; }
};

weir::stream<int> measured(gauge& g, int last) {
  for (int i = 1; i <= last; ++i) {
    g.enter();
    co_await weir::yield();
    g.leave();
    co_yield i;
  }
}

task<> read_all(int_stream s, std::atomic<long>& sum) {
  for (;;) {
    auto v = co_await s.next();
    if (!v) co_return;
    sum += *v;
  }
}

/// Takes items, and gives a pull up now and then.
task<> read_impatiently(int_stream s, std::atomic<long>& sum) {
  for (;;) {
    auto won = co_await weir::race(s.next(), weir::sleep(2us));
    if (won.index() == 1) continue;
    if (!std::get<0>(won)) co_return;
    sum += *std::get<0>(won);
  }
}

}  // namespace

TEST(stream_async_threads, limited_streams_of_three_loops_share_two_permits) {
  weir::shared_governor g(2);
  gauge all;
  std::atomic<long> sum{0};
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s), b(s);
      auto limited = [&] {
        return int_stream(int_stream(measured(all, items_per_stream)) | weir::limit(g));
      };
      s.spawn_on(a, read_all(limited(), sum));
      s.spawn_on(b, read_all(limited(), sum));
      s.spawn(read_all(limited(), sum));
      co_await s.join();
    });
  });
  EXPECT_EQ(sum, 3L * items_per_stream * (items_per_stream + 1) / 2);
  EXPECT_LE(all.most, 2);
  EXPECT_EQ(g.active(), 0);
}

TEST(stream_async_threads, limited_pulls_that_are_given_up_lose_no_item_and_no_permit) {
  weir::shared_governor g(1);
  std::atomic<long> sum{0};
  plant one;
  plant two;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s);
      s.spawn_on(a,
                 read_impatiently(int_stream(items(one, items_per_stream)) | weir::limit(g), sum));
      s.spawn(read_impatiently(int_stream(items(two, items_per_stream)) | weir::limit(g), sum));
      co_await s.join();
    });
  });
  EXPECT_EQ(sum, 1L * items_per_stream * (items_per_stream + 1));
  EXPECT_EQ(g.active(), 0);
  EXPECT_EQ(g.waiting(), 0);
}

TEST(stream_async_threads, work_of_two_loops_shares_a_governor_and_gives_everything_back) {
  weir::shared_governor g(3);
  std::atomic<long> sum{0};
  gauge all;
  worker fn = [&](int i) -> task<int> {
    return [](gauge& at, int value) -> task<int> {
      at.enter();
      co_await weir::yield();
      at.leave();
      co_return value;
    }(all, i);
  };
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread a(s);
      auto mapped = [&](plant& p) {
        return int_stream(int_stream(items(p, items_per_stream)) |
                          weir::map_async_unordered(g, fn));
      };
      plant one;
      plant two;
      s.spawn_on(a, read_all(mapped(one), sum));
      s.spawn(read_impatiently(mapped(two), sum));
      co_await s.join();
    });
  });
  EXPECT_EQ(sum, 1L * items_per_stream * (items_per_stream + 1));
  EXPECT_LE(all.most, 3);
  EXPECT_EQ(g.active(), 0);
}
