// SPDX-License-Identifier: MIT
// Bounded stack: neither the number of items nor how deep generators call each other grows the
// machine stack. Every test runs on a thread with 256 KB of stack, 1 MB under a sanitizer.
#include "stream_support.hpp"
#include "support/small_stack.hpp"

using namespace weir_test;
using test_support::on_a_small_stack;
using test_support::sanitized;

namespace {

constexpr std::int64_t many = sanitized ? 1'000'000 : 10'000'000;
constexpr std::int64_t rejected = sanitized ? 300'000 : 3'000'000;
constexpr int spliced = sanitized ? 100'000 : 1'000'000;
constexpr int depth = 2'000;
constexpr int paused_depth = 100'000;

auto fused(std::int64_t items) {
  return weir::iota(std::int64_t{0}) | weir::map([](std::int64_t n) { return n + 1; }) |
         weir::filter([](std::int64_t n) { return n % 2 == 0; }) |
         weir::flat_map([](std::int64_t n) { return weir::once(n); }) | weir::take(items);
}

weir::stream<int> countdown(int from) {
  if (from == 0) co_return;
  co_yield from;
  auto rest = countdown(from - 1);
  for (;;) {
    auto v = co_await rest.next();
    if (!v) break;
    co_yield *v;
  }
}

/// Waits at the bottom only.
weir::stream<int> descend(int levels, long& alive) {
  ++alive;
  const auto leave = std::shared_ptr<void>(nullptr, [&alive](void*) { --alive; });
  if (levels == 0) {
    co_await weir::sleep(1ms);
    co_yield 1;
    co_await weir::sleep(1h);
    co_return;
  }
  auto below = descend(levels - 1, alive);
  for (;;) {
    auto v = co_await below.next();
    if (!v) break;
    co_yield *v;
  }
}

/// Every call is a fiber; waits at the bottom only.
weir::task<int> dive(int levels, weir::duration d, long& alive) {
  ++alive;
  const auto leave = weir::scope_exit([&alive] { --alive; });
  if (levels == 0) {
    co_await weir::sleep(d);
    co_return 0;
  }
  const auto [below] = co_await weir::all(dive(levels - 1, d, alive));
  co_return below + 1;
}

}  // namespace

TEST(stream_stack, ten_million_synchronous_items_through_a_pipeline) {
  on_a_small_stack([] {
    weir::run([]() -> task<> {
      auto s = fused(many / 2);
      std::int64_t items = 0;
      while (auto v = co_await s.next()) ++items;
      EXPECT_EQ(items, many / 2);
      auto counted = co_await (fused(many / 2) | weir::count());
      EXPECT_EQ(counted, many / 2);
    });
  });
}

TEST(stream_stack, three_million_rejected_items) {
  on_a_small_stack([] {
    weir::run([]() -> task<> {
      const auto reject = [](std::int64_t n) { return n >= rejected; };
      auto filtered = weir::iota(std::int64_t{0}) | weir::filter(reject);
      auto one = co_await filtered.next();
      EXPECT_EQ(*one, rejected);
      auto emptied = weir::iota(std::int64_t{0}, rejected) |
                     weir::flat_map([](std::int64_t) { return weir::empty<int>(); });
      auto none = co_await emptied.next();
      EXPECT_FALSE(none.has_value());
      auto erased =
          weir::any_stream<std::int64_t>(weir::iota(std::int64_t{0}) | weir::drop(rejected));
      auto dropped = co_await erased.next();
      EXPECT_EQ(*dropped, rejected);
    });
  });
}

TEST(stream_stack, switch_map_over_items_that_are_all_ready) {
  on_a_small_stack([] {
    weir::run([]() -> task<> {
      auto s = weir::iota(std::int64_t{0}, rejected) |
               weir::switch_map([](std::int64_t n) { return weir::once(n); });
      auto last = co_await (std::move(s) | weir::last());
      EXPECT_EQ(*last, rejected - 1);
    });
  });
}

TEST(stream_stack, a_million_start_with_and_concat_on_one_any_stream) {
  on_a_small_stack([] {
    weir::run([]() -> task<> {
      weir::any_stream<int> s = weir::empty<int>();
      for (int i = 0; i < spliced; ++i) s = std::move(s) | weir::start_with(i);
      for (int i = 0; i < spliced; ++i) s = weir::concat(std::move(s), weir::empty<int>());
      auto first = co_await s.next();
      EXPECT_EQ(*first, spliced - 1);
      std::int64_t items = 1;
      while (auto v = co_await s.next()) ++items;
      EXPECT_EQ(items, spliced);
      weir::any_stream<int> unused = weir::empty<int>();
      for (int i = 0; i < spliced; ++i) unused = std::move(unused) | weir::start_with(i);
    });
  });
}

TEST(stream_stack, thousands_of_streams_that_a_retry_makes_anew) {
  on_a_small_stack([] {
    weir::run([]() -> task<> {
      int made = 0;
      constexpr int wanted = sanitized ? 1'000 : 10'000;
      auto flaky = [&]() -> weir::stream<int> {
        ++made;
        co_yield made;
        if (made < wanted) throw boom(made);
      };
      auto s = weir::retry_stream(flaky, {.base = weir::duration(0)});
      auto last = co_await (std::move(s) | weir::last());
      EXPECT_EQ(*last, wanted);
    });
  });
}

TEST(stream_stack, a_generator_that_awaits_a_million_ready_tasks) {
  on_a_small_stack([] {
    weir::run([]() -> task<> {
      auto make = []() -> weir::stream<long> {
        long sum = 0;
        for (int i = 0; i < 1'000'000; ++i) sum += co_await ready(1);
        co_yield sum;
      };
      auto s = make();
      auto sum = co_await s.next();
      EXPECT_EQ(*sum, 1'000'000);
    });
  });
}

TEST(stream_stack, generators_that_pull_each_other_2000_deep) {
  on_a_small_stack([] {
    weir::run([]() -> task<> {
      auto s = countdown(depth);
      int expected = depth;
      while (auto v = co_await s.next()) EXPECT_EQ(*v, expected--);
      EXPECT_EQ(expected, 0);
    });
  });
}

TEST(stream_stack, generators_100000_deep_are_paused_resumed_and_destroyed) {
  on_a_small_stack([] {
    weir::sim::run({.seed = 1}, []() -> task<> {
      long alive = 0;
      {
        auto s = descend(paused_depth, alive);
        auto error = co_await error_of(weir::with_timeout(500us, s.next()));
        EXPECT_TRUE(holds<weir::timeout_error>(error));
        EXPECT_EQ(alive, paused_depth + 1);
        int one = co_await pull_one(s);
        EXPECT_EQ(one, 1);
        error = co_await error_of(weir::with_timeout(500us, s.next()));
        EXPECT_TRUE(holds<weir::timeout_error>(error));
      }
      EXPECT_EQ(alive, 0);
    });
  });
}

TEST(stream_stack, generators_100000_deep_are_destroyed_at_their_co_yield) {
  on_a_small_stack([] {
    weir::sim::run({.seed = 1}, []() -> task<> {
      long alive = 0;
      {
        auto s = descend(paused_depth, alive);
        int one = co_await pull_one(s);
        EXPECT_EQ(one, 1);
        EXPECT_EQ(alive, paused_depth + 1);
      }
      EXPECT_EQ(alive, 0);
    });
  });
}

namespace {

/// Pulls a stream that belongs to somebody else, from far below.
weir::stream<int> borrow(int levels, weir::stream<int>& from) {
  if (levels == 0) {
    for (;;) {
      auto v = co_await from.next();
      if (!v) co_return;
      co_yield *v;
    }
  }
  auto below = borrow(levels - 1, from);
  for (;;) {
    auto v = co_await below.next();
    if (!v) co_return;
    co_yield *v;
  }
}

}  // namespace

TEST(stream_stack, what_deep_generators_only_refer_to_is_not_destroyed_with_them) {
  on_a_small_stack([] {
    weir::sim::run({.seed = 1}, []() -> task<> {
      probe p{.items = {1, 2, 3}, .pause = 1ms};
      auto lent = feed(p);
      {
        auto s = borrow(1'000, lent);
        EXPECT_EQ(co_await pull_one(s), 1);
        (void)co_await error_of(weir::with_timeout(500us, s.next()));
      }
      EXPECT_EQ(p.left, 0);
      EXPECT_EQ(co_await pull_one(lent), 2);
    });
  });
}

TEST(stream_stack, a_generator_and_a_stage_that_recurse_by_all_100000_deep) {
  on_a_small_stack([] {
    in_order([]() -> task<> {
      long alive = 0;
      auto dives = [&]() -> weir::stream<int> {
        for (;;) co_yield co_await dive(paused_depth, 1ms, alive);
      };
      auto deep = dives();
      EXPECT_EQ(co_await deep.next(), paused_depth);
      auto late = co_await error_of(weir::with_timeout(500us, deep.next()));  // it is interrupted
      EXPECT_TRUE(test_support::holds<weir::timeout_error>(late));
      EXPECT_EQ(alive, 0);
      auto one = [&](int n) { return dive(paused_depth, n * 1ms, alive); };
      auto all = weir::iota(0) | weir::map_async(2, one);
      EXPECT_EQ(co_await all.next(), paused_depth);
      EXPECT_GT(alive, paused_depth);
      co_await all.close();
      EXPECT_EQ(alive, 0);
    });
  });
}
