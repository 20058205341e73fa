// SPDX-License-Identifier: MIT
// Many keys, and many turns of one key: what the engine looks at grows in proportion to them, not
// with their square. Visits are counted, not time.
#include <cstdint>
#include <functional>

#include "durable/support/stage.hpp"
#include "durable/visits.hpp"

using namespace durable_test;

namespace {

using weir::detail::list_visits;

task<int> counts_up() {
  auto count = weir::stored<int>("count");
  const std::optional<int> old = co_await count.get();
  count.set(old.value_or(0) + 1);
  co_return old.value_or(0) + 1;
}

task<int> counts_up_after_a_while() {
  co_await weir::sleep(1h);
  co_return co_await counts_up();
}

task<int> calls_the_hot_key() {
  const weir::call_options hot{.key = "hot"};
  co_return co_await weir::call<int>("o/slow", weir::unit{}, hot);
}

task<int> sends_to_many(int n) {
  for (int i = 0; i < n; ++i) {
    const std::string key = std::to_string(i);
    (void)co_await weir::send("o/up", weir::unit{}, {.key = key});
  }
  co_return n;
}

void add_counters(durable::engine& e) {
  e.add_object("o",
               {{"up", counts_up}, {"slow", counts_up_after_a_while}, {"many", sends_to_many}});
  e.add("calls", calls_the_hot_key);
}

durable::engine_options roomy(const stage& on) {
  durable::engine_options options = options_for(on);
  options.max_live = 100'000;
  options.segment_bytes = 16 * smallest_segment;
  return options;
}

std::uint64_t object_visits(const stage& on, const user& use) {
  const std::uint64_t before = list_visits;
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(roomy(on), add_counters, use));
  return list_visits - before;
}

void expect_proportional(const std::function<std::uint64_t(int)>& visits) {
  const std::uint64_t few = visits(300);
  const std::uint64_t many = visits(1200);
  EXPECT_GT(few, 300u / 2);
  EXPECT_LE(many, 5 * few) << few << " visits for 300, " << many << " for 1200";
  EXPECT_LE(many, 20u * 1200);
}

task<> start_turns(durable::engine& e, int n, bool one_key) {
  for (int i = 0; i < n; ++i) {
    const std::string key = one_key ? "hot" : "k" + std::to_string(i);
    const std::string id = "r" + std::to_string(i);
    (void)co_await e.start<int>("o/slow", {.id = id, .key = key});
  }
}

task<> finish_turns(durable::engine& e, int n, bool one_key) {
  co_await start_turns(e, n, one_key);
  const std::string key = one_key ? "hot" : "k" + std::to_string(n - 1);
  const std::string id = "r" + std::to_string(n - 1);
  auto last = co_await e.start<int>("o/slow", {.id = id, .key = key});
  EXPECT_EQ(co_await last.result(), one_key ? n : 1);
}

}  // namespace

TEST(durable_object_growth, queued_turns_of_one_key) {
  expect_proportional([](int n) {
    const stage on;
    return object_visits(on, [n](durable::engine& e) { return finish_turns(e, n, true); });
  });
}

TEST(durable_object_growth, queued_turns_of_one_key_that_are_recovered) {
  expect_proportional([](int n) {
    const stage on;
    (void)object_visits(on, [n](durable::engine& e) { return start_turns(e, n, true); });
    return object_visits(on, [n](durable::engine& e) { return finish_turns(e, n, true); });
  });
}

TEST(durable_object_growth, queued_turns_that_are_cancelled_from_the_back) {
  expect_proportional([](int n) {
    const stage on;
    return object_visits(on, [n](durable::engine& e) -> task<> {
      co_await start_turns(e, n, true);
      for (int i = n; i-- > 0;) EXPECT_TRUE(e.cancel("r" + std::to_string(i)));
    });
  });
}

TEST(durable_object_growth, keys) {
  expect_proportional([](int n) {
    const stage on;
    return object_visits(on, [n](durable::engine& e) { return finish_turns(e, n, false); });
  });
}

TEST(durable_object_growth, runs_that_call_one_key) {
  expect_proportional([](int n) {
    const stage on;
    return object_visits(on, [n](durable::engine& e) -> task<> {
      std::vector<durable::run_handle<int>> all;
      for (int i = 0; i < n; ++i) all.push_back(co_await e.start<int>("calls"));
      int sum = 0;
      for (const auto& run : all) sum += co_await run.result();
      EXPECT_EQ(sum, n * (n + 1) / 2);
    });
  });
}

TEST(durable_object_growth, sends_of_one_turn) {
  expect_proportional([](int n) {
    const stage on;
    const std::uint64_t first = object_visits(on, [n](durable::engine& e) -> task<> {
      auto run = co_await e.start<int>("o/many", {.key = "k"}, n);
      EXPECT_EQ(co_await run.result(), n);
    });
    return first + object_visits(on, [](durable::engine&) -> task<> { co_await weir::sleep(1s); });
  });
}
