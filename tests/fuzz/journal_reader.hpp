// SPDX-License-Identifier: MIT
// A reader without the lock on a segment of arbitrary bytes: whatever they are, it reports records
// or damage, and changes no file. For libFuzzer (journal_reader.cpp) and for a unit test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/error.hpp>

#include "durable/journal_reader.hpp"
#include "durable/log_frame.hpp"
#include "durable/record_parts.hpp"
#include "support/disk_support.hpp"

namespace fuzz {

class decoding_visitor final : public weir::detail::journal_visitor {
 public:
  void restart() override { records = 0; }
  void see(const weir::detail::record_head& head, std::string_view payload, std::uint64_t,
           weir::detail::record_place) override {
    ++records;
    const auto* const kind = weir::detail::kind_of_record(head.type);
    if (kind == nullptr) return;
    weir::detail::record_parts parts;
    kind->read(head, payload, parts);
  }

  std::uint64_t records = 0;
};

/// A segment of the smallest size: a right header, then the input, whose frames get the right
/// checksum, so that what lies behind it is reached, too.
inline std::vector<std::byte> segment_with(std::span<const std::byte> input) {
  namespace d = weir::detail;
  std::vector<std::byte> bytes(d::segment_bytes_min);
  const d::segment_header header{
      .number = 1, .first_lsn = 1, .bytes = static_cast<std::uint32_t>(d::segment_bytes_min)};
  d::encode(header, std::span(bytes).first<d::segment_header_bytes>());
  const auto room = std::span(bytes).subspan(d::segment_header_bytes);
  for (std::size_t i = 0; i < std::min(input.size(), room.size()); ++i) room[i] = input[i];
  const std::uint32_t seed = d::checksum_seed({});
  for (std::size_t at = 0; at < room.size();) {
    const auto head = d::peek_frame(room.subspan(at));
    if (!head || head->bytes > room.size() - at) break;
    d::seal(*head, room.subspan(at, head->bytes), seed);
    at += head->bytes;
  }
  return bytes;
}

/// Returns how many records were seen.
inline std::uint64_t read_journal(std::span<const std::byte> input) {
  disk_support::rig r;
  const std::vector<std::byte> bytes = segment_with(input);
  const std::string path = "j/" + weir::detail::segment_name(1);
  r.disk.make_directory("j");
  weir::write_all(*r.disk.open(path, weir::open_mode::create), bytes, 0);
  decoding_visitor seen;
  try {
    weir::detail::journal_reader reader(r.disk, "j");
    reader.read(seen);
    (void)reader.follow(seen);
  } catch (const weir::error& e) {
    if (e.code() != weir::errc::journal_corrupt) std::abort();
  }
  const std::string after = disk_support::get(r.disk, path);
  const auto unchanged = std::as_bytes(std::span(after));
  if (!std::equal(unchanged.begin(), unchanged.end(), bytes.begin(), bytes.end())) std::abort();
  return seen.records;
}

}  // namespace fuzz
