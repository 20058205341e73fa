// SPDX-License-Identifier: MIT
// Power failures at every kind of moment, over the files of earlier lives: nothing that was
// acknowledged is lost, and nothing else is mistaken for it. WEIR_CRASH_STATES is the number of
// crashes; the default suits every build.
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

/// So many crashes; `faults` are what happens besides. `encrypted_from`: a life; 0: none.
void crash_often(std::uint64_t states, std::uint64_t frame_bytes, std::uint64_t first_seed,
                 const weir::sim::disk_faults& faults = {}, std::uint64_t encrypted_from = 0,
                 bool compacts = false) {
  std::size_t acknowledged = 0;
  std::size_t compactions = 0;
  for (std::uint64_t done = 0, seed = first_seed; done < states; ++seed) {
    crash_model model(seed, frame_bytes);
    model.set(faults);
    if (encrypted_from != 0) model.encrypt(encrypted_from);
    if (compacts) model.compact();
    for (std::uint64_t i = 0; i < lives_per_journal; ++i, ++done) {
      try {
        model.live_and_crash();
      } catch (const violation& v) {
        FAIL() << "seed " << seed << ", life " << i + 1 << ": " << v.what();
      }
    }
    acknowledged += model.acknowledged();
    compactions += model.compactions();
  }
  EXPECT_EQ(compactions > states / 100, compacts) << compactions;
  EXPECT_GT(acknowledged, states);  // else nothing was at stake
}

}  // namespace

// Together they make that number; each is a test of its own, with a time limit of its own.

class journal_crash_with_frames_of : public testing::TestWithParam<std::uint64_t> {};

TEST_P(journal_crash_with_frames_of, one_record_loses_and_invents_nothing) {
  crash_often(crash_states() / 10, 1, 100'000 * GetParam());
}

TEST_P(journal_crash_with_frames_of, several_records_loses_and_invents_nothing) {
  crash_often(crash_states() / 20, 2048, 100'000 * GetParam() + 1'000'000);
}

TEST_P(journal_crash_with_frames_of, whole_batches_loses_and_invents_nothing) {
  crash_often(crash_states() / 20, 1 << 18, 100'000 * GetParam() + 2'000'000);
}

INSTANTIATE_TEST_SUITE_P(seeds, journal_crash_with_frames_of, testing::Range(1ul, 6ul));

TEST(journal_crash, short_writes_change_nothing) {
  crash_often(crash_states() / 10, 1, 3'000'000, {.short_write = 0.3});
}

TEST(journal_crash, errors_of_the_disk_stop_it_and_opening_it_again_loses_nothing) {
  const weir::sim::disk_faults faults{.short_write = 0.1, .eio = 0.002, .sync_error = 0.02};
  crash_often(crash_states() / 10, 1, 4'000'000, faults);
  crash_often(crash_states() / 10, 1 << 18, 5'000'000, faults);
}

TEST(journal_crash, an_encrypted_one_loses_and_reveals_nothing_while_its_key_changes) {
  crash_often(crash_states() / 40, 1, 6'000'000, {}, 1);
  crash_often(crash_states() / 40, 1 << 18, 7'000'000, {.sync_error = 0.02}, 1);
}

TEST(journal_crash, in_compactions_loses_nothing_that_is_needed) {
  crash_often(crash_states() / 10, 1, 9'000'000, {}, 0, true);
  crash_often(crash_states() / 20, 1 << 18, 10'000'000, {}, 0, true);
}

TEST(journal_crash, in_compactions_on_a_disk_with_errors_loses_nothing_that_is_needed) {
  const weir::sim::disk_faults faults{.short_write = 0.1, .eio = 0.002, .sync_error = 0.02};
  crash_often(crash_states() / 10, 2048, 11'000'000, faults, 0, true);
}

TEST(journal_crash, in_compactions_that_change_the_key_loses_nothing_and_leaves_no_old_key) {
  crash_often(crash_states() / 20, 1, 12'000'000, {}, 1, true);
  crash_often(crash_states() / 40, 1 << 18, 13'000'000, {.sync_error = 0.02}, 1, true);
}

TEST(journal_crash, in_compactions_that_seal_what_was_readable_leaves_nothing_readable) {
  crash_often(crash_states() / 20, 2048, 14'000'000, {}, 4, true);
}
