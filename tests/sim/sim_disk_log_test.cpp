// SPDX-License-Identifier: MIT
// A small log with group commit, in a recycled file, over many crash states of a simulated disk:
// what it has acknowledged is never lost and nothing else is ever taken for it. And the disk is
// harsh enough: each mistake that a log can make is found.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/disk_support.hpp"

using namespace disk_support;

namespace {

/// What the log leaves out.
struct mistakes {
  bool no_checksum = false;
  bool no_epoch = false;
  bool no_sync = false;
  bool no_directory_sync = false;
  bool acknowledge_after_failed_sync = false;
};

struct header {
  std::uint32_t magic;
  std::uint32_t epoch;
  std::uint32_t number;
  std::uint32_t bytes;
  std::uint32_t checksum;
};

constexpr std::uint32_t magic = 0x77656972;

std::uint32_t crc32c(std::string_view text) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < t.size(); ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = (t[i] >> 1) ^ ((t[i] & 1) != 0 ? 0x82f63b78u : 0u);
    }
    return t;
  }();
  std::uint32_t crc = ~0u;
  for (const char c : text) crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::uint32_t checksum(header h, std::string_view payload) {
  h.checksum = 0;
  std::string all(sizeof h, '\0');
  std::memcpy(all.data(), &h, sizeof h);
  return crc32c(all.append(payload));
}

/// Frames of the same number have the same length in every epoch, as records of a program that
/// does the same thing again often have; so new headers meet old payloads.
std::string payload(std::uint32_t epoch, std::uint32_t number) {
  generator shape(number);
  std::string text(100 + shape.below(1500), '\0');
  generator fill(epoch * 1000 + number);
  for (char& c : text) c = static_cast<char>(fill.next());
  return text;
}

std::string frame(std::uint32_t epoch, std::uint32_t number) {
  const std::string body = payload(epoch, number);
  header h{magic, epoch, number, static_cast<std::uint32_t>(body.size()), 0};
  h.checksum = checksum(h, body);
  std::string text(sizeof h, '\0');
  std::memcpy(text.data(), &h, sizeof h);
  return text + body;
}

/// The payloads that a log of this epoch finds after a crash.
std::vector<std::string> recover(disk& on, std::uint32_t epoch, const mistakes& m) {
  if (!on.exists("log")) return {};
  const std::string text = get(on, "log");
  std::vector<std::string> found;
  for (std::size_t at = 0; at + sizeof(header) <= text.size();) {
    header h{};
    std::memcpy(&h, text.data() + at, sizeof h);
    if (h.magic != magic || h.number != found.size()) break;
    if (h.epoch != epoch && !m.no_epoch) break;
    if (h.bytes > text.size() - at - sizeof h) break;
    const std::string body = text.substr(at + sizeof h, h.bytes);
    if (h.checksum != checksum(h, body) && !m.no_checksum) break;
    found.push_back(body);
    at += sizeof h + h.bytes;
  }
  return found;
}

struct crash_damage {
  int lost = 0;       // acknowledged, and not there
  int corrupt = 0;    // there, and never written
  int in_flight = 0;  // there, and not acknowledged: allowed, and a sign that crashes are partial
};

/// Writes batches of frames until something fails or it is done; returns how many it acknowledges.
std::size_t write_log(rig& r, generator& random, std::uint32_t epoch, const mistakes& m) {
  std::size_t acknowledged = 0;
  try {
    r.disk.rename("old", "log");
    if (!m.no_directory_sync) r.disk.sync_directory("/");
    auto log = r.disk.open("log", open_mode::read_write);
    std::uint64_t end = 0;
    std::uint32_t number = 0;
    for (std::uint64_t batches = random.below(5); batches > 0; --batches) {
      std::string batch;
      for (std::uint64_t n = 1 + random.below(4); n > 0; --n) batch += frame(epoch, number++);
      put(*log, batch, end);
      end += batch.size();
      if (batches == 1 && random.below(2) == 0) break;  // crashes before the sync
      if (!m.no_sync) {
        const bool failed = bool(code_of_failure([&] { log->sync(); }));
        if (failed && !m.acknowledge_after_failed_sync) break;
        if (failed) log->sync();
      }
      acknowledged = number;
    }
  } catch (const std::system_error&) {  // an injected fault: the log stops
  }
  return acknowledged;
}

/// One log from its first write to a crash, and what is found after it.
void one_state(std::uint64_t seed, const mistakes& m, const weir::sim::disk_faults& faults,
               crash_damage& sum) {
  generator random(seed);
  rig r(seed);
  std::string stale;
  for (std::uint32_t number = 0; number < 16; ++number) stale += frame(1, number);
  durable_file(r.disk, "old", stale);
  r.disk.set(faults);
  if (random.below(4) == 0) r.disk.fail_next_sync();
  const std::size_t acknowledged = write_log(r, random, 2, m);
  r.disk.crash();
  r.disk.set({});
  const std::vector<std::string> found = recover(r.disk, 2, m);
  sum.lost += found.size() < acknowledged ? 1 : 0;
  sum.in_flight += found.size() > acknowledged ? 1 : 0;
  for (std::uint32_t number = 0; number < found.size(); ++number)
    sum.corrupt += found[number] != payload(2, number) ? 1 : 0;
}

// A mistake that is not found in so many of 1000 states is found by luck.
constexpr int mistakes_found_min = 10;

constexpr weir::sim::disk_faults harsh{
    .torn = 0.5, .reorder = 0.1, .short_write = 0.3, .eio = 0.01, .sync_error = 0.02};

crash_damage many_states(std::uint64_t states, const mistakes& m,
                         const weir::sim::disk_faults& faults = harsh) {
  crash_damage sum;
  for (std::uint64_t seed = 0; seed < states; ++seed) one_state(seed, m, faults, sum);
  return sum;
}

}  // namespace

TEST(sim_disk_log, nothing_acknowledged_is_lost_and_nothing_corrupt_is_accepted) {
  const crash_damage v = many_states(5000, {});
  EXPECT_EQ(v.lost, 0);
  EXPECT_EQ(v.corrupt, 0);
  EXPECT_GT(v.in_flight, 100);
}

TEST(sim_disk_log, a_full_disk_loses_nothing_that_was_acknowledged) {
  for (std::int64_t space = 0; space < 30'000; space += 1000) {
    auto faults = harsh;
    faults.space = space;
    const crash_damage v = many_states(20, {}, faults);
    EXPECT_EQ(v.lost, 0);
    EXPECT_EQ(v.corrupt, 0);
  }
}

TEST(sim_disk_log, without_a_checksum_corrupt_frames_are_accepted) {
  EXPECT_GT(many_states(1000, {.no_checksum = true}).corrupt, mistakes_found_min);
}

TEST(sim_disk_log, without_an_epoch_frames_of_a_recycled_file_are_accepted) {
  EXPECT_GT(many_states(1000, {.no_epoch = true}).corrupt, mistakes_found_min);
}

TEST(sim_disk_log, without_a_sync_acknowledged_frames_are_lost) {
  EXPECT_GT(many_states(1000, {.no_sync = true}).lost, mistakes_found_min);
}

TEST(sim_disk_log, without_a_sync_of_the_directory_acknowledged_frames_are_lost) {
  EXPECT_GT(many_states(1000, {.no_directory_sync = true}).lost, mistakes_found_min);
}

TEST(sim_disk_log, retrying_a_failed_sync_loses_acknowledged_frames) {
  EXPECT_GT(many_states(1000, {.acknowledge_after_failed_sync = true}).lost, mistakes_found_min);
}
