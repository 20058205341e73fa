// SPDX-License-Identifier: MIT
// Torn or corrupt: what opening cuts, what it rebuilds, and what it refuses without a change.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "durable/journal_support.hpp"
#include "durable/log_frame.hpp"
#include "durable/manifest.hpp"

using namespace journal_aid;
using disk_support::generator;
using disk_support::rig;
using weir::errc;

namespace {

/// A journal with one record per commit, written in one life.
texts fill_evenly(weir::disk& disk, int records, std::size_t bytes = 1000) {
  texts expected;
  opened o(disk);
  for (int i = 0; i < records; ++i) {
    append(o.j, expected.emplace_back(bytes, static_cast<char>('a' + i % 26)));
    commit(o.j);
  }
  return expected;
}

std::size_t used(weir::disk& disk, std::uint64_t number) {
  return disk_support::get(disk, segment(number)).find_last_not_of('\0') + 1;
}

void flip(weir::disk& disk, const std::string& path, std::uint64_t offset, int bit = 0) {
  auto file = disk.open(path, weir::open_mode::read_write);
  std::array<std::byte, 1> b{};
  weir::read_exactly(*file, b, offset);
  b[0] ^= std::byte{1} << bit;
  weir::write_all(*file, b, offset);
}

/// Refused, with this file and offset in the text, and nothing is changed.
void expect_corrupt_at(weir::disk& disk, const std::string& file, std::uint64_t offset) {
  const image before = files(disk);
  journal j(on(disk));
  collector seen;
  std::string text;
  EXPECT_EQ(errc_of([&] { j.open(seen); }), errc::journal_corrupt);
  text = disk_support::text_of([&] { j.open(seen); });
  EXPECT_NE(text.find(file), std::string::npos) << text;
  EXPECT_NE(text.find("at offset " + std::to_string(offset) + ":"), std::string::npos) << text;
  EXPECT_TRUE(files(disk) == before);
}

texts first(texts all, std::size_t n) {
  all.resize(n);
  return all;
}

/// The offset of a record's frame, which has no other record.
std::uint64_t frame_at(std::size_t index, std::size_t bytes = 1000) {
  return 64 + index * weir::detail::aligned(48 + 28 + bytes);
}

}  // namespace

// After a crash the end of the log is judged by what is left of it.
TEST(journal_damage, a_file_cut_in_its_last_frame_loses_that_frame_only_and_gets_its_size_back) {
  for (const std::size_t cut : {1u, 5u, 9u, 17u, 33u, 500u, 1050u}) {
    rig r;
    const texts expected = fill_evenly(r.disk, 5);
    const std::size_t end = used(r.disk, 1);
    const auto file = r.disk.open(segment(1), weir::open_mode::read_write);
    const std::uint64_t size = file->size();
    file->truncate(end - cut);
    EXPECT_EQ(payloads(r.disk), first(expected, 4));
    EXPECT_EQ(file->size(), size);
    EXPECT_LE(used(r.disk, 1), frame_at(4));
  }
}

TEST(journal_damage, a_byte_flipped_in_the_last_frame_cuts_it_off_and_nothing_is_left_of_it) {
  rig r;
  const texts expected = fill_evenly(r.disk, 5);
  flip(r.disk, segment(1), used(r.disk, 1) - 1);
  EXPECT_EQ(payloads(r.disk), first(expected, 4));
  EXPECT_LE(used(r.disk, 1), frame_at(4));
}

TEST(journal_damage, a_byte_flipped_before_the_last_frame_is_refused) {
  for (std::size_t i = 0; i < 4; ++i)
    for (const std::size_t into : {0u, 4u, 8u, 13u, 20u, 30u, 50u, 100u, 1070u}) {
      rig r;
      fill_evenly(r.disk, 5);
      flip(r.disk, segment(1), frame_at(i) + into);
      expect_corrupt_at(r.disk, segment(1), frame_at(i));
    }
}

TEST(journal_damage, what_was_there_at_the_last_open_is_never_a_torn_tail) {
  rig r;
  fill_evenly(r.disk, 5);
  (void)payloads(r.disk);
  flip(r.disk, segment(1), used(r.disk, 1) - 1);
  expect_corrupt_at(r.disk, segment(1), frame_at(4));
}

TEST(journal_damage,
     a_frame_overwritten_by_zeros_is_refused_if_a_later_one_shows_that_it_was_there) {
  rig r;
  fill_evenly(r.disk, 5);
  disk_support::put(*r.disk.open(segment(1), weir::open_mode::read_write),
                    std::string(frame_at(1) - frame_at(0), '\0'), frame_at(1));
  expect_corrupt_at(r.disk, segment(1), frame_at(1));
}

TEST(journal_damage, a_bad_frame_in_a_segment_that_is_not_the_last_is_refused) {
  rig r;
  fill_evenly(r.disk, 70);
  ASSERT_TRUE(r.disk.exists(segment(2)));
  const std::size_t in_first = (small_segment - 64) / (frame_at(1) - frame_at(0));
  flip(r.disk, segment(1), frame_at(in_first - 1) + 60);
  expect_corrupt_at(r.disk, segment(1), frame_at(in_first - 1));
}

TEST(journal_damage, a_bad_header_of_a_segment_is_refused_if_something_in_it_was_durable) {
  for (const std::uint64_t which : {1u, 2u, 3u}) {
    rig r;
    fill_evenly(r.disk, 160);
    ASSERT_GT(used(r.disk, 3), 3000u);
    flip(r.disk, segment(which), 33);
    expect_corrupt_at(r.disk, segment(which), 0);
  }
}

TEST(journal_damage, a_header_of_zeros_is_refused_if_something_behind_it_was_durable) {
  rig r;
  fill_evenly(r.disk, 160);
  disk_support::put(*r.disk.open(segment(3), weir::open_mode::read_write), std::string(512, '\0'));
  expect_corrupt_at(r.disk, segment(3), 0);
}

TEST(journal_damage, a_missing_segment_is_refused) {
  for (const std::uint64_t which : {1u, 2u}) {
    rig r;
    fill_evenly(r.disk, 160);
    r.disk.unlink(segment(which));
    expect_corrupt_at(r.disk, segment(which + 1), 0);
  }
}

TEST(journal_damage, a_missing_last_segment_is_refused_if_the_manifest_knows_of_it) {
  rig r;
  fill_evenly(r.disk, 100);
  (void)payloads(r.disk);
  r.disk.unlink(segment(2));
  const image before = files(r.disk);
  EXPECT_EQ(errc_of([&] { opened o(r.disk); }), errc::journal_corrupt);
  EXPECT_TRUE(files(r.disk) == before);
}

TEST(journal_damage, a_segment_of_another_journal_is_refused) {
  rig r;
  fill_evenly(r.disk, 100);
  rig other;
  journal_options options = on(other.disk);
  options.secret = {9, 9};
  {
    opened o(options);
    for (int i = 0; i < 100; ++i) append(o.j, std::string(1000, 'x'));
    commit(o.j);
  }
  disk_support::put(*r.disk.open(segment(2), weir::open_mode::read_write),
                    disk_support::get(other.disk, segment(2)));
  expect_corrupt_at(r.disk, segment(2), 40);
}

TEST(journal_damage, a_newer_format_and_an_encrypted_one_are_refused_by_name) {
  rig r;
  fill_evenly(r.disk, 3);
  weir::detail::segment_header header{
      .number = 1, .epoch = 0, .first_lsn = 1, .secret = test_secret, .bytes = small_segment};
  const auto rewrite = [&] {
    std::array<std::byte, weir::detail::segment_header_bytes> bytes{};
    encode(header, bytes);
    weir::write_all(*r.disk.open(segment(1), weir::open_mode::read_write), bytes, 0);
  };
  header.version = 2;
  rewrite();
  expect_corrupt_at(r.disk, "version 2", 8);
  header.version = 1;
  header.key_id = 3;
  rewrite();
  EXPECT_EQ(errc_of([&] { opened o(r.disk); }), errc::wrong_key);
}

TEST(journal_damage, a_manifest_that_is_missing_or_damaged_is_made_again) {
  for (int kind = 0; kind < 4; ++kind) {
    rig r;
    const texts expected = fill_evenly(r.disk, 100);
    if (kind == 0) r.disk.unlink("j/MANIFEST");
    if (kind == 1) r.disk.open("j/MANIFEST", weir::open_mode::read_write)->truncate(0);
    if (kind == 2) flip(r.disk, "j/MANIFEST", 40);
    if (kind == 3)
      disk_support::put(*r.disk.open("j/MANIFEST", weir::open_mode::read_write), "x", 80);
    EXPECT_EQ(payloads(r.disk), expected) << kind;
    r.disk.crash();
    opened o(r.disk);
    EXPECT_EQ(o.seen.payloads(), expected) << kind;
    EXPECT_EQ(o.j.secret(), test_secret);
  }
}

TEST(journal_damage, a_manifest_made_again_has_an_epoch_that_nobody_used) {
  rig r;
  fill_evenly(r.disk, 3);
  for (int i = 0; i < 10; ++i) (void)payloads(r.disk);
  const auto epoch = [&] {
    const std::string text = disk_support::get(r.disk, "j/MANIFEST");
    return weir::detail::decode_manifest(disk_support::bytes(text))->epoch;
  };
  const std::uint64_t before = epoch();
  EXPECT_EQ(before, 11u);
  r.disk.unlink("j/MANIFEST");
  (void)payloads(r.disk);
  EXPECT_GT(epoch(), before);
}

TEST(journal_damage, a_manifest_without_segments_is_no_empty_journal) {
  rig r;
  fill_evenly(r.disk, 3);
  r.disk.unlink(segment(1));
  expect_corrupt_at(r.disk, "MANIFEST", 0);
}

TEST(journal_damage, segments_in_which_nothing_can_be_read_are_no_empty_journal) {
  for (const bool with_manifest : {false, true}) {
    rig r;
    fill_evenly(r.disk, 3);
    disk_support::put(*r.disk.open(segment(1), weir::open_mode::read_write),
                      std::string(small_segment, '\0'));
    if (!with_manifest) r.disk.unlink("j/MANIFEST");
    expect_corrupt_at(r.disk, segment(1), 0);
  }
}

TEST(journal_damage, the_first_bad_byte_of_a_record_is_found_when_it_is_read) {
  rig r;
  opened o(r.disk);
  const auto place = append(o.j, std::string(3000, 'x')).place;
  commit(o.j);
  for (const std::uint64_t into : {0u, 5u, 9u, 27u, 28u, 2000u}) {
    flip(r.disk, segment(1), weir::detail::offset_of(place) + into, 3);
    EXPECT_EQ(errc_of([&] { return read(o.j, place); }), errc::journal_corrupt) << into;
    flip(r.disk, segment(1), weir::detail::offset_of(place) + into, 3);
  }
  EXPECT_EQ(read(o.j, place).size(), 3000u);
}

TEST(journal_damage, a_stale_frame_with_the_right_lsn_at_the_right_place_is_not_taken) {
  // One batch of three frames; the first is lost in a crash, the others are not.
  rig r;
  journal_options options = on(r.disk);
  options.frame_bytes = 1;
  std::string remains;
  {
    opened o(options);
    for (const char* text : {"one", "two", "six"}) append(o.j, text);
    commit(o.j);
    remains = disk_support::get(r.disk, segment(1)).substr(64 + 80);
  }
  disk_support::put(*r.disk.open(segment(1), weir::open_mode::read_write), std::string(80, '\0'),
                    64);
  EXPECT_TRUE(opened(options).seen.records.empty());
  {
    opened o(options);
    append(o.j, "ONE");
    commit(o.j);
  }
  disk_support::put(*r.disk.open(segment(1), weir::open_mode::read_write), remains, 64 + 80);
  EXPECT_EQ(opened(options).seen.payloads(), (texts{"ONE"}));
}

TEST(journal_damage, flipped_bits_anywhere_are_refused_or_harmless_and_never_wrong_data) {
  rig r;
  texts expected;
  {
    opened o(r.disk);
    for (int i = 0; i < 120; ++i) {
      append(o.j, expected.emplace_back(1 + i * 9, static_cast<char>('a' + i % 26)));
      append(o.j, expected.emplace_back(i == 50 ? 20'000 : 10, static_cast<char>(i)));
      commit(o.j);
    }
  }
  const image whole = files(r.disk);
  generator random(3);
  int refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    rig damaged;
    restore(damaged.disk, whole);
    auto where = whole.begin();
    std::advance(where, static_cast<std::ptrdiff_t>(random.below(whole.size())));
    const std::size_t in_use = where->second.find_last_not_of('\0') + 1;
    const std::uint64_t flips = 1 + random.below(3);
    for (std::uint64_t n = 0; n < flips && in_use > 0; ++n)
      flip(damaged.disk, "j/" + where->first, random.below(in_use),
           static_cast<int>(random.below(8)));
    const image before = files(damaged.disk);
    collector seen;
    journal j(on(damaged.disk));
    const errc code = errc_of([&] { j.open(seen); });
    if (code == errc{}) {
      // The last batch, whose loss proves nothing; and if that is lost, perhaps the one before it.
      EXPECT_GE(seen.records.size(), expected.size() - 2 * flips);
      EXPECT_EQ(seen.payloads(), first(expected, seen.records.size()));
    } else {
      ++refused;
      EXPECT_EQ(code, errc::journal_corrupt);
      EXPECT_TRUE(files(damaged.disk) == before);
    }
    ASSERT_FALSE(HasFailure()) << "trial " << trial << ", " << where->first;
  }
  EXPECT_GT(refused, 100);
}
