// SPDX-License-Identifier: MIT
// A journal on a failing disk: it stops at the first error and loses nothing, or it reports in time
// that space runs out.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "durable/journal_support.hpp"
#include "durable/manifest.hpp"
#include "durable/support/refusing_disk.hpp"

using namespace journal_aid;
using disk_support::rig;
using weir::errc;

namespace {

/// What a commit of one more record fails with.
errc code_of_commit(journal& j, const std::string& payload) {
  return errc_of([&] {
    append(j, payload);
    commit(j);
  });
}

}  // namespace

TEST(journal_fault, a_failed_sync_stops_it_for_good_with_the_first_cause) {
  rig r;
  opened o(r.disk);
  append(o.j, "one");
  commit(o.j);
  append(o.j, "two");
  auto batch = o.j.take();
  r.disk.fail_next_sync();
  const std::string cause = disk_support::text_of([&] { o.j.commit(*batch); });
  EXPECT_NE(cause.find("sync 'j/seg-0000000000000001.wlog'"), std::string::npos) << cause;
  EXPECT_EQ(o.j.durable_lsn(), 1u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(errc_of([&] { append(o.j, "three"); }), errc::journal_failed);
    EXPECT_EQ(errc_of([&] { (void)o.j.take(); }), errc::journal_failed);
    EXPECT_EQ(errc_of([&] { o.j.commit(*batch); }), errc::journal_failed);
    EXPECT_EQ(disk_support::text_of([&] { append(o.j, "three"); }), cause);
  }
}

TEST(journal_fault, what_a_failed_sync_left_in_the_page_cache_is_made_to_last_by_opening) {
  rig r;
  {
    opened o(r.disk);
    append(o.j, "one");
    r.disk.fail_next_sync();
    EXPECT_EQ(errc_of([&] { commit(o.j); }), errc::journal_failed);
  }
  EXPECT_EQ(payloads(r.disk), (texts{"one"}));  // the cache shows it
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), (texts{"one"}));  // and now the disk has it
}

TEST(journal_fault, the_beginning_of_a_segment_is_made_to_last_by_opening_too) {
  rig r;
  texts expected;
  {
    opened o(r.disk);
    while (!r.disk.exists(segment(2))) {
      append(o.j, expected.emplace_back(9000, 'x'));
      commit(o.j);
    }
    while (o.j.last_lsn() < 7) {
      append(o.j, expected.emplace_back(8000, 'y'));
      commit(o.j);
    }
    append(o.j, expected.emplace_back(9000, 'z'));  // does not fit any more
    r.disk.fail_next_sync();
    EXPECT_EQ(errc_of([&] { commit(o.j); }), errc::journal_failed);
  }
  EXPECT_EQ(payloads(r.disk), expected);
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), expected);
}

TEST(journal_fault, opening_fails_if_it_cannot_make_the_tail_last_and_loses_nothing) {
  rig r;
  {
    opened o(r.disk);
    append(o.j, "one");
    commit(o.j);
  }
  for (int which = 0; which < 4; ++which) {
    journal j(on(r.disk));
    collector seen;
    const errc code = errc_of([&] {
      r.disk.set({.sync_error = 1});
      j.open(seen);
    });
    r.disk.set({});
    EXPECT_EQ(code, errc::journal_failed);
  }
  EXPECT_EQ(payloads(r.disk), (texts{"one"}));
}

TEST(journal_fault, errors_of_other_calls_stop_it_too) {
  rig r;
  opened o(r.disk);
  r.disk.set({.eio = 1});
  EXPECT_EQ(code_of_commit(o.j, "one"), errc::journal_failed);
  r.disk.set({});
  EXPECT_EQ(code_of_commit(o.j, "two"), errc::journal_failed);
}

TEST(journal_fault, a_record_that_cannot_be_read_is_an_error_and_changes_nothing) {
  rig r;
  opened o(r.disk);
  const auto place = append(o.j, "one").place;
  commit(o.j);
  r.disk.set({.eio = 1});
  EXPECT_EQ(errc_of([&] { return read(o.j, place); }), errc::journal_failed);
  r.disk.set({});
  EXPECT_EQ(read(o.j, place), "one");
  EXPECT_EQ(code_of_commit(o.j, "two"), errc{});
}

TEST(journal_fault, a_journal_that_cannot_be_read_is_not_changed) {
  rig r;
  {
    opened o(r.disk);
    append(o.j, "one");
    commit(o.j);
  }
  const image before = files(r.disk);
  r.disk.set({.eio = 1});
  EXPECT_EQ(errc_of([&] { opened o(r.disk); }), errc::journal_failed);
  r.disk.set({});
  EXPECT_EQ(files(r.disk), before);
}

TEST(journal_fault, short_writes_are_continued) {
  rig r;
  r.disk.set({.short_write = 0.9});
  texts expected;
  {
    opened o(r.disk);
    for (int i = 0; i < 30; ++i) append(o.j, expected.emplace_back(5000, static_cast<char>(i)));
    commit(o.j);
  }
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), expected);
}

TEST(journal_fault, no_space_for_a_new_journal_says_so_and_leaves_nothing_in_the_way) {
  rig r;
  r.disk.set({.space = 1000});
  EXPECT_EQ(errc_of([&] { opened o(r.disk); }), errc::journal_full);
  r.disk.set({});
  EXPECT_TRUE(payloads(r.disk).empty());
}

TEST(journal_fault, the_next_segment_is_ready_when_the_present_one_is_half_full) {
  rig r;
  opened o(r.disk);
  append(o.j, std::string(16'000, 'x'));
  append(o.j, std::string(16'000, 'x'));
  commit(o.j);
  EXPECT_FALSE(r.disk.exists(segment(2)));
  append(o.j, std::string(1000, 'x'));
  commit(o.j);
  EXPECT_TRUE(r.disk.exists(segment(2)));
  EXPECT_FALSE(o.j.short_of_space());
}

TEST(journal_fault, a_segment_that_was_prepared_is_kept_for_the_next_life) {
  rig r;
  {
    opened o(r.disk);
    for (int i = 0; i < 3; ++i) append(o.j, std::string(16'000, 'x'));
    commit(o.j);
  }
  ASSERT_TRUE(r.disk.exists(segment(2)));
  opened o(r.disk);
  // There is no space for another one.
  r.disk.set({.space = 2 * static_cast<std::int64_t>(small_segment)});
  for (int i = 0; i < 3; ++i) append(o.j, std::string(16'000, 'x'));
  commit(o.j);
  EXPECT_EQ(o.j.durable_lsn(), 6u);
}

TEST(journal_fault, what_was_not_finished_is_removed) {
  rig r;
  {
    opened o(r.disk);
  }
  for (const char* path : {"j/MANIFEST.new", "j/seg-0000000000000002.wlog.new", "j/blob/ab.new"})
    disk_support::durable_file(r.disk, path, "x");
  {
    opened o(r.disk);
  }
  EXPECT_EQ(r.disk.list("j"), (texts{"LOCK", "MANIFEST", "blob", "seg-0000000000000001.wlog"}));
  EXPECT_TRUE(r.disk.list("j/blob").empty());
}

TEST(journal_fault, shortness_of_space_is_known_before_it_hurts_and_passes) {
  rig r;
  opened o(r.disk);
  r.disk.set({.space = static_cast<std::int64_t>(small_segment) + 1000});
  texts expected;
  const auto add = [&] {
    append(o.j, expected.emplace_back(12'000, 'x'));
    commit(o.j);
  };
  add();
  add();
  EXPECT_FALSE(o.j.short_of_space());
  add();
  EXPECT_TRUE(o.j.short_of_space());
  add();  // the rest of the present segment is still there
  EXPECT_TRUE(o.j.short_of_space());
  r.disk.set({});
  add();
  EXPECT_FALSE(o.j.short_of_space());
  for (int i = 0; i < 5; ++i) add();
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), expected);
}

TEST(journal_fault, when_space_runs_out_it_is_full_and_keeps_what_was_committed) {
  rig r;
  texts expected;
  {
    opened o(r.disk);
    r.disk.set({.space = static_cast<std::int64_t>(small_segment) + 1000});
    errc code{};
    while (code == errc{}) {
      const std::string payload(12'000, 'x');
      code = code_of_commit(o.j, payload);
      if (code == errc{}) expected.push_back(payload);
    }
    EXPECT_EQ(code, errc::journal_full);
    EXPECT_FALSE(o.j.failed());
  }
  EXPECT_EQ(expected.size(), 5u);
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), expected);  // still without space
}

// Promise: a full disk is no failed one. What had no room is written when there is some.
TEST(journal_fault, a_batch_that_had_no_room_is_committed_when_there_is_some) {
  for (const int records : {2, 12}) {  // one more segment, or three
    rig r;
    texts expected;
    {
      opened o(r.disk);
      append(o.j, expected.emplace_back(12'000, 'a'));
      commit(o.j);
      r.disk.set({.space = static_cast<std::int64_t>(small_segment) + 1000});
      for (int i = 0; i < 2 + records; ++i) append(o.j, expected.emplace_back(14'000, 'b'));
      auto batch = o.j.take();
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(errc_of([&] { o.j.commit(*batch); }), errc::journal_full);
      EXPECT_EQ(o.j.durable_lsn(), 1u);
      append(o.j, expected.emplace_back("behind it"));
      EXPECT_EQ(o.j.take(), nullptr);
      for (const std::int64_t segments : {2, 3, 9}) {
        r.disk.set({.space = segments * static_cast<std::int64_t>(small_segment) + 1000});
        if (errc_of([&] { o.j.commit(*batch); }) != errc{}) continue;
        o.j.committed(std::move(batch));
        break;
      }
      ASSERT_EQ(batch, nullptr);
      commit(o.j);
      EXPECT_EQ(o.j.durable_lsn(), expected.size());
    }
    r.disk.crash();
    EXPECT_EQ(payloads(r.disk), expected);
  }
}

TEST(journal_fault, shortness_of_space_passes_without_records_when_room_is_looked_for) {
  rig r;
  opened o(r.disk);
  r.disk.set({.space = static_cast<std::int64_t>(small_segment) + 1000});
  for (int i = 0; i < 3; ++i) append(o.j, std::string(12'000, 'x'));
  commit(o.j);
  EXPECT_TRUE(o.j.short_of_space());
  const auto look = [&] {
    auto batch = o.j.take_to_look_for_room();
    o.j.commit(*batch);
    o.j.committed(std::move(batch));
  };
  look();
  EXPECT_TRUE(o.j.short_of_space());
  r.disk.set({});
  look();
  EXPECT_FALSE(o.j.short_of_space());
  EXPECT_EQ(o.j.durable_lsn(), 3u);
  EXPECT_TRUE(r.disk.exists(segment(2)));
}

// Promise: a payload that cannot be written fails its operation and nothing else.
// Promise: a segment that is missing is damage. The manifest says how many there are.
TEST(journal_fault, a_manifest_that_had_no_room_is_written_by_the_next_commit) {
  for (const int refusals : {0, 1, 3}) {
    rig r;
    durable_test::refusing_disk disk(r.disk);
    {
      opened o(disk);
      disk.refuse("MANIFEST", ENOSPC, refusals);
      const texts parts(12, std::string(8000, 'x'));  // more than a segment, less than two
      for (const std::string& part : parts) EXPECT_EQ(code_of_commit(o.j, part), errc{});
      EXPECT_EQ(disk.refusals, 0);
    }
    r.disk.crash();
    EXPECT_EQ(payloads(r.disk).size(), 12u);
    r.disk.crash();
    r.disk.unlink(segment(2));
    if (r.disk.exists(segment(3))) r.disk.unlink(segment(3));
    EXPECT_EQ(errc_of([&] { (void)payloads(r.disk); }), errc::journal_corrupt) << refusals;
  }
}

TEST(journal_fault, a_close_whose_manifest_had_no_room_has_not_closed_the_journal) {
  rig r;
  durable_test::refusing_disk disk(r.disk);
  opened o(disk);
  EXPECT_EQ(code_of_commit(o.j, "one"), errc{});
  disk.refuse("MANIFEST", ENOSPC, 1);
  EXPECT_NE(errc_of([&] { o.j.close(); }), errc{});
  EXPECT_EQ(disk.refusals, 0);
  o.j.close();  // the space is there now
  const auto written = weir::detail::read_manifest({&r.disk, "j", true});
  ASSERT_TRUE(written.has_value());
  EXPECT_TRUE(written->closed);
  EXPECT_EQ(written->durable_lsn, 1u);
}

TEST(journal_fault, a_payload_that_cannot_be_written_is_refused_before_anything_refers_to_it) {
  for (int kind = 0; kind < 2; ++kind) {
    rig r;
    {
      opened o(r.disk);
      append(o.j, "one");
      commit(o.j);
      if (kind == 0) r.disk.set({.space = static_cast<std::int64_t>(small_segment) + 1000});
      if (kind == 1) r.disk.set({.eio = 1});
      EXPECT_EQ(errc_of([&] { append(o.j, std::string(30'000, 'x')); }),
                kind == 0 ? errc::journal_full : errc::journal_failed);
      EXPECT_FALSE(o.j.failed());
      EXPECT_EQ(o.j.last_lsn(), 1u);
      r.disk.set({});
      append(o.j, std::string(30'000, 'y'));
      append(o.j, "two");
      commit(o.j);
      o.j.close();
    }
    r.disk.crash();
    EXPECT_EQ(payloads(r.disk), (texts{"one", std::string(30'000, 'y'), "two"})) << kind;
  }
}

TEST(journal_fault, the_same_payload_in_batches_that_overlap_is_there_for_both) {
  rig r;
  const std::string large(30'000, 'x');
  {
    opened o(r.disk);
    append(o.j, large);
    append(o.j, large);
    auto first = o.j.take();
    append(o.j, large);
    o.j.commit(*first);
    o.j.committed(std::move(first));
    EXPECT_EQ(read(o.j, append(o.j, large).place), large);
    commit(o.j);
  }
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), (texts{large, large, large, large}));
  EXPECT_EQ(r.disk.list("j/blob").size(), 1u);
}
