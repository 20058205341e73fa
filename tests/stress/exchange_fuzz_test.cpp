// SPDX-License-Identifier: MIT
// Random exchanges: fibers put items into one container and take items out of it through
// composites of all kinds, also with two arms on the same object. What is checked is what the page
// promises: a withdrawn arm leaves no trace, nothing is lost, nothing arrives twice, and every wait
// that can complete does.
#include <gtest/gtest.h>

#include "stress/exchange_plan.hpp"
#include "stress/fuzz_main.hpp"

namespace {

const fuzz::fuzzed exchanges{
    "exchange_fuzz",
    [](std::uint64_t seed) { return fuzz::to_text(fuzz::make_exchange_plan(seed)); },
    [](std::uint64_t seed) { return fuzz::run_exchange(fuzz::make_exchange_plan(seed)); }};

}  // namespace

class exchange_fuzz : public testing::TestWithParam<int> {};

TEST_P(exchange_fuzz, composites_on_containers_lose_nothing) {
  fuzz::run_shard(exchanges, GetParam());
}

INSTANTIATE_TEST_SUITE_P(shard, exchange_fuzz, testing::Range(0, fuzz::shards));
