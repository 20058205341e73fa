// SPDX-License-Identifier: MIT
// What a journal promises on a disk without faults, and which options and paths it refuses.
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "durable/journal_support.hpp"
#include "durable/support/temporary_directory.hpp"
#include "support/allocations.hpp"

using namespace journal_aid;
using disk_support::rig;
using weir::errc;
using weir_test::temporary_directory;

TEST(journal, a_new_one_is_empty_and_has_its_files) {
  rig r;
  opened o(r.disk);
  EXPECT_TRUE(o.seen.records.empty());
  EXPECT_EQ(o.j.last_lsn(), 0u);
  EXPECT_EQ(o.j.durable_lsn(), 0u);
  EXPECT_EQ(o.j.take(), nullptr);
  EXPECT_FALSE(o.j.short_of_space());
  EXPECT_EQ(r.disk.list("j"), (texts{"LOCK", "MANIFEST", "blob", "seg-0000000000000001.wlog"}));
  EXPECT_EQ(r.disk.open(segment(1), weir::open_mode::read)->size(), small_segment);
}

TEST(journal, gives_back_what_was_committed_with_all_that_it_knew) {
  rig r;
  std::vector<journal::appended> where;
  {
    opened o(r.disk);
    where.push_back(append(o.j, "one"));
    where.push_back(append(o.j, ""));
    commit(o.j);
    where.push_back(append(o.j, "three"));
    commit(o.j);
  }
  opened o(r.disk);
  ASSERT_EQ(o.seen.payloads(), (texts{"one", "", "three"}));
  for (std::size_t i = 0; i < 3; ++i) {
    const seen_record& s = o.seen.records[i];
    EXPECT_EQ(s.lsn, i + 1);
    EXPECT_EQ(s.lsn, where[i].lsn);
    EXPECT_EQ(s.place, where[i].place);
    EXPECT_EQ(s.head.type, 7u);
    EXPECT_EQ(s.head.flags, 3u);
    EXPECT_EQ(s.head.run, 5u);
    EXPECT_EQ(s.head.fiber, 2u);
    EXPECT_EQ(s.head.index, 9u);
  }
  EXPECT_EQ(o.j.last_lsn(), 3u);
  EXPECT_EQ(o.j.durable_lsn(), 3u);
}

TEST(journal, what_was_committed_survives_a_crash_and_what_was_not_is_lost_as_a_whole) {
  rig r;
  opened o(r.disk);
  append(o.j, "one");
  commit(o.j);
  append(o.j, "two");
  auto taken = o.j.take();
  append(o.j, "three");
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), (texts{"one"}));
}

TEST(journal, the_durable_mark_moves_when_the_batch_comes_back) {
  rig r;
  opened o(r.disk);
  append(o.j, "one");
  append(o.j, "two");
  EXPECT_EQ(o.j.last_lsn(), 2u);
  auto batch = o.j.take();
  ASSERT_NE(batch, nullptr);
  append(o.j, "three");
  EXPECT_EQ(o.j.take(), nullptr);  // one is out
  o.j.commit(*batch);
  EXPECT_EQ(o.j.durable_lsn(), 0u);
  o.j.committed(std::move(batch));
  EXPECT_EQ(o.j.durable_lsn(), 2u);
  commit(o.j);
  EXPECT_EQ(o.j.durable_lsn(), 3u);
}

TEST(journal, reads_a_record_wherever_it_is) {
  rig r;
  opened o(r.disk);
  const auto first = append(o.j, "on the disk").place;
  commit(o.j);
  const auto second = append(o.j, "out").place;
  const auto batch = o.j.take();
  const auto third = append(o.j, "pending").place;
  EXPECT_EQ(read(o.j, first), "on the disk");
  EXPECT_EQ(read(o.j, second), "out");
  EXPECT_EQ(read(o.j, third), "pending");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  std::string payload;
  EXPECT_EQ(o.j.read(first, payload).index, 9u);
  EXPECT_EQ(o.j.read(third, payload).flags, 3u);
}

TEST(journal, reading_where_no_record_begins_is_corruption_and_not_nonsense) {
  rig r;
  opened o(r.disk);
  const auto place = append(o.j, "a record").place;
  commit(o.j);
  EXPECT_EQ(errc_of([&] { return read(o.j, place + 1); }), errc::journal_corrupt);
  EXPECT_EQ(errc_of([&] { return read(o.j, place + 40'000); }), errc::journal_corrupt);
}

TEST(journal, goes_on_over_many_segments_and_lives) {
  rig r;
  texts expected;
  std::vector<record_place> places;
  for (int life = 0; life < 5; ++life) {
    opened o(r.disk);
    ASSERT_EQ(o.seen.payloads(), expected);
    for (int i = 0; i < 100; ++i) {
      expected.push_back(std::string(1000, static_cast<char>('a' + life)) + std::to_string(i));
      places.push_back(append(o.j, expected.back()).place);
      if (i % 7 == 0) commit(o.j);
    }
    commit(o.j);
    for (std::size_t i = 0; i < places.size(); i += 13)
      ASSERT_EQ(read(o.j, places[i]), expected[i]);
  }
  EXPECT_EQ(payloads(r.disk), expected);
  EXPECT_TRUE(r.disk.exists(segment(8)));
}

TEST(journal, a_batch_larger_than_a_segment_is_split) {
  rig r;
  texts expected;
  opened o(r.disk);
  for (int i = 0; i < 50; ++i) append(o.j, expected.emplace_back(10'000, static_cast<char>(i)));
  commit(o.j);
  r.disk.crash();
  EXPECT_EQ(payloads(r.disk), expected);
}

TEST(journal, a_large_payload_is_a_blob_before_the_record_and_comes_back) {
  rig r;
  const std::string long_text(16'385, 'L');
  const std::string inside(16'384, 'i');
  record_place place = 0;
  {
    opened o(r.disk);
    append(o.j, inside);
    place = append(o.j, long_text).place;
    append(o.j, long_text);
    EXPECT_EQ(read(o.j, place), long_text);
    commit(o.j);
    EXPECT_EQ(read(o.j, place), long_text);
    EXPECT_EQ(r.disk.list("j/blob").size(), 1u);
    EXPECT_EQ(r.disk.list("j/blob").front().size(), 64u);
    r.disk.crash();
  }
  opened o(r.disk);
  EXPECT_EQ(o.seen.payloads(), (texts{inside, long_text, long_text}));
  EXPECT_EQ(o.seen.records[1].head.flags, 3u);
  EXPECT_EQ(read(o.j, place), long_text);
}

TEST(journal, a_blob_that_is_missing_or_changed_is_corruption) {
  rig r;
  opened o(r.disk);
  const auto place = append(o.j, std::string(20'000, 'L')).place;
  commit(o.j);
  const std::string path = "j/blob/" + r.disk.list("j/blob").front();
  disk_support::put(*r.disk.open(path, weir::open_mode::read_write), "x", 5);
  EXPECT_EQ(errc_of([&] { return read(o.j, place); }), errc::journal_corrupt);
  r.disk.unlink(path);
  EXPECT_EQ(errc_of([&] { return read(o.j, place); }), errc::journal_corrupt);
}

TEST(journal, the_secret_stays_and_survives_the_manifest) {
  rig r;
  {
    opened o(r.disk);
  }
  const auto other = journal_options{.path = "j", .segment_bytes = small_segment, .disk = &r.disk};
  EXPECT_EQ(opened(other).j.secret(), test_secret);
  r.disk.unlink("j/MANIFEST");
  EXPECT_EQ(opened(other).j.secret(), test_secret);
}

TEST(journal, two_of_them_have_different_secrets) {
  rig r;
  journal_options options{.path = "a", .segment_bytes = small_segment, .disk = &r.disk};
  const opened a(options);
  options.path = "b";
  const opened b(options);
  EXPECT_NE(a.j.secret(), b.j.secret());
}

TEST(journal, is_locked_as_long_as_it_is_open) {
  rig r;
  opened o(r.disk);
  collector seen;
  journal second(on(r.disk));
  EXPECT_EQ(errc_of([&] { second.open(seen); }), errc::journal_locked);
  EXPECT_NE(disk_support::text_of([&] { second.open(seen); }).find("'j'"), std::string::npos);
}

TEST(journal, refuses_segments_that_are_too_small_or_too_large_and_makes_nothing) {
  rig r;
  for (const std::uint64_t bytes : {std::uint64_t{0}, small_segment - 1, std::uint64_t{1} << 32}) {
    EXPECT_EQ(errc_of([&] { opened(r.disk, bytes); }), errc::invalid_argument);
    EXPECT_FALSE(r.disk.exists("j"));
  }
}

TEST(journal, refuses_a_path_that_is_a_file_and_leaves_it_alone) {
  rig r;
  disk_support::durable_file(r.disk, "j", "precious");
  EXPECT_EQ(errc_of([&] { opened o(r.disk); }), errc::invalid_argument);
  EXPECT_EQ(disk_support::get(r.disk, "j"), "precious");
}

TEST(journal, refuses_a_path_whose_parent_does_not_exist) {
  rig r;
  journal_options options = on(r.disk);
  options.path = "not/there";
  EXPECT_EQ(errc_of([&] { opened o(options); }), errc::invalid_argument);
}

TEST(journal, what_a_reader_throws_is_thrown_to_who_opens) {
  struct refusing final : weir::detail::record_reader {
    void see(const record_head&, std::string_view, std::uint64_t, record_place) override {
      throw std::out_of_range("enough");
    }
  };
  rig r;
  {
    opened o(r.disk);
    append(o.j, "one");
    commit(o.j);
  }
  journal j(on(r.disk));
  refusing reader;
  EXPECT_THROW(j.open(reader), std::out_of_range);
  EXPECT_EQ(payloads(r.disk), (texts{"one"}));
}

TEST(journal, is_used_only_when_it_is_open) {
  rig r;
  journal j(on(r.disk));
  EXPECT_EQ(errc_of([&] { append(j, "x"); }), errc::not_open);
  EXPECT_EQ(errc_of([&] { (void)j.take(); }), errc::not_open);
  collector seen;
  j.open(seen);
  EXPECT_EQ(errc_of([&] { j.open(seen); }), errc::already_open);
}

TEST(journal, another_segment_size_holds_for_new_segments_only) {
  rig r;
  texts expected;
  for (const std::uint64_t bytes : {small_segment, 3 * small_segment, small_segment + 1}) {
    opened o(r.disk, bytes);
    ASSERT_EQ(o.seen.payloads(), expected);
    for (int i = 0; i < 60; ++i) append(o.j, expected.emplace_back(5000, 'x'));
    commit(o.j);
  }
  EXPECT_EQ(payloads(r.disk), expected);
}

TEST(journal, without_sync_it_still_orders_and_reads_everything) {
  rig r;
  journal_options options = on(r.disk);
  options.sync = false;
  {
    opened o(options);
    append(o.j, "one");
    commit(o.j);
    EXPECT_EQ(o.j.durable_lsn(), 1u);
  }
  EXPECT_EQ(opened(options).seen.payloads(), (texts{"one"}));
}

TEST(journal, appending_allocates_nothing_once_it_has_its_buffers) {
  rig r;
  opened o(r.disk, std::uint64_t{16} << 20);
  const std::string payload(200, 'p');
  const auto fill = [&] {
    for (int i = 0; i < 500; ++i) append(o.j, payload);
  };
  for (int i = 0; i < 3; ++i) {
    fill();
    commit(o.j);
  }
  test_support::begin_to_count();
  fill();
  EXPECT_EQ(test_support::end_count(), 0);
}

TEST(journal, works_on_the_machines_disk) {
  const temporary_directory here;
  const journal_options options{.path = here / "j", .segment_bytes = small_segment};
  texts expected;
  record_place last = 0;
  for (int life = 0; life < 3; ++life) {
    opened o(options);
    ASSERT_EQ(o.seen.payloads(), expected);
    for (int i = 0; i < 40; ++i) last = append(o.j, expected.emplace_back(1 + 700 * i, 'x')).place;
    commit(o.j);
    EXPECT_EQ(read(o.j, last), expected.back());
    collector seen;
    journal second(options);
    EXPECT_EQ(errc_of([&] { second.open(seen); }), errc::journal_locked);
  }
  EXPECT_TRUE(std::filesystem::exists(here / "j/MANIFEST"));
  EXPECT_EQ(std::filesystem::file_size(here / "j/seg-0000000000000001.wlog"), small_segment);
}

TEST(journal, refuses_a_file_of_the_machines_disk_and_leaves_it_alone) {
  const temporary_directory here;
  std::ofstream(here / "f") << "precious";
  EXPECT_EQ(errc_of([&] { opened o(journal_options{.path = here / "f"}); }),
            errc::invalid_argument);
  std::string text;
  std::ifstream(here / "f") >> text;
  EXPECT_EQ(text, "precious");
}
