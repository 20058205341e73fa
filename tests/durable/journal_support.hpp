// SPDX-License-Identifier: MIT
// What the tests of the journal share: a reader that keeps what it sees, and short ways to use a
// journal on a simulated disk.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/error.hpp>

#include "durable/journal.hpp"
#include "durable/journal_files.hpp"
#include "support/disk_support.hpp"

namespace journal_aid {

using weir::detail::journal;
using weir::detail::journal_batch;
using weir::detail::journal_options;
using weir::detail::record_head;
using weir::detail::record_place;
using texts = std::vector<std::string>;

inline constexpr std::uint64_t small_segment = std::uint64_t{64} << 10;
inline constexpr std::array<unsigned char, 16> test_secret{1, 2, 3, 4, 5, 6, 7, 8, 9};

struct seen_record {
  record_head head;
  std::string payload;
  std::uint64_t lsn;
  record_place place;
};

class collector final : public weir::detail::record_reader {
 public:
  void see(const record_head& head, std::string_view payload, std::uint64_t lsn,
           record_place place) override {
    records.push_back({head, std::string(payload), lsn, place});
  }
  std::vector<std::string> payloads() const {
    std::vector<std::string> all;
    for (const seen_record& r : records) all.push_back(r.payload);
    return all;
  }

  std::vector<seen_record> records;
};

inline journal_options on(weir::disk& disk, std::uint64_t segment_bytes = small_segment) {
  return {.path = "j", .segment_bytes = segment_bytes, .disk = &disk, .secret = test_secret};
}

/// Everything that was appended, on the disk.
inline void commit(journal& j) {
  auto batch = j.take();
  if (batch == nullptr) return;
  j.commit(*batch);
  j.committed(std::move(batch));
}

inline journal::appended append(journal& j, std::string_view payload) {
  return j.append({.type = 7, .flags = 3, .run = 5, .fiber = 2, .index = 9}, payload);
}

/// A journal that is open.
struct opened {
  explicit opened(weir::disk& disk, std::uint64_t segment_bytes = small_segment)
      : j(on(disk, segment_bytes)) {
    j.open(seen);
  }
  explicit opened(const journal_options& options) : j(options) { j.open(seen); }

  collector seen;
  journal j;
};

inline std::string read(journal& j, record_place place) {
  std::string payload;
  (void)j.read(place, payload);
  return payload;
}

/// What a journal on this disk holds; it is closed again.
inline std::vector<std::string> payloads(weir::disk& disk) { return opened(disk).seen.payloads(); }

inline std::string segment(std::uint64_t number) {
  return "j/" + weir::detail::segment_name(number);
}

using image = std::map<std::string, std::string>;

/// All files of the journal but the lock.
inline image files(weir::disk& disk) {
  image found;
  for (const std::string& name : disk.list("j"))
    if (name != "LOCK" && name != "blob") found[name] = disk_support::get(disk, "j/" + name);
  if (disk.exists("j/blob"))
    for (const std::string& name : disk.list("j/blob"))
      found["blob/" + name] = disk_support::get(disk, "j/blob/" + name);
  return found;
}

inline void restore(weir::disk& disk, const image& from) {
  disk.make_directory("j");
  disk.make_directory("j/blob");
  for (const auto& [name, content] : from) {
    auto file = disk.open("j/" + name, weir::open_mode::create);
    file->truncate(0);
    disk_support::put(*file, content);
  }
}

template <class F>
weir::errc errc_of(F&& call) {
  try {
    (void)call();
  } catch (const weir::error& e) {
    return static_cast<weir::errc>(e.code().value());
  }
  return weir::errc{};
}

}  // namespace journal_aid
