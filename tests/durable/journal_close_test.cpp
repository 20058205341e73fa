// SPDX-License-Identifier: MIT
// What a clean close records, and what each proof in the files protects: after it nothing that was
// acknowledged can be cut off, deleted or changed without being detected. Promise: "Damage:
// errc::journal_corrupt, naming file and offset, files unchanged" (docs/reference/durable.md).
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

/// Records of several sizes, a blob among them, over three segments.
texts fill_unevenly(weir::disk& disk, bool close, int records = 150) {
  texts expected;
  opened o(disk);
  for (int i = 0; i < records; ++i) {
    const std::size_t bytes = i == 20 ? 20'000 : static_cast<std::size_t>(200 + i * 37 % 1500);
    append(o.j, expected.emplace_back(bytes, static_cast<char>('a' + i % 26)));
    if (i % 3 != 0) commit(o.j);
  }
  commit(o.j);
  if (close) o.j.close();
  return expected;
}

/// Where records, frames and what follows them begin in a segment, and its end.
std::vector<std::uint64_t> boundaries(const std::string& file) {
  std::vector<std::uint64_t> found{0, 1, 8, 63, 64};
  const auto bytes = disk_support::bytes(file);
  std::uint64_t at = weir::detail::segment_header_bytes;
  while (const auto head = weir::detail::peek_frame(bytes.subspan(at))) {
    weir::detail::record_cursor cursor(bytes.subspan(at, head->bytes));
    weir::detail::record_view record;
    do {
      found.push_back(at + cursor.offset());
    } while (cursor.next(record));
    at += head->bytes;
    found.push_back(at);
  }
  found.push_back(file.size() - 1);
  return found;
}

/// Refused with this file in the text and nothing changed, or open with everything: never less.
void expect_refused_or_whole(weir::disk& disk, const texts& expected, const std::string& file) {
  const image before = files(disk);
  collector seen;
  journal j(on(disk));
  const std::string text = disk_support::text_of([&] { j.open(seen); });
  if (text == "no error") {
    EXPECT_TRUE(seen.payloads() == expected) << file << ": " << seen.records.size() << " records";
    return;
  }
  EXPECT_NE(text.find("journal corrupt: '"), std::string::npos) << text;
  EXPECT_NE(text.find("at offset "), std::string::npos) << text;
  EXPECT_TRUE(files(disk) == before) << file;
}

/// Refused, with this text.
void expect_refused_with(weir::disk& disk, const std::string& part) {
  const image before = files(disk);
  collector seen;
  journal j(on(disk));
  const std::string text = disk_support::text_of([&] { j.open(seen); });
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_TRUE(files(disk) == before);
}

void cut(weir::disk& disk, const std::string& name, std::uint64_t size) {
  disk.open("j/" + name, weir::open_mode::read_write)->truncate(size);
}

weir::detail::manifest manifest_of(weir::disk& disk) {
  return *weir::detail::decode_manifest(disk_support::bytes(disk_support::get(disk, "j/MANIFEST")));
}

}  // namespace

TEST(journal_close, every_file_cut_at_every_record_boundary_is_refused_or_loses_nothing) {
  rig r;
  const texts expected = fill_unevenly(r.disk, true);
  const image whole = files(r.disk);
  ASSERT_GE(whole.size(), 5u);  // a manifest, three segments, a blob
  for (const auto& [name, content] : whole) {
    std::vector<std::uint64_t> cuts{0, 1, content.size() / 2, content.size() - 1};
    if (weir::detail::segment_number(name)) cuts = boundaries(content);
    for (const std::uint64_t size : cuts) {
      rig damaged;
      restore(damaged.disk, whole);
      cut(damaged.disk, name, size);
      if (weir::detail::segment_number(name))
        expect_refused_with(damaged.disk, "journal corrupt: 'j/" + name + "' at offset ");
      else
        expect_refused_or_whole(damaged.disk, expected, name);
      ASSERT_FALSE(HasFailure()) << name << " cut to " << size;
    }
  }
}

TEST(journal_close, every_file_deleted_is_refused_or_loses_nothing) {
  rig r;
  const texts expected = fill_unevenly(r.disk, true);
  const image whole = files(r.disk);
  for (const auto& [name, content] : whole) {
    rig damaged;
    restore(damaged.disk, whole);
    damaged.disk.unlink("j/" + name);
    expect_refused_or_whole(damaged.disk, expected, name);
  }
}

TEST(journal_close, every_file_emptied_with_its_size_kept_is_refused_or_loses_nothing) {
  rig r;
  const texts expected = fill_unevenly(r.disk, true);
  const image whole = files(r.disk);
  for (const auto& [name, content] : whole) {
    rig damaged;
    restore(damaged.disk, whole);
    disk_support::put(*damaged.disk.open("j/" + name, weir::open_mode::read_write),
                      std::string(content.size(), '\0'));
    expect_refused_or_whole(damaged.disk, expected, name);
  }
}

TEST(journal_close, a_bit_flipped_anywhere_is_refused_or_loses_nothing) {
  rig r;
  const texts expected = fill_unevenly(r.disk, true, 60);
  const image whole = files(r.disk);
  generator random(7);
  for (int trial = 0; trial < 300; ++trial) {
    rig damaged;
    restore(damaged.disk, whole);
    auto where = whole.begin();
    std::advance(where, static_cast<std::ptrdiff_t>(random.below(whole.size())));
    const std::size_t used = std::max<std::size_t>(where->second.find_last_not_of('\0') + 1, 1);
    std::string content = where->second;
    const auto at = static_cast<std::size_t>(random.below(used));
    content[at] = static_cast<char>(content[at] ^ (1 << random.below(8)));
    disk_support::put(*damaged.disk.open("j/" + where->first, weir::open_mode::read_write),
                      content);
    expect_refused_or_whole(damaged.disk, expected, where->first);
    ASSERT_FALSE(HasFailure()) << "trial " << trial << ", " << where->first << " at " << at;
  }
}

TEST(journal_close, the_last_batch_is_proven_and_its_loss_names_file_and_offset) {
  rig r;
  texts expected;
  {
    opened o(r.disk);
    append(o.j, expected.emplace_back("one"));
    commit(o.j);
    o.j.close();
  }
  disk_support::put(*r.disk.open(segment(1), weir::open_mode::read_write), std::string(80, '\0'),
                    64);
  expect_refused_with(r.disk, "'" + segment(1) + "' at offset 64:");
}

TEST(journal_close, a_missing_last_segment_is_named) {
  rig r;
  fill_unevenly(r.disk, true);
  std::uint64_t last = 1;
  while (last < manifest_of(r.disk).begun) ++last;
  for (std::uint64_t n = last; r.disk.exists(segment(n)); ++n) r.disk.unlink(segment(n));
  ASSERT_GT(last, 1u);
  expect_refused_with(r.disk, "'" + segment(last) + "' at offset 0: the file is missing");
}

// A process that died has not closed its journal; what it began is in the manifest all the same.
TEST(journal_close, a_segment_that_was_begun_is_missed_without_a_close_too) {
  rig r;
  fill_unevenly(r.disk, false);
  const std::uint64_t last = manifest_of(r.disk).begun;
  ASSERT_GT(last, 1u);
  for (std::uint64_t n = last; r.disk.exists(segment(n)); ++n) r.disk.unlink(segment(n));
  expect_refused_with(r.disk, "'" + segment(last) + "' at offset 0: the file is missing");
}

TEST(journal_close, a_segment_before_the_last_that_was_cut_is_refused_without_a_close_too) {
  rig r;
  fill_unevenly(r.disk, false);
  const image whole = files(r.disk);
  const std::uint64_t begun = manifest_of(r.disk).begun;
  ASSERT_GT(begun, 1u);
  for (const auto& [name, content] : whole) {
    const auto number = weir::detail::segment_number(name);
    if (!number || *number == begun) continue;
    for (const std::uint64_t size : boundaries(content)) {
      rig damaged;
      restore(damaged.disk, whole);
      cut(damaged.disk, name, size);
      expect_refused_with(damaged.disk, "'j/" + name + "' at offset " + std::to_string(size) +
                                            ": the file ends here");
      ASSERT_FALSE(HasFailure()) << name << " cut to " << size;
    }
  }
}

// "After a crash the rule of evidence holds": the last frame proves those before it.
TEST(journal_close, the_last_segment_that_was_cut_after_a_crash_loses_unproven_frames_only) {
  rig r;
  const texts expected = fill_unevenly(r.disk, false);
  const image whole = files(r.disk);
  const std::string name = weir::detail::segment_name(manifest_of(r.disk).begun);
  std::size_t opened_again = 0;
  for (const std::uint64_t size : boundaries(whole.at(name))) {
    rig damaged;
    restore(damaged.disk, whole);
    cut(damaged.disk, name, size);
    collector seen;
    journal j(on(damaged.disk));
    if (disk_support::text_of([&] { j.open(seen); }) != "no error") {
      EXPECT_EQ(disk_support::get(damaged.disk, "j/" + name).size(), size);
      continue;
    }
    ++opened_again;
    const texts found = seen.payloads();
    ASSERT_LE(found.size(), expected.size());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin()));
    EXPECT_EQ(disk_support::get(damaged.disk, "j/" + name).size(), whole.at(name).size());
  }
  EXPECT_GT(opened_again, 1u);
}

TEST(journal_close, the_last_segment_cut_after_a_close_is_refused_even_where_it_was_empty) {
  rig r;
  fill_unevenly(r.disk, true);
  const std::string name = weir::detail::segment_name(manifest_of(r.disk).begun);
  const std::uint64_t size = disk_support::get(r.disk, "j/" + name).size() - 1;
  cut(r.disk, name, size);
  expect_refused_with(
      r.disk, "'j/" + name + "' at offset " + std::to_string(size) + ": the file ends here");
}

TEST(journal_close, a_prepared_segment_that_was_cut_is_refused_with_and_without_a_manifest) {
  for (const bool with_manifest : {true, false}) {
    rig r;
    {
      opened o(r.disk);
      for (int i = 0; i < 3; ++i) append(o.j, std::string(16'000, 'x'));
      commit(o.j);
      o.j.close();
    }
    ASSERT_TRUE(r.disk.exists(segment(2)));
    cut(r.disk, weir::detail::segment_name(2), 100);
    if (!with_manifest) r.disk.unlink("j/MANIFEST");
    expect_refused_with(r.disk, "'" + segment(2) + "' at offset 100:");
  }
}

TEST(journal_close, a_journal_goes_on_after_a_close_and_its_mark_is_then_a_lower_bound) {
  rig r;
  texts expected = fill_unevenly(r.disk, true);
  {
    opened o(r.disk);
    EXPECT_EQ(o.seen.payloads(), expected);
    append(o.j, expected.emplace_back("more"));
    commit(o.j);
    append(o.j, "never committed");
  }
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), expected);
}

TEST(journal_close, a_close_that_fails_takes_nothing_away) {
  for (int kind = 0; kind < 3; ++kind) {
    rig r;
    texts expected;
    {
      opened o(r.disk);
      append(o.j, expected.emplace_back("one"));
      commit(o.j);
      if (kind == 0) r.disk.fail_next_sync();
      if (kind == 1) r.disk.set({.eio = 1});
      if (kind == 2) r.disk.set({.space = 1});
      EXPECT_EQ(errc_of([&] { o.j.close(); }),
                kind == 2 ? errc::journal_full : errc::journal_failed);
      r.disk.set({});
    }
    r.disk.crash();
    EXPECT_EQ(payloads(r.disk), expected) << kind;
  }
}

TEST(journal_close, segments_of_another_size_than_before_are_no_damage) {
  rig r;
  texts expected;
  for (const std::uint64_t bytes : {small_segment, 3 * small_segment, small_segment + 4}) {
    opened o(r.disk, bytes);
    EXPECT_EQ(o.seen.payloads(), expected);
    for (int i = 0; i < 20; ++i) append(o.j, expected.emplace_back(9'000, 'x'));
    commit(o.j);
    o.j.close();
  }
  EXPECT_EQ(payloads(r.disk), expected);
}
