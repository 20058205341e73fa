// SPDX-License-Identifier: MIT
// Runs programs made from seeds. The one that fails is printed, also if the process dies of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fuzz {

struct fuzzed {
  const char* name;                                // of the test, for the command that repeats it
  std::function<std::string(std::uint64_t)> text;  // the program of a seed
  std::function<std::string(std::uint64_t)> run;   // what went wrong, or nothing
  std::uint64_t seeds = 10'000;
};

inline constexpr int shards = 4;

/// One part of the seeds; a gtest failure for each that fails.
///
/// WEIR_FUZZ_SEED=n runs that seed only; WEIR_FUZZ_SEEDS is the number of all, WEIR_FUZZ_FIRST the
/// first of them, WEIR_FUZZ_FAILURES how many may fail before it gives up (3).
void run_shard(const fuzzed& what, int shard);

}  // namespace fuzz
