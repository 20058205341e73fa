// SPDX-License-Identifier: MIT
// Random pipelines: random sources, operators, consumers, cancellations and hostile items, in
// simulated time and order. What is checked in each is what the page about streams promises: no
// item of a lossless pipeline is lost, doubled or out of order, errors arrive and no others do,
// what ends does end, each generator is left once and its guards know why, permits come back, and
// nothing is left behind.
#include <gtest/gtest.h>

#include "stress/fuzz_main.hpp"
#include "stress/pipeline_world.hpp"

namespace {

const fuzz::fuzzed pipelines{
    "pipeline_fuzz",
    [](std::uint64_t seed) { return fuzz::to_text(fuzz::make_pipeline_plan(seed)); },
    [](std::uint64_t seed) { return fuzz::run_pipeline(fuzz::make_pipeline_plan(seed)); }};

}  // namespace

class pipeline_fuzz : public testing::TestWithParam<int> {};

TEST_P(pipeline_fuzz, random_pipelines_keep_every_promise) {
  fuzz::run_shard(pipelines, GetParam());
}

INSTANTIATE_TEST_SUITE_P(shard, pipeline_fuzz, testing::Range(0, fuzz::shards));
