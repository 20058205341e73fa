// SPDX-License-Identifier: MIT
// Reading a journal without its lock: the same records as an open sees, nothing written, and a
// writer beside it that appends at every moment of the read.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "durable/journal_reader.hpp"
#include "durable/journal_support.hpp"
#include "fuzz/journal_reader.hpp"
#include "support/forwarding_disk.hpp"

using namespace journal_aid;
using disk_support::rig;
using weir::errc;
using weir::detail::journal_reader;

namespace {

class collecting_visitor final : public weir::detail::journal_visitor {
 public:
  void restart() override {
    ++restarts;
    payloads.clear();
  }
  void see(const record_head&, std::string_view payload, std::uint64_t, record_place) override {
    payloads.emplace_back(payload);
  }

  int restarts = 0;
  texts payloads;
};

/// Calls a function before every access to a file.
class watched_disk final : public disk_support::forwarding_disk {
 public:
  watched_disk(weir::disk& below, std::function<void()> before)
      : forwarding_disk(below), before_(std::move(before)) {}
  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    EXPECT_EQ(mode, weir::open_mode::read);
    before_();
    return std::make_unique<file>(before_, forwarding_disk::open(path, mode));
  }
  std::vector<std::string> list(const std::string& directory) override {
    before_();
    return forwarding_disk::list(directory);
  }

 private:
  class file final : public disk_support::forwarding_file {
   public:
    file(const std::function<void()>& before, std::unique_ptr<weir::disk_file> below)
        : forwarding_file(std::move(below)), before_(before) {}
    std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
      before_();
      return forwarding_file::pread(into, offset);
    }

   private:
    const std::function<void()>& before_;
  };

  std::function<void()> before_;
};

texts numbered(std::size_t n, std::size_t bytes) {
  texts all;
  for (std::size_t i = 0; i < n; ++i)
    all.push_back(std::to_string(i) + std::string(bytes, static_cast<char>('a' + i % 26)));
  return all;
}

void append_all(journal& j, const texts& payloads) {
  for (const std::string& p : payloads) {
    append(j, p);
    commit(j);
  }
}

texts read_beside(weir::disk& disk) {
  journal_reader reader(disk, "j");
  collecting_visitor seen;
  reader.read(seen);
  EXPECT_EQ(seen.restarts, 1);
  return seen.payloads;
}

std::string damage_found(weir::disk& disk) {
  return disk_support::text_of([&] { (void)read_beside(disk); });
}

}  // namespace

TEST(journal_reader, a_journal_in_use_is_read_without_its_lock_and_without_a_change) {
  rig r;
  opened o(r.disk);
  const texts all = numbered(150, 1000);
  append_all(o.j, all);
  append(o.j, std::string(70'000, 'x'));
  commit(o.j);
  const image before = files(r.disk);
  journal_reader reader(r.disk, "j");
  collecting_visitor seen;
  reader.read(seen);
  texts expected = all;
  expected.emplace_back(70'000, 'x');
  EXPECT_TRUE(seen.payloads == expected);
  EXPECT_EQ(seen.restarts, 1);
  EXPECT_TRUE(files(r.disk) == before);
  EXPECT_EQ(reader.view().next_lsn, 152u);
  EXPECT_EQ(reader.view().segments, 3u);
  EXPECT_FALSE(reader.view().closed);
}

TEST(journal_reader, a_torn_write_is_the_end_of_the_log_so_far) {
  rig r;
  const texts all = numbered(3, 1000);
  {
    opened o(r.disk);
    append_all(o.j, all);
  }
  const auto file = r.disk.open(segment(1), weir::open_mode::read_write);
  const std::uint64_t end = disk_support::get(*file).find_last_not_of('\0') + 1;
  const std::string half = disk_support::get(*file).substr(64, 500);
  disk_support::put(*file, half, weir::detail::aligned(end));
  journal_reader reader(r.disk, "j");
  collecting_visitor seen;
  reader.read(seen);
  EXPECT_TRUE(seen.payloads == all);
  EXPECT_EQ(reader.view().offset, weir::detail::aligned(end));
  EXPECT_EQ(reader.view().torn, 504u);
}

TEST(journal_reader, a_writer_that_appends_at_any_moment_of_a_read_is_not_taken_for_damage) {
  const texts all = numbered(300, 1500);
  for (std::size_t at = 0; at < 60; ++at) {
    for (const std::size_t more : {1u, 2u, 50u, 130u}) {
      rig r;
      opened o(r.disk);
      std::size_t written = 0;
      auto write = [&](std::size_t n) {
        for (; n > 0 && written < all.size(); --n, ++written) {
          append(o.j, all[written]);
          commit(o.j);
        }
      };
      write(41);
      std::size_t accesses = 0;
      watched_disk watched(r.disk, [&] {
        if (accesses++ == at) write(more);
      });
      const texts seen = read_beside(watched);
      ASSERT_GE(seen.size(), 41u) << at << " " << more;
      ASSERT_LE(seen.size(), written);
      ASSERT_TRUE(seen == texts(all.begin(), all.begin() + static_cast<long>(seen.size())));
      if (accesses <= at) break;
    }
  }
}

TEST(journal_reader, a_writer_that_appends_at_every_moment_is_followed_to_some_end) {
  rig r;
  opened o(r.disk);
  const texts all = numbered(2000, 900);
  std::size_t written = 0;
  watched_disk watched(r.disk, [&] {
    for (int i = 0; i < 7 && written < all.size(); ++i, ++written) {
      append(o.j, all[written]);
      commit(o.j);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const texts seen = read_beside(watched);
    ASSERT_TRUE(seen == texts(all.begin(), all.begin() + static_cast<long>(seen.size())));
  }
  EXPECT_TRUE(read_beside(r.disk) == texts(all.begin(), all.begin() + static_cast<long>(written)));
}

TEST(journal_reader, follows_what_is_appended_across_segments_and_a_new_owner) {
  rig r;
  texts all = numbered(3, 1000);
  auto o = std::make_unique<opened>(r.disk);
  append_all(o->j, all);
  journal_reader reader(r.disk, "j");
  collecting_visitor seen;
  reader.read(seen);
  EXPECT_FALSE(reader.follow(seen));
  const texts more = numbered(200, 1000);
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (i == 90) o = std::make_unique<opened>((o.reset(), r.disk));
    append(o->j, more[i]);
    commit(o->j);
    if (i % 31 == 0) {
      EXPECT_TRUE(reader.follow(seen));
    }
  }
  EXPECT_TRUE(reader.follow(seen));
  EXPECT_FALSE(reader.follow(seen));
  all.insert(all.end(), more.begin(), more.end());
  EXPECT_TRUE(seen.payloads == all);
  EXPECT_EQ(seen.restarts, 1);
}

TEST(journal_reader, refuses_exactly_what_an_open_refuses) {
  rig r;
  {
    opened o(r.disk);
    append_all(o.j, numbered(4, 30));
    o.j.close();
  }
  const image whole = files(r.disk);
  int refused = 0;
  for (const auto& [name, content] : whole) {
    const std::size_t used = content.find_last_not_of('\0') + 20;
    for (std::size_t at = 0; at < std::min(used, content.size()); ++at) {
      rig damaged;
      image changed = whole;
      changed[name][at] = static_cast<char>(changed[name][at] ^ (1 << at % 8));
      restore(damaged.disk, changed);
      const std::string found = damage_found(damaged.disk);
      const std::string refusal = disk_support::text_of([&] { opened o(damaged.disk); });
      ASSERT_EQ(found, refusal) << name << " " << at;
      refused += refusal != "no error";
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(journal_reader, a_directory_without_a_journal_is_an_invalid_argument) {
  rig r;
  EXPECT_EQ(errc_of([&] { (void)read_beside(r.disk); }), errc::invalid_argument);
  r.disk.make_directory("j");
  EXPECT_EQ(errc_of([&] { (void)read_beside(r.disk); }), errc::invalid_argument);
  EXPECT_TRUE(r.disk.list("j").empty());
}

TEST(journal_reader, survives_a_segment_of_arbitrary_bytes) {
  rig r;
  {
    opened o(r.disk);
    for (std::uint16_t type = 1; type <= 24; ++type)
      (void)o.j.append({.type = type, .flags = 1, .run = 1, .fiber = 1, .index = type},
                       std::string(type * 5, '\1'));
    commit(o.j);
    append_all(o.j, numbered(20, 40));
  }
  const std::string whole = disk_support::get(r.disk, segment(1)).substr(64, 4000);
  EXPECT_EQ(fuzz::read_journal(std::as_bytes(std::span(whole))), 1u);  // record 1 is too short
  disk_support::generator random(5);
  for (int i = 0; i < 500; ++i) {
    std::string bytes = whole;
    for (std::uint64_t n = 1 + random.below(6); n > 0; --n)
      bytes[random.below(bytes.size())] = static_cast<char>(random.next());
    (void)fuzz::read_journal(std::as_bytes(std::span(bytes)));
  }
}
