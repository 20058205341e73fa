// SPDX-License-Identifier: MIT
// Compaction of a journal: what is kept, what is removed, what is refused afterwards.
#include <set>

#include <gtest/gtest.h>

#include "durable/compaction.hpp"
#include "durable/journal_support.hpp"
#include "durable/manifest.hpp"

using namespace journal_aid;
using weir::errc;
using weir::detail::compaction_plan;
using weir::detail::make_place;
using weir::detail::snapshot_name;

namespace {

constexpr int runs_at_first = 400;

std::string payload_of_run(std::uint64_t run) {
  return "run " + std::to_string(run) + std::string(400, 'x');
}

struct appended_run {
  std::uint64_t run;
  journal::appended at;
};

/// Fills several segments.
std::vector<appended_run> fill(journal& j, std::uint64_t first, std::uint64_t count) {
  std::vector<appended_run> all;
  for (std::uint64_t run = first; run < first + count; ++run) {
    all.push_back({run, j.append({.type = 1, .run = run}, payload_of_run(run))});
    if (run % 7 == 0) commit(j);
  }
  commit(j);
  return all;
}

/// Replaces all segments but the last; keeps the runs that a divisor divides.
void begin(journal& j, std::uint64_t divisor, std::uint64_t up_to = 10'000) {
  compaction_plan plan;
  plan.last_segment = j.may_be_replaced().last_segment;
  for (std::uint64_t run = divisor; run < up_to; run += divisor) plan.keep.add(run);
  plan.closing = [](auto) { return compaction_plan::closing_record{{.type = 19}, "end"}; };
  j.begin_compaction(std::move(plan));
}

void slice(journal& j) {
  auto batch = j.take_to_compact();
  j.commit(*batch);
  j.committed(std::move(batch));
}

void compact(journal& j, std::uint64_t divisor) {
  begin(j, divisor);
  for (int i = 0; i < 100 && j.compacting(); ++i) slice(j);
  EXPECT_FALSE(j.compacting());
}

std::string what_opening_says(weir::disk& disk) {
  try {
    opened again(disk);
  } catch (const weir::error& e) {
    EXPECT_EQ(e.code(), errc::journal_corrupt) << e.what();
    return e.what();
  }
  return "";
}

/// A compacted journal that was closed; gives its files.
struct compacted_journal {
  explicit compacted_journal(std::uint64_t seed = 1) : rig(seed) {
    opened first(rig.disk);
    all = fill(first.j, 1, runs_at_first);
    last_segment = first.j.may_be_replaced().last_segment;
    compact(first.j, 10);
    first.j.close();
  }
  std::string snapshot() const { return "j/" + snapshot_name(last_segment); }

  disk_support::rig rig;
  std::vector<appended_run> all;
  std::uint64_t last_segment = 0;
};

}  // namespace

TEST(journal_compaction, keeps_records_with_their_lsns_and_places) {
  disk_support::rig rig(1);
  std::vector<appended_run> all;
  std::uint64_t replaced = 0;
  {
    opened first(rig.disk);
    all = fill(first.j, 1, runs_at_first);
    replaced = first.j.may_be_replaced().last_segment;
    ASSERT_GE(replaced, 2u);
    begin(first.j, 10);
    for (int i = 0; i < 100 && first.j.compacting(); ++i) {
      slice(first.j);
      for (const appended_run& r : all)  // at every moment
        if (r.run % 10 == 0) {
          EXPECT_EQ(read(first.j, r.at.place), payload_of_run(r.run));
        }
      const auto more = fill(first.j, runs_at_first + 1 + static_cast<std::uint64_t>(i), 1);
      all.push_back(more.front());
    }
    EXPECT_FALSE(first.j.compaction_error());
    EXPECT_FALSE(rig.disk.exists(segment(1)));
    first.j.close();
  }
  opened again(rig.disk);
  std::size_t next = 0;
  for (const seen_record& r : again.seen.records) {
    if (r.head.type == 19) {
      EXPECT_EQ(r.payload, "end");
      continue;
    }
    while (all[next].run != r.head.run) {
      EXPECT_NE(all[next].run % 10, 0u);
      EXPECT_LE(weir::detail::segment_of(all[next].at.place), replaced);
      ++next;
    }
    EXPECT_EQ(r.lsn, all[next].at.lsn);
    EXPECT_EQ(r.place, all[next].at.place);
    EXPECT_EQ(r.payload, payload_of_run(r.head.run));
    EXPECT_EQ(read(again.j, r.place), r.payload);
    ++next;
  }
  EXPECT_EQ(next, all.size());
}

TEST(journal_compaction, of_a_snapshot_and_the_segments_after_it) {
  compacted_journal c;
  std::uint64_t n = runs_at_first + 1;
  for (const std::uint64_t divisor : {20u, 40u, 80u}) {
    opened o(c.rig.disk);
    fill(o.j, n, 200);
    n += 200;
    compact(o.j, divisor);
    EXPECT_FALSE(o.j.compaction_error());
    std::size_t snapshots = 0;
    for (const std::string& name : c.rig.disk.list("j"))
      if (weir::detail::snapshot_number(name)) ++snapshots;
    EXPECT_EQ(snapshots, 1u);
  }
  opened last(c.rig.disk);
  std::set<std::uint64_t> seen;
  for (const seen_record& r : last.seen.records) EXPECT_TRUE(seen.insert(r.head.run).second);
  EXPECT_TRUE(seen.contains(80));
  EXPECT_FALSE(seen.contains(40));
  EXPECT_TRUE(seen.contains(n - 1));
}

TEST(journal_compaction, has_bounded_io_per_slice) {
  disk_support::rig rig(1);
  opened o(rig.disk, std::uint64_t{1} << 20);
  fill(o.j, 1, 20'000);  // about nine segments
  begin(o.j, 1, 1'000'000);
  int slices = 0;
  for (; slices < 1000 && o.j.compacting(); ++slices) slice(o.j);
  EXPECT_GE(slices, 9);
}

TEST(journal_compaction, gives_the_snapshot_its_name_after_what_it_depends_on_is_durable) {
  disk_support::rig rig(1);
  opened o(rig.disk);
  fill(o.j, 1, runs_at_first);
  begin(o.j, 10);
  o.j.compaction_may_end_after(UINT64_MAX);  // not known yet
  const std::string name = "j/" + snapshot_name(o.j.may_be_replaced().last_segment);
  for (int i = 0; i < 50; ++i) slice(o.j);
  EXPECT_FALSE(rig.disk.exists(name));
  const std::uint64_t needed = append(o.j, "needed").lsn;
  o.j.compaction_may_end_after(needed);
  for (int i = 0; i < 50; ++i) slice(o.j);
  EXPECT_FALSE(rig.disk.exists(name));
  commit(o.j);
  for (int i = 0; i < 50 && o.j.compacting(); ++i) slice(o.j);
  EXPECT_TRUE(rig.disk.exists(name));
  EXPECT_FALSE(o.j.compacting());
}

TEST(journal_compaction, makes_the_next_segment_of_an_old_one) {
  disk_support::rig rig(1);
  std::uint64_t run = 1;
  {
    opened o(rig.disk);
    for (int i = 0; i < 20; ++i) {
      fill(o.j, run, 200);
      run += 200;
      compact(o.j, 1'000'000);
      std::size_t segments = 0;
      for (const std::string& name : rig.disk.list("j"))
        if (weir::detail::segment_number(name)) ++segments;
      EXPECT_LE(segments, 3u);
    }
  }
  opened again(rig.disk);
  for (const seen_record& r : again.seen.records) {
    if (r.head.run == 0) continue;
    EXPECT_EQ(r.payload, payload_of_run(r.head.run));
    EXPECT_GT(r.head.run, run - 400);
  }
}

TEST(journal_compaction, removes_blobs_that_no_record_needs) {
  disk_support::rig rig(1);
  const std::string dropped(70'000, 'a');
  const std::string kept(70'000, 'b');
  const std::string shared(70'000, 'c');
  const std::string used_again(70'000, 'd');
  {
    opened o(rig.disk);
    for (const std::string& text : {dropped, shared, used_again})
      (void)o.j.append({.type = 1, .run = 1}, text);
    for (const std::string& text : {kept, shared}) (void)o.j.append({.type = 1, .run = 10}, text);
    commit(o.j);
    fill(o.j, 11, runs_at_first);
    begin(o.j, 10);
    slice(o.j);
    (void)o.j.append({.type = 1, .run = 20}, used_again);
    for (int i = 0; i < 100 && o.j.compacting(); ++i) slice(o.j);
    EXPECT_EQ(rig.disk.list("j/blob").size(), 4u);  // three, and the draft of one
    commit(o.j);
    EXPECT_EQ(rig.disk.list("j/blob").size(), 3u);
  }
  // What a crash has left behind is removed by the next open.
  const std::string orphan = "j/blob/" + std::string(64, 'e');
  disk_support::put(*rig.disk.open(orphan, weir::open_mode::create), "left behind");
  opened again(rig.disk);
  EXPECT_EQ(rig.disk.list("j/blob").size(), 3u);
  std::multiset<char> blobs;
  for (const seen_record& r : again.seen.records)
    if (r.payload.size() == 70'000) blobs.insert(r.payload.front());
  EXPECT_EQ(blobs, (std::multiset<char>{'b', 'c', 'd'}));
}

TEST(journal_compaction, raises_the_format_version_of_the_manifest) {
  compacted_journal c;
  const weir::detail::journal_files in{&c.rig.disk, "j", true};
  EXPECT_EQ(weir::detail::read_manifest(in)->version, 2u);
  {
    opened again(c.rig.disk);
  }
  EXPECT_EQ(weir::detail::read_manifest(in)->version, 2u);
}

// ------------------------------------------------------------------------------------------ damage

TEST(journal_compaction, a_damaged_snapshot_is_refused_wherever_the_damage_is) {
  compacted_journal c;
  const image sound = files(c.rig.disk);
  const std::string name = c.snapshot().substr(2);
  const std::string whole = sound.at(name);
  disk_support::generator random(3);
  for (int i = 0; i < 300; ++i) {
    image damaged = sound;
    const auto at = static_cast<std::size_t>(i < 80 ? static_cast<std::uint64_t>(i)
                                                    : random.below(whole.size()));
    damaged[name][at] = static_cast<char>(damaged[name][at] ^ 1 << random.below(8));
    disk_support::rig other(1);
    restore(other.disk, damaged);
    const std::string text = what_opening_says(other.disk);
    EXPECT_TRUE(text.find(name) != std::string::npos) << at << ": " << text;
    EXPECT_EQ(files(other.disk), damaged) << at;
  }
}

TEST(journal_compaction, a_snapshot_that_is_cut_or_missing_is_refused) {
  compacted_journal c;
  const image sound = files(c.rig.disk);
  const std::string name = c.snapshot().substr(2);
  const std::size_t size = sound.at(name).size();
  for (const std::size_t cut : {std::size_t{0}, std::size_t{79}, size / 2, size - 8, size - 1}) {
    for (const bool with_manifest : {true, false}) {
      image damaged = sound;
      damaged[name].resize(cut);
      if (!with_manifest) damaged.erase("MANIFEST");
      disk_support::rig other(1);
      restore(other.disk, damaged);
      EXPECT_NE(what_opening_says(other.disk), "") << cut;
      EXPECT_EQ(files(other.disk), damaged);
    }
  }
  for (const bool with_manifest : {true, false}) {
    image damaged = sound;
    damaged.erase(name);
    if (!with_manifest) damaged.erase("MANIFEST");
    disk_support::rig other(1);
    restore(other.disk, damaged);
    EXPECT_NE(what_opening_says(other.disk), "");
  }
}

TEST(journal_compaction, a_lost_manifest_beside_a_snapshot_is_rebuilt) {
  compacted_journal c;
  const std::vector<std::string> expected = payloads(c.rig.disk);
  c.rig.disk.unlink("j/MANIFEST");
  EXPECT_EQ(payloads(c.rig.disk), expected);
  EXPECT_EQ(payloads(c.rig.disk), expected);
}

TEST(journal_compaction, files_that_a_crash_left_behind_are_removed) {
  disk_support::rig rig(1);
  image before;
  {
    opened first(rig.disk);
    fill(first.j, 1, runs_at_first);
    before = files(rig.disk);
    compact(first.j, 10);
  }
  const std::vector<std::string> expected = payloads(rig.disk);
  image both = files(rig.disk);
  for (const auto& [name, content] : before)
    if (name != "MANIFEST") both.emplace(name, content);
  disk_support::rig other(1);
  restore(other.disk, both);
  EXPECT_EQ(payloads(other.disk), expected);
  EXPECT_FALSE(other.disk.exists(segment(1)));
  // The same before the manifest names the snapshot: it counts for nothing.
  both["MANIFEST"] = before["MANIFEST"];
  disk_support::rig third(1);
  restore(third.disk, both);
  EXPECT_EQ(payloads(third.disk).size(), static_cast<std::size_t>(runs_at_first));
  for (const std::string& name : third.disk.list("j"))
    EXPECT_FALSE(weir::detail::snapshot_number(name)) << name;
}

// Compaction reads what it replaces: damage that has happened since is found, and nothing is
// removed.
TEST(journal_compaction, of_a_damaged_segment_ends_with_an_error_and_removes_nothing) {
  disk_support::rig rig(1);
  opened o(rig.disk);
  fill(o.j, 1, runs_at_first);
  auto file = rig.disk.open(segment(2), weir::open_mode::read_write);
  disk_support::put(*file, "damage", 30'000);
  begin(o.j, 10);
  for (int i = 0; i < 100 && o.j.compacting(); ++i) slice(o.j);
  ASSERT_TRUE(o.j.compaction_error());
  EXPECT_EQ(errc_of([&] { std::rethrow_exception(o.j.compaction_error()); }),
            errc::journal_corrupt);
  EXPECT_TRUE(rig.disk.exists(segment(1)));
  EXPECT_FALSE(o.j.failed());
  fill(o.j, 5000, 10);
}

// ------------------------------------------------------------------------------------------ faults

TEST(journal_compaction, without_space_the_journal_goes_on_without_it) {
  disk_support::rig rig(1);
  opened o(rig.disk);
  const auto all = fill(o.j, 1, runs_at_first);
  rig.disk.set({.space = 1});
  begin(o.j, 1);
  for (int i = 0; i < 100 && o.j.compacting(); ++i) slice(o.j);
  EXPECT_TRUE(o.j.compaction_error());
  EXPECT_FALSE(o.j.failed());
  rig.disk.set({});
  for (const appended_run& r : all) EXPECT_EQ(read(o.j, r.at.place), payload_of_run(r.run));
  compact(o.j, 1);
  EXPECT_FALSE(o.j.compaction_error());
  for (const appended_run& r : all) EXPECT_EQ(read(o.j, r.at.place), payload_of_run(r.run));
}

// Each sync of a compaction fails once: before the manifest the journal goes on, with it it stops,
// and nothing is lost in either case.
TEST(journal_compaction, a_failed_sync_loses_nothing) {
  for (int failing = 0; failing < 8; ++failing) {
    disk_support::rig rig(1);
    {
      opened o(rig.disk);
      fill(o.j, 1, runs_at_first);
      begin(o.j, 10);
      for (int i = 0; i < 100 && o.j.compacting() && !o.j.failed(); ++i) {
        if (i == failing) rig.disk.fail_next_sync();
        auto batch = o.j.take_to_compact();
        const errc code = errc_of([&] {
          o.j.commit(*batch);
          return 0;
        });
        EXPECT_EQ(code == errc{}, !o.j.failed());
        if (code != errc{}) break;
        o.j.committed(std::move(batch));
      }
    }
    // The failure may not have been used yet.
    try {
      rig.disk.sync_directory("j");
    } catch (const std::system_error&) {
    }
    rig.disk.crash();
    std::set<std::uint64_t> seen;
    const opened again(rig.disk);
    for (const seen_record& r : again.seen.records) seen.insert(r.head.run);
    for (std::uint64_t run = 10; run < runs_at_first; run += 10)
      EXPECT_TRUE(seen.contains(run)) << run << ", sync " << failing;
  }
}
