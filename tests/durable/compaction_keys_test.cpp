// SPDX-License-Identifier: MIT
// A compaction seals everything with the present key: afterwards no other key is needed, and what
// was readable before is not.
#include <gtest/gtest.h>

#include "durable/compaction.hpp"
#include "durable/journal_support.hpp"
#include "durable/payload_keys.hpp"

using namespace journal_aid;
using disk_support::rig;
using weir::errc;
using weir::detail::compaction_plan;
using weir::detail::key_ring;
using weir::detail::secret_part;

namespace {

const std::string one_key(32, '1');
const std::string next_key(32, '2');
const std::string last_key(32, '3');
const std::string hidden = "HIDDEN-4711";

using key_list = std::vector<std::string_view>;  // the present one first; empty: none

journal_options sealing(weir::disk& disk, const key_list& keys) {
  journal_options o = on(disk);
  if (!keys.empty()) o.keys = key_ring::make(keys[0], key_list(keys.begin() + 1, keys.end()));
  return o;
}

/// The first four bytes of a payload are readable.
void all_but_four(const record_head&, std::string_view payload, std::vector<secret_part>& parts) {
  if (payload.size() > 4) parts.push_back({4, static_cast<std::uint32_t>(payload.size() - 4)});
}

std::string payload_of_sealed(std::uint64_t run) {
  if (run % 50 == 0) return "name" + hidden + std::string(70'000, static_cast<char>('a' + run % 7));
  return "name" + hidden + std::to_string(run) + std::string(400, 'x');
}

void fill_sealed(journal& j, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t run = first; run < first + count; ++run) {
    const std::string payload = payload_of_sealed(run);
    std::vector<secret_part> parts;
    all_but_four({}, payload, parts);
    (void)j.append({.type = 1, .flags = 3, .run = run}, {payload, parts});
    if (run % 7 == 0) commit(j);
  }
  commit(j);
}

/// Keeps the even runs.
void begin_to_seal(journal& j) {
  compaction_plan plan;
  plan.last_segment = j.may_be_replaced().last_segment;
  for (std::uint64_t run = 2; run < 10'000; run += 2) plan.keep.add(run);
  plan.closing = [](auto) { return compaction_plan::closing_record{{.type = 19}, "end"}; };
  plan.secrets = all_but_four;
  j.begin_compaction(std::move(plan));
}

void seal_again(journal& j) {
  begin_to_seal(j);
  for (int i = 0; i < 200 && j.compacting(); ++i) {
    auto batch = j.take_to_compact();
    j.commit(*batch);
    j.committed(std::move(batch));
  }
  EXPECT_FALSE(j.compacting());
}

/// Opens, replaces all that was written before by a snapshot, and closes.
void compact_with(weir::disk& disk, const key_list& keys, std::uint64_t more_runs) {
  opened o(sealing(disk, keys));
  o.j.end_segment();
  fill_sealed(o.j, more_runs, 1);
  seal_again(o.j);
  EXPECT_FALSE(o.j.compaction_error());
  for (const seen_record& r : o.seen.records)
    if (r.head.run % 2 == 0 && r.head.run != 0) {
      EXPECT_EQ(read(o.j, r.place), r.payload);
    }
  o.j.close();
}

bool can_be_read(weir::disk& disk, std::string_view text) {
  for (const auto& [name, content] : files(disk))
    if (content.find(text) != std::string::npos) return true;
  return false;
}

/// Opens with these keys, and all even runs are there as they were.
void expect_all_even(weir::disk& disk, const key_list& keys, std::uint64_t up_to) {
  opened o(sealing(disk, keys));
  std::uint64_t next = 2;
  for (const seen_record& r : o.seen.records) {
    if (r.head.run % 2 != 0 || r.head.run == 0) continue;
    EXPECT_EQ(r.head.run, next);
    EXPECT_EQ(r.lsn, next);
    EXPECT_EQ(r.head.flags, 3);
    EXPECT_EQ(r.payload, payload_of_sealed(next)) << next;
    EXPECT_EQ(read(o.j, r.place), r.payload);
    next += 2;
  }
  EXPECT_GT(next, up_to);
}

errc opening_with(weir::disk& disk, const key_list& keys) {
  return errc_of([&] {
    opened o(sealing(disk, keys));
    return 0;
  });
}

std::size_t blobs_on(weir::disk& disk) { return disk.list("j/blob").size(); }

}  // namespace

TEST(compaction_keys, after_a_compaction_the_present_key_suffices_again_and_again) {
  rig r;
  {
    opened o(sealing(r.disk, {one_key}));
    fill_sealed(o.j, 1, 300);
  }
  compact_with(r.disk, {next_key, one_key}, 301);
  EXPECT_EQ(blobs_on(r.disk), 6u);
  expect_all_even(r.disk, {next_key}, 300);
  EXPECT_EQ(opening_with(r.disk, {one_key}), errc::wrong_key);
  EXPECT_EQ(opening_with(r.disk, {}), errc::wrong_key);
  {
    opened o(sealing(r.disk, {next_key}));
    fill_sealed(o.j, 302, 200);
  }
  compact_with(r.disk, {last_key, next_key}, 502);  // the snapshot, and segments after it
  EXPECT_EQ(blobs_on(r.disk), 10u);
  expect_all_even(r.disk, {last_key}, 500);
  EXPECT_EQ(opening_with(r.disk, {next_key}), errc::wrong_key);
  EXPECT_FALSE(can_be_read(r.disk, hidden));
  EXPECT_TRUE(can_be_read(r.disk, "name"));
}

TEST(compaction_keys, what_was_written_without_a_key_is_not_readable_after_it) {
  rig r;
  {
    opened o(sealing(r.disk, {}));
    fill_sealed(o.j, 1, 300);
  }
  EXPECT_TRUE(can_be_read(r.disk, hidden));
  compact_with(r.disk, {one_key}, 301);
  EXPECT_FALSE(can_be_read(r.disk, hidden));  // not in a file that waits to be recycled, either
  EXPECT_TRUE(can_be_read(r.disk, "name"));
  expect_all_even(r.disk, {one_key}, 300);
  EXPECT_EQ(opening_with(r.disk, {}), errc::wrong_key);
}

TEST(compaction_keys, with_the_same_key_copies_records_and_blobs_as_they_are) {
  rig r;
  {
    opened o(sealing(r.disk, {one_key}));
    fill_sealed(o.j, 1, 300);
  }
  const image before = files(r.disk);
  compact_with(r.disk, {one_key}, 301);
  for (const auto& [name, content] : files(r.disk))
    if (name.starts_with("blob/")) {
      EXPECT_TRUE(before.contains(name)) << name;
    }
  expect_all_even(r.disk, {one_key}, 300);
}

TEST(compaction_keys, one_that_ends_early_leaves_the_old_files_and_none_of_its_own) {
  rig r;
  {
    opened o(sealing(r.disk, {one_key}));
    fill_sealed(o.j, 1, 300);
  }
  for (int slices = 0; slices < 6; ++slices) {
    opened o(sealing(r.disk, {next_key, one_key}));
    o.j.end_segment();
    (void)o.j.append({.type = 20}, "");
    commit(o.j);
    begin_to_seal(o.j);
    for (int i = 0; i < slices; ++i) {
      auto batch = o.j.take_to_compact();
      o.j.commit(*batch);
      o.j.committed(std::move(batch));
      if (o.j.may_be_replaced().segments < 2) return;  // it was done
    }
    o.j.abandon_compaction(std::make_exception_ptr(std::runtime_error("enough")));
    EXPECT_EQ(o.j.compacting(), false);
    EXPECT_EQ(blobs_on(r.disk), 6u) << slices;
    for (const seen_record& s : o.seen.records) EXPECT_EQ(read(o.j, s.place), s.payload);
  }
}

TEST(compaction_keys, without_space_for_the_blobs_the_journal_goes_on_without_it) {
  rig r;
  {
    opened o(sealing(r.disk, {one_key}));
    fill_sealed(o.j, 1, 300);
  }
  {
    opened o(sealing(r.disk, {next_key, one_key}));
    o.j.end_segment();
    fill_sealed(o.j, 301, 1);
    r.disk.set({.space = 1});
    seal_again(o.j);
    EXPECT_TRUE(o.j.compaction_error());
    EXPECT_FALSE(o.j.failed());
    r.disk.set({});
  }
  EXPECT_EQ(blobs_on(r.disk), 6u);
  EXPECT_EQ(opening_with(r.disk, {next_key}), errc::wrong_key);
  compact_with(r.disk, {next_key, one_key}, 302);
  expect_all_even(r.disk, {next_key}, 300);
}

// The first segment has no records if the key changes before any was appended.
TEST(compaction_keys, a_segment_without_records_is_replaced_like_any_other) {
  rig r;
  {
    opened o(sealing(r.disk, {one_key}));
  }
  {
    opened o(sealing(r.disk, {next_key, one_key}));
    fill_sealed(o.j, 1, 10);
    seal_again(o.j);
    EXPECT_FALSE(o.j.compaction_error());
  }
  expect_all_even(r.disk, {next_key}, 10);
  EXPECT_FALSE(r.disk.exists(segment(1)));
}
