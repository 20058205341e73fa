// SPDX-License-Identifier: MIT
// The decoders of a journal's files on arbitrary bytes: they must not read outside of what they
// are given, and what they accept must be consistent. For libFuzzer (journal_decoder.cpp) and for
// a unit test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "durable/blob.hpp"
#include "durable/log_frame.hpp"
#include "durable/manifest.hpp"

namespace fuzz {

namespace d = weir::detail;

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// All records of a frame lie inside of it.
inline void walk(std::span<const std::byte> frame, const d::frame_head& head) {
  d::record_cursor cursor(frame);
  d::record_view record;
  for (std::uint32_t i = 0; i < head.records && cursor.next(record); ++i) {
    require(cursor.offset() <= frame.size());
    const auto* begin = reinterpret_cast<const std::byte*>(record.payload.data());
    require(record.payload.empty() || (begin >= frame.data() && begin + record.payload.size() <=
                                                                    frame.data() + frame.size()));
    if ((record.head.flags & d::record_is_blob) != 0) (void)d::decode_blob_name(record.payload);
  }
  (void)cursor.at_end();
}

/// One input. A copy gets the right checksum, so that what lies behind it is reached, too.
inline void decode(std::span<const std::byte> input, std::uint32_t seed) {
  std::vector<std::byte> copy(input.begin(), input.end());
  if (input.size() >= d::segment_header_bytes)
    (void)d::decode_segment_header(input.first<d::segment_header_bytes>());
  if (const auto m = d::decode_manifest(input)) {
    std::array<std::byte, d::manifest_bytes> again{};
    d::encode(*m, again);
  }
  if (const auto record = d::decode_record(input, seed))
    require(d::record_bytes(record->payload.size()) <= input.size());
  for (std::size_t at = 0; at < copy.size(); at += d::frame_alignment) {
    const auto rest = std::span(copy).subspan(at);
    const auto head = d::peek_frame(rest);
    if (!head || head->bytes > rest.size()) continue;
    const auto frame = rest.first(head->bytes);
    (void)d::checksum_fits(frame, seed);
    d::seal(*head, frame, seed);
    require(d::checksum_fits(frame, seed));
    const auto again = d::peek_frame(frame);
    require(again && again->end_lsn() == head->end_lsn());
    walk(frame, *head);
  }
}

}  // namespace fuzz
