// SPDX-License-Identifier: MIT
// What a simulated disk adds to a real one: crashes, faults, owners and dead worlds.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <weir/error.hpp>

#include "support/disk_support.hpp"

using namespace disk_support;
using std::errc;
using weir::sim::disk_faults;

namespace {

constexpr std::size_t sector = 512;

/// So many sectors, each filled with its letter.
std::string sectors(std::string_view letters) {
  std::string text;
  for (const char letter : letters) text.append(sector, letter);
  return text;
}

/// The letter of each sector; '!' for one that is not all of one letter.
std::string letters(const std::string& text) {
  std::string found;
  for (std::size_t at = 0; at < text.size(); at += sector) {
    const std::string piece = text.substr(at, sector);
    found += piece == std::string(piece.size(), piece[0]) ? piece[0] : '!';
  }
  return found;
}

}  // namespace

TEST(sim_disk, content_is_lost_until_its_file_is_synced) {
  rig r;
  durable_file(r.disk, "f", "synced");
  auto file = r.disk.open("f", open_mode::read_write);
  put(*file, "SYN");
  put(*file, "and more", 6);
  EXPECT_EQ(get(*file), "SYNcedand more");
  r.disk.crash();
  EXPECT_EQ(get(r.disk, "f"), "synced");
}

TEST(sim_disk, a_name_is_lost_until_its_directory_is_synced) {
  rig r;
  auto file = r.disk.open("f", open_mode::create_new);
  put(*file, "content");
  file->sync();
  EXPECT_TRUE(r.disk.exists("f"));
  r.disk.crash();
  EXPECT_FALSE(r.disk.exists("f"));
  EXPECT_EQ(r.disk.list("/"), names{});
}

TEST(sim_disk, a_name_that_lasts_does_not_make_the_content_last) {
  rig r;
  put(*r.disk.open("f", open_mode::create_new), "content");
  r.disk.sync_directory("/");
  r.disk.crash();
  EXPECT_EQ(get(r.disk, "f"), "");
}

TEST(sim_disk, sizes_are_lost_and_synced_like_content) {
  rig r;
  auto file = durable_file(r.disk, "f", "0123456789");
  file->truncate(3);
  file->preallocate(2000);
  r.disk.crash();
  EXPECT_EQ(get(r.disk, "f"), "0123456789");
  file = r.disk.open("f", open_mode::read_write);
  file->truncate(3);
  file->preallocate(5);
  file->sync();
  r.disk.crash();
  EXPECT_EQ(get(r.disk, "f"), std::string("012\0\0", 5));
}

TEST(sim_disk, an_unsynced_rename_and_unlink_are_undone) {
  rig r;
  durable_file(r.disk, "a", "was a");
  durable_file(r.disk, "b", "was b");
  durable_file(r.disk, "c", "was c");
  r.disk.rename("a", "b");
  r.disk.unlink("c");
  EXPECT_EQ(r.disk.list("/"), names{"b"});
  r.disk.crash();
  EXPECT_EQ(r.disk.list("/"), (names{"a", "b", "c"}));
  EXPECT_EQ(get(r.disk, "a"), "was a");
  EXPECT_EQ(get(r.disk, "b"), "was b");
  EXPECT_EQ(get(r.disk, "c"), "was c");
  r.disk.rename("a", "b");
  r.disk.unlink("c");
  r.disk.sync_directory("/");
  r.disk.crash();
  EXPECT_EQ(r.disk.list("/"), names{"b"});
  EXPECT_EQ(get(r.disk, "b"), "was a");
}

TEST(sim_disk, a_directory_syncs_its_own_names_only) {
  rig r;
  r.disk.make_directory("d");
  r.disk.open("d/f", open_mode::create_new).reset();
  r.disk.sync_directory("d");
  r.disk.crash();
  EXPECT_FALSE(r.disk.exists("d"));  // f lasts in a directory that does not
  r.disk.make_directory("d");
  EXPECT_EQ(r.disk.list("d"), names{});  // and this is another directory
  r.disk.open("d/f", open_mode::create_new).reset();
  r.disk.sync_directory("/");
  r.disk.crash();
  EXPECT_TRUE(r.disk.exists("d"));
  EXPECT_FALSE(r.disk.exists("d/f"));
}

TEST(sim_disk, a_rename_between_directories_lasts_as_a_whole) {
  for (const char* synced : {"from", "to"}) {
    rig r;
    for (const char* directory : {"from", "to"}) r.disk.make_directory(directory);
    r.disk.sync_directory("/");
    r.disk.open("from/f", open_mode::create_new).reset();
    r.disk.rename("from/f", "to/f");
    r.disk.sync_directory(synced);
    r.disk.sync_directory("from");  // the creation before it does not bring the file back
    r.disk.crash();
    EXPECT_FALSE(r.disk.exists("from/f")) << synced;
    EXPECT_TRUE(r.disk.exists("to/f")) << synced;
  }
}

TEST(sim_disk, a_file_renamed_twice_leaves_its_first_name_too) {
  rig r;
  for (const char* directory : {"x", "y", "z"}) r.disk.make_directory(directory);
  r.disk.open("x/f", open_mode::create_new).reset();
  for (const char* directory : {"/", "x"}) r.disk.sync_directory(directory);
  r.disk.rename("x/f", "y/f");
  r.disk.rename("y/f", "z/f");
  r.disk.sync_directory("z");
  r.disk.crash();
  EXPECT_FALSE(r.disk.exists("x/f"));
  EXPECT_FALSE(r.disk.exists("y/f"));
  EXPECT_TRUE(r.disk.exists("z/f"));
}

TEST(sim_disk, a_crash_makes_open_files_stale) {
  rig r;
  auto file = durable_file(r.disk, "f", "content");
  r.disk.crash();
  std::array<std::byte, 4> into{};
  EXPECT_EQ(code_of_failure([&] { file->pread(into, 0); }), errc::bad_file_descriptor);
  EXPECT_EQ(code_of_failure([&] { file->pwrite(into, 0); }), errc::bad_file_descriptor);
  EXPECT_EQ(code_of_failure([&] { file->truncate(0); }), errc::bad_file_descriptor);
  EXPECT_EQ(code_of_failure([&] { file->preallocate(9); }), errc::bad_file_descriptor);
  EXPECT_EQ(code_of_failure([&] { file->size(); }), errc::bad_file_descriptor);
  EXPECT_EQ(text_of([&] { file->sync(); }), "sync 'f': closed by a crash: Bad file descriptor");
  EXPECT_EQ(get(r.disk, "f"), "content");
}

TEST(sim_disk, a_crash_frees_the_locks) {
  rig r;
  auto stale = r.disk.lock("lock");
  r.disk.crash();
  auto lock = r.disk.lock("lock");
  stale.reset();  // and does not release what another holds now
  EXPECT_EQ(code_of_failure([&] { r.disk.lock("lock"); }), errc::resource_unavailable_try_again);
}

TEST(sim_disk, a_crash_of_one_owner_leaves_the_others_alone) {
  rig r;
  auto mine = durable_file(r.disk, "mine", "1");
  put(*mine, "unsynced");
  auto my_lock = r.disk.lock("my lock");
  r.disk.open("my new", open_mode::create_new).reset();
  r.host.who = 2;
  auto other = r.disk.open("other", open_mode::create_new);
  put(*other, "unsynced");
  auto other_lock = r.disk.lock("other lock");
  r.disk.crash(1);
  EXPECT_EQ(get(*other), "unsynced");
  EXPECT_EQ(get(r.disk, "mine"), "1");
  EXPECT_EQ(code_of_failure([&] { mine->size(); }), errc::bad_file_descriptor);
  EXPECT_EQ(r.disk.list("/"), (names{"mine", "other", "other lock"}));
  EXPECT_EQ(code_of_failure([&] { r.disk.lock("other lock"); }),
            errc::resource_unavailable_try_again);
  my_lock = r.disk.lock("my lock");
  other->sync();
  r.disk.sync_directory("/");
  r.disk.crash();
  EXPECT_EQ(get(r.disk, "other"), "unsynced");
}

TEST(sim_disk, two_owners_of_one_file_lose_their_own_writes) {
  rig r;
  auto file = durable_file(r.disk, "f", "..........");
  put(*file, "1", 0);
  r.host.who = 2;
  auto second = r.disk.open("f", open_mode::read_write);
  put(*second, "2", 1);
  r.host.who = 1;
  put(*file, "1", 2);
  EXPECT_EQ(get(*file), "121.......");
  r.disk.crash(1);
  EXPECT_EQ(get(*second), ".2........");
  second->sync();
  r.disk.crash();
  EXPECT_EQ(get(r.disk, "f"), ".2........");
}

TEST(sim_disk, in_a_dead_world_nothing_happens) {
  rig r;
  auto file = durable_file(r.disk, "f", "content");
  auto lock = r.disk.lock("lock");
  r.host.is_dead = true;
  put(*file, "CHANGED");
  file->truncate(0);
  file->preallocate(100);
  file->sync();
  std::array<std::byte, 4> into{};
  EXPECT_EQ(file->pread(into, 0), into.size());  // zeros: nobody may throw for a short file
  EXPECT_EQ(file->size(), 0u);
  auto dead = r.disk.open("g", open_mode::create_new);
  put(*dead, "text");
  r.disk.rename("f", "h");
  r.disk.unlink("none");
  r.disk.make_directory("none/none");
  r.disk.sync_directory("none");
  EXPECT_FALSE(r.disk.exists("f"));
  EXPECT_EQ(r.disk.list("none"), names{});
  auto dead_lock = r.disk.lock("lock");
  r.disk.set({.eio = 7});
  r.disk.fail_next_sync();
  dead_lock.reset();
  lock.reset();
  file.reset();
  r.host.is_dead = false;
  EXPECT_EQ(r.disk.list("/"), (names{"f", "lock"}));
  EXPECT_EQ(get(r.disk, "f"), "content");
  EXPECT_EQ(code_of_failure([&] { r.disk.lock("lock"); }), errc::resource_unavailable_try_again);
  EXPECT_EQ(code_of_failure([&] { dead->size(); }), errc::bad_file_descriptor);
  r.disk.sync_directory("/");
  r.disk.crash(1);
  EXPECT_EQ(code_of_failure([&] { r.disk.lock("lock"); }), std::error_code());
}

TEST(sim_disk, rates_and_space_are_checked) {
  rig r;
  const auto refused = [&](const disk_faults& faults) {
    return code_of_failure([&] { r.disk.set(faults); }) == weir::errc::invalid_argument;
  };
  for (const double bad : {-0.1, 1.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(refused({.torn = bad}));
    EXPECT_TRUE(refused({.reorder = bad}));
    EXPECT_TRUE(refused({.short_write = bad}));
    EXPECT_TRUE(refused({.eio = bad}));
    EXPECT_TRUE(refused({.sync_error = bad}));
  }
  EXPECT_TRUE(refused({.eio = 1, .space = -1}));
  r.disk.open("f", open_mode::create).reset();  // nothing of what was refused is set
  r.disk.set({.torn = 0, .reorder = 1, .short_write = 0, .eio = 0, .sync_error = 0, .space = 0});
  EXPECT_EQ(text_of([&] { r.disk.set({.torn = 2}); }),
            "disk_faults: .torn is 2.000000; a rate is from 0 to 1");
}

TEST(sim_disk, faults_that_are_off_make_no_choices) {
  rig r;
  auto file = durable_file(r.disk, "f", sectors("abc"));
  put(*file, sectors("xyz"));
  get(*file);
  r.disk.crash();
  EXPECT_EQ(r.host.draws, 0);
}

TEST(sim_disk, a_torn_write_leaves_some_sectors_as_they_were) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    rig r(seed);
    auto file = durable_file(r.disk, "f", sectors("abc"));
    r.disk.set({.torn = 1});
    put(*file, sectors("xyz"));
    r.disk.crash();
    seen.insert(letters(get(r.disk, "f")));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"abc", "abz", "ayc", "ayz", "xbc", "xbz", "xyc", "xyz"}));
}

TEST(sim_disk, a_torn_append_ends_with_its_last_sector_and_has_holes) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    rig r(seed);
    auto file = durable_file(r.disk, "f", sectors("a"));
    r.disk.set({.torn = 1});
    put(*file, sectors("bc") + "d", sector);
    r.disk.crash();
    seen.insert(letters(get(r.disk, "f")));
  }
  const std::string hole(1, '\0');
  EXPECT_EQ(seen, (std::set<std::string>{"a", "ab", "a" + hole + "c", "abc", "ab" + hole + "d",
                                         "a" + hole + "cd", "a" + hole + hole + "d", "abcd"}));
}

TEST(sim_disk, a_sector_brings_all_that_was_written_to_it) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    rig r(seed);
    auto file = durable_file(r.disk, "f", "....");
    r.disk.set({.torn = 0.5});
    put(*file, "1", 0);
    put(*file, "2", 1);
    put(*file, "3", 2);
    r.disk.crash();
    seen.insert(get(r.disk, "f"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"....", "1...", "12..", "123."}));
}

TEST(sim_disk, reordered_writes_last_wholly_and_in_any_combination) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    rig r(seed);
    auto file = durable_file(r.disk, "f", sectors("abcd"));
    r.disk.set({.reorder = 0.5});
    put(*file, sectors("wx"));
    put(*file, sectors("yz"), 2 * sector);
    r.disk.crash();
    seen.insert(letters(get(r.disk, "f")));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"abcd", "abyz", "wxcd", "wxyz"}));
}

TEST(sim_disk, a_rate_of_one_reorders_everything_onto_the_disk) {
  rig r;
  auto file = durable_file(r.disk, "f", "0123456789");
  r.disk.set({.reorder = 1});
  file->truncate(2);
  put(*file, "x", 4);
  r.disk.rename("f", "g");
  r.disk.crash();
  EXPECT_EQ(r.disk.list("/"), names{"g"});
  EXPECT_EQ(get(r.disk, "g"), std::string("01\0\0x", 5));
}

TEST(sim_disk, torn_names_last_as_a_prefix) {
  std::set<names> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    rig r(seed);
    r.disk.set({.torn = 0.9});
    for (const char* name : {"a", "b", "c"}) r.disk.open(name, open_mode::create).reset();
    r.disk.crash();
    seen.insert(r.disk.list("/"));
  }
  EXPECT_EQ(seen, (std::set<names>{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}}));
}

TEST(sim_disk, reordered_names_last_in_any_combination) {
  std::set<names> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    rig r(seed);
    durable_file(r.disk, "a", "");
    r.disk.set({.reorder = 0.5});
    r.disk.unlink("a");
    r.disk.open("b", open_mode::create).reset();
    r.disk.crash();
    seen.insert(r.disk.list("/"));
  }
  EXPECT_EQ(seen, (std::set<names>{{}, {"a"}, {"a", "b"}, {"b"}}));
}

// Journals fill their segments with zeros before they use them.
TEST(sim_disk, a_large_write_makes_few_choices) {
  rig r;
  auto file = durable_file(r.disk, "f", sectors("ab"));
  put(*file, std::string(64u << 20, '\0'));
  r.disk.set({.torn = 1});
  r.disk.crash();
  EXPECT_LT(r.host.draws, 5000);
  const std::string found = get(r.disk, "f");
  const std::string start = letters(found.substr(0, 2 * sector));
  EXPECT_TRUE(start[0] == 'a' || start[0] == '\0');
  EXPECT_TRUE(start[1] == 'b' || start[1] == '\0');
  EXPECT_EQ(found.find_first_not_of('\0', 2 * sector), std::string::npos);
  EXPECT_GT(found.size(), 63u << 20);
}

TEST(sim_disk, a_short_write_writes_at_least_one_byte) {
  std::set<std::size_t> seen;
  rig r;
  auto file = r.disk.open("f", open_mode::create);
  r.disk.set({.short_write = 1});
  for (int i = 0; i < 100; ++i) seen.insert(file->pwrite(bytes("1234"), 0));
  EXPECT_EQ(seen, (std::set<std::size_t>{1, 2, 3}));
  EXPECT_EQ(file->pwrite(bytes("1"), 0), 1u);
  put(*file, "all of it");
  EXPECT_EQ(get(*file), "all of it");
}

TEST(sim_disk, eio_fails_open_and_pread_and_pwrite_and_changes_nothing) {
  rig r;
  auto file = durable_file(r.disk, "f", "content");
  r.disk.set({.eio = 1});
  std::array<std::byte, 4> into{};
  EXPECT_EQ(text_of([&] { file->pread(into, 3); }), "pread 'f' at 3: Input/output error");
  EXPECT_EQ(text_of([&] { file->pwrite(into, 3); }), "pwrite 'f' at 3: Input/output error");
  EXPECT_EQ(text_of([&] { r.disk.open("g", open_mode::create); }), "open 'g': Input/output error");
  r.disk.set({});
  EXPECT_EQ(get(*file), "content");
  EXPECT_EQ(r.disk.list("/"), names{"f"});
}

TEST(sim_disk, after_a_failed_sync_a_good_one_does_not_make_the_writes_last) {
  rig r;
  auto file = durable_file(r.disk, "f", "content");
  put(*file, "CON");
  r.disk.fail_next_sync();
  EXPECT_EQ(text_of([&] { file->sync(); }), "sync 'f': Input/output error");
  EXPECT_EQ(get(*file), "CONtent");  // the page cache shows what the disk never got
  put(*file, "T", 6);
  file->sync();
  r.disk.crash();
  EXPECT_EQ(get(r.disk, "f"), "contenT");
}

TEST(sim_disk, what_a_failed_sync_dropped_is_lost_with_its_owner) {
  rig r;
  auto file = durable_file(r.disk, "f", "content");
  put(*file, "CON");
  r.disk.set({.sync_error = 1});
  EXPECT_EQ(code_of_failure([&] { file->sync(); }), errc::io_error);
  r.disk.crash(2);
  EXPECT_EQ(get(*file), "CONtent");
  r.disk.crash(1);
  EXPECT_EQ(get(r.disk, "f"), "content");
}

TEST(sim_disk, after_a_failed_sync_of_a_directory_a_good_one_does_not_make_the_names_last) {
  rig r;
  durable_file(r.disk, "kept", "");
  r.disk.open("dropped", open_mode::create).reset();
  r.disk.open("dropped, then unlinked", open_mode::create).reset();
  r.disk.fail_next_sync();
  EXPECT_EQ(text_of([&] { r.disk.sync_directory("/"); }), "sync_directory '/': Input/output error");
  r.disk.open("synced", open_mode::create).reset();
  r.disk.unlink("dropped, then unlinked");
  r.disk.sync_directory("/");
  r.disk.crash(2);
  EXPECT_EQ(r.disk.list("/"), (names{"dropped", "kept", "synced"}));
  r.disk.crash(1);
  EXPECT_EQ(r.disk.list("/"), (names{"kept", "synced"}));
}

TEST(sim_disk, a_full_disk_writes_what_fits_and_then_nothing) {
  rig r;
  r.disk.set({.space = 10});
  auto a = r.disk.open("a", open_mode::create);
  auto b = r.disk.open("b", open_mode::create);
  put(*a, "123456");
  EXPECT_EQ(b->pwrite(bytes("123456"), 0), 4u);
  EXPECT_EQ(text_of([&] { put(*b, "56", 4); }), "pwrite 'b' at 4: No space left on device");
  put(*a, "abcdef");  // needs no space
  EXPECT_EQ(code_of_failure([&] { a->truncate(7); }), errc::no_space_on_device);
  EXPECT_EQ(code_of_failure([&] { a->preallocate(7); }), errc::no_space_on_device);
  EXPECT_EQ(code_of_failure([&] { put(*a, "x", 9); }), errc::no_space_on_device);
  a->preallocate(6);
  a->truncate(3);
  put(*b, "567", 4);
  EXPECT_EQ(get(*a) + get(*b), "abc1234567");
}

TEST(sim_disk, an_unlinked_file_needs_space_until_it_is_closed) {
  rig r;
  r.disk.set({.space = 4});
  auto old = durable_file(r.disk, "f", "1234");
  r.disk.unlink("f");
  auto file = r.disk.open("g", open_mode::create);
  EXPECT_EQ(code_of_failure([&] { put(*file, "5"); }), errc::no_space_on_device);
  old.reset();
  put(*file, "5");
}
