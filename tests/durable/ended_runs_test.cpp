// SPDX-License-Identifier: MIT
// The index of ended runs, against a simple model; and what it costs.
#include "durable/ended_runs.hpp"

#include <map>

#include "durable/support/stage.hpp"
#include "support/allocations.hpp"
#include "support/disk_support.hpp"

using namespace durable_test;
using weir::detail::ended_run;
using weir::detail::ended_runs;

namespace {

ended_run ended(std::uint64_t number, std::uint64_t id, std::int64_t at, std::uint32_t key = 0) {
  ended_run run;
  run.number = number;
  run.id_hash = id;
  run.key_hash = key;
  run.start = number * 10;
  run.end = number * 10 + 5;
  run.at = weir::wall_time(std::chrono::nanoseconds(at));
  run.bytes = number * 160;
  run.state = durable::run_state::failed;
  return run;
}

}  // namespace

TEST(ended_runs, behaves_like_a_map_under_random_use) {
  disk_support::generator random(7);
  ended_runs index;
  std::map<std::uint64_t, ended_run> model;
  std::int64_t clock = 1'000'000;
  for (std::uint64_t number = 1; number <= 20'000; ++number) {
    if (random.below(500) == 0) clock -= static_cast<std::int64_t>(random.below(1000));
    clock += static_cast<std::int64_t>(random.below(5));
    const auto key = static_cast<std::uint32_t>(random.below(3));
    const ended_run run = ended(number, random.below(64), clock, key);
    index.add(run);
    model.emplace(number, run);
    while (model.size() > 300) {
      const auto first = index.first();
      ASSERT_TRUE(first.has_value());
      for (const auto& [n, other] : model) ASSERT_LE(first->at, other.at);
      if (random.below(4) == 0) index.unqueue(first->number);
      index.remove(first->number);
      ASSERT_EQ(model.erase(first->number), 1u);
    }
    if (random.below(10) != 0) continue;
    const std::uint64_t some = number - random.below(std::min<std::uint64_t>(number, 400));
    ASSERT_EQ(index.contains(some), model.contains(some));
    if (!model.contains(some)) continue;
    EXPECT_EQ(index.find(some)->end, some * 10 + 5);
    EXPECT_EQ(index.find(some)->bytes, some * 160);
    std::vector<std::uint64_t> found;
    index.with_id(model[some].id_hash, found);
    std::size_t expected = 0;
    for (const auto& [n, other] : model)
      if (other.id_hash == model[some].id_hash) ++expected;
    EXPECT_EQ(found.size(), expected);
    if (random.below(5) == 0) {
      index.remove(some);
      model.erase(some);
    }
  }
  EXPECT_EQ(index.size(), model.size());
  EXPECT_EQ(index.numbers().size(), model.size());
}

TEST(ended_runs, cost_at_most_a_hundred_bytes_each_and_no_allocation) {
  for (const std::uint64_t n : {100'000ul, 230'000ul, 1'000'000ul}) {
    ended_runs index;
    test_support::begin_to_count();
    for (std::uint64_t i = 1; i <= n; ++i)
      index.add(ended(i, i * 0x9e37'79b9'7f4a'7c15U, static_cast<std::int64_t>(i),
                      static_cast<std::uint32_t>(i * 2'654'435'761U | 1U)));
    const long made = test_support::end_count();
    EXPECT_LE(index.memory(), 100 * n) << n;
    EXPECT_LE(made, static_cast<long>(n / 500)) << n;
  }
}
