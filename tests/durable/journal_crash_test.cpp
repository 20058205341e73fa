// SPDX-License-Identifier: MIT
// Power failures at every kind of moment, over what earlier lives have left: nothing that was
// acknowledged is lost, nothing else is ever taken for it. WEIR_CRASH_STATES says how many
// crashes; the default fits into every build.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "durable/crash_model.hpp"

using namespace journal_aid;

namespace {

constexpr std::uint64_t lives_per_journal = 12;

std::uint64_t crash_states() {
  const char* text = std::getenv("WEIR_CRASH_STATES");
  return text != nullptr ? std::stoull(text) : 50'000;
}

/// So many crashes; `faults` are what happens besides.
void crash_often(std::uint64_t states, std::uint64_t frame_bytes, std::uint64_t first_seed,
                 const weir::sim::disk_faults& faults = {}) {
  std::size_t acknowledged = 0;
  for (std::uint64_t done = 0, seed = first_seed; done < states; ++seed) {
    crash_model model(seed, frame_bytes);
    model.set(faults);
    for (std::uint64_t i = 0; i < lives_per_journal; ++i, ++done) {
      try {
        model.live_and_crash();
      } catch (const violation& v) {
        FAIL() << "seed " << seed << ", life " << i + 1 << ": " << v.what();
      }
    }
    acknowledged += model.acknowledged();
  }
  EXPECT_GT(acknowledged, states);  // else nothing was at stake
}

}  // namespace

// Three tests together make that number, because each has a time limit of its own.

TEST(journal_crash, loses_and_invents_nothing_with_a_frame_for_each_record) {
  crash_often(crash_states() * 2 / 5, 1, 1);
}

TEST(journal_crash, loses_and_invents_nothing_with_several_records_in_a_frame) {
  crash_often(crash_states() * 3 / 10, 2048, 1'000'000);
}

TEST(journal_crash, loses_and_invents_nothing_with_a_frame_for_each_batch) {
  crash_often(crash_states() * 3 / 10, 1 << 18, 2'000'000);
}

TEST(journal_crash, short_writes_change_nothing) {
  crash_often(crash_states() / 10, 1, 3'000'000, {.short_write = 0.3});
}

TEST(journal_crash, errors_of_the_disk_stop_it_and_opening_it_again_loses_nothing) {
  const weir::sim::disk_faults faults{.short_write = 0.1, .eio = 0.002, .sync_error = 0.02};
  crash_often(crash_states() / 10, 1, 4'000'000, faults);
  crash_often(crash_states() / 10, 1 << 18, 5'000'000, faults);
}
