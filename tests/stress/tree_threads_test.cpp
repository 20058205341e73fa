// SPDX-License-Identifier: MIT
// Random trees of combinators over pools, loops, blocking calls, agents and streams, which are
// cancelled, limited, closed or crashed at any moment; in a simulation and on threads. See
// tree_run.cpp for what is checked.
#include <gtest/gtest.h>

#include "stress/fuzz_main.hpp"
#include "stress/tree_plan.hpp"

namespace {

fuzz::fuzzed trees(const char* name, bool threads, std::uint64_t seeds) {
  return {
      name,
      [threads](std::uint64_t seed) { return fuzz::to_text(fuzz::make_tree_plan(seed, threads)); },
      [threads](std::uint64_t seed) {
        return fuzz::run_tree(fuzz::make_tree_plan(seed, threads), threads);
      },
      seeds};
}

}  // namespace

class tree_fuzz : public testing::TestWithParam<int> {};

TEST_P(tree_fuzz, an_operation_ends_after_what_it_started_in_every_order) {
  fuzz::run_shard(trees("in_every_order", false, 2000), GetParam());
}

TEST_P(tree_fuzz, an_operation_ends_after_what_it_started_on_threads) {
  fuzz::run_shard(trees("on_threads", true, 400), GetParam());
}

INSTANTIATE_TEST_SUITE_P(shard, tree_fuzz, testing::Range(0, fuzz::shards));
