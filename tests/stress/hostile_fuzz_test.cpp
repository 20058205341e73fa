// SPDX-License-Identifier: MIT
// Random programs over containers of hostile items: destructors that call back into the container
// they came from, and moves that throw. Items' destructors may use their container, so nothing is
// destroyed twice, leaked, or used afterwards.
#include <gtest/gtest.h>

#include "stress/fuzz_main.hpp"
#include "stress/hostile_plan.hpp"

namespace {

const fuzz::fuzzed programs{
    "hostile_fuzz", [](std::uint64_t seed) { return fuzz::to_text(fuzz::make_hostile_plan(seed)); },
    [](std::uint64_t seed) { return fuzz::run_hostile(fuzz::make_hostile_plan(seed)); }};

}  // namespace

class hostile_fuzz : public testing::TestWithParam<int> {};

TEST_P(hostile_fuzz, destructors_of_items_may_use_their_container) {
  fuzz::run_shard(programs, GetParam());
}

INSTANTIATE_TEST_SUITE_P(shard, hostile_fuzz, testing::Range(0, fuzz::shards));
