// SPDX-License-Identifier: MIT
// Power failures beside objects, compactions and changes of the key. WEIR_CRASH_STATES scales their
// number, as in journal_crash_test.cpp.
#include <cstdlib>

#include <gtest/gtest.h>

#include "durable/object_power.hpp"

namespace {

constexpr std::uint64_t lives_per_engine = 12;

std::uint64_t power_failures() {
  const char* text = std::getenv("WEIR_CRASH_STATES");
  return (text != nullptr ? std::stoull(text) : 50'000) / 100;
}

void lose_power_often(std::uint64_t failures, std::uint64_t first_seed) {
  std::size_t acknowledged = 0;
  std::size_t compactions = 0;
  for (std::uint64_t done = 0, seed = first_seed; done < failures; ++seed) {
    journal_aid::object_power_model model(seed);
    for (std::uint64_t i = 0; i < lives_per_engine; ++i, ++done) {
      try {
        model.live_and_crash();
      } catch (const journal_aid::violation& v) {
        FAIL() << "seed " << seed << ", life " << i + 1 << ": " << v.what();
      }
    }
    acknowledged += model.acknowledged();
    compactions += model.compactions();
  }
  EXPECT_GT(acknowledged, failures);  // else nothing was at stake
  EXPECT_GT(compactions, failures / 20);
}

}  // namespace

// The suite's name makes them part of a torture run.

TEST(journal_crash_of_objects, loses_no_state_and_no_turn_in_compactions_and_changes_of_the_key) {
  lose_power_often(power_failures() / 2, 1);
}

TEST(journal_crash_of_objects, with_other_seeds_loses_nothing_either) {
  lose_power_often(power_failures() / 2, 1'000'000);
}
