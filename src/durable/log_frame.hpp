// SPDX-License-Identifier: MIT
// Segment headers, frames and records as bytes: pure functions. docs/journal-format.md is the
// specification; the comments here say only what the code needs.
//
// Ensures: decoding never reads outside of the bytes it was given, whatever they are. The checksums
// of frames and records are seeded with the journal's secret, so bytes of another journal pass only
// by a 32-bit collision.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "durable/record.hpp"

namespace weir::detail {

inline constexpr std::uint32_t journal_version = 1;
inline constexpr std::size_t segment_header_bytes = 64;
inline constexpr std::size_t frame_header_bytes = 48;
inline constexpr std::size_t record_header_bytes = 28;
inline constexpr std::size_t frame_alignment = 8;
/// A frame has at most this many bytes, so that it can be read with little memory.
inline constexpr std::size_t frame_bytes_max = std::size_t{256} << 10;
/// The payload of this record is the name of a blob (see durable/blob.hpp).
inline constexpr std::uint16_t record_is_blob = 0x8000;
/// The payload is sealed (see durable/payload_keys.hpp); so is the content of its blob.
inline constexpr std::uint16_t record_is_sealed = 0x4000;
inline constexpr std::uint16_t record_engine_flags = 0x00ff;

using journal_secret = std::array<unsigned char, 16>;

/// The seed of the checksums of frames and records.
std::uint32_t checksum_seed(const journal_secret& secret) noexcept;

constexpr std::uint64_t aligned(std::uint64_t offset) noexcept {
  return (offset + frame_alignment - 1) & ~std::uint64_t{frame_alignment - 1};
}

// ------------------------------------------------------------------ segments

struct segment_header {
  std::uint32_t version = journal_version;
  std::uint32_t key_id = 0;  // 0: not encrypted
  std::uint64_t number = 0;
  std::uint64_t epoch = 0;      // of the open that began it
  std::uint64_t first_lsn = 0;  // everything before it was durable when this was written
  journal_secret secret{};
  std::uint32_t bytes = 0;  // of the segment
};

using segment_header_span = std::span<const std::byte, segment_header_bytes>;

void encode(const segment_header& header, std::span<std::byte, segment_header_bytes> into) noexcept;
/// nullopt if the magic or the checksum is wrong; says nothing about the version.
std::optional<segment_header> decode_segment_header(segment_header_span bytes) noexcept;
bool is_blank(std::span<const std::byte> bytes) noexcept;

// ------------------------------------------------------------------ frames

struct frame_head {
  std::uint32_t bytes = 0;    // the whole frame: header, records, padding
  std::uint32_t records = 0;  // at least 1
  std::uint64_t first_lsn = 0;
  std::uint64_t durable_lsn = 0;  // known to be durable when the frame was made; < first_lsn
  std::uint64_t epoch = 0;
  std::uint32_t segment = 0;  // the lower half of its segment's number

  std::uint64_t end_lsn() const noexcept { return first_lsn + records; }
};

/// Writes the header of a frame whose records and padding are there already.
/// Requires: `frame.size() == head.bytes`.
void seal(const frame_head& head, std::span<std::byte> frame, std::uint32_t seed) noexcept;
/// The header in a frame's first bytes; nullopt if no frame can begin so. Does not verify the
/// checksum.
std::optional<frame_head> peek_frame(std::span<const std::byte> bytes) noexcept;
/// Requires: `frame` has at least frame_header_bytes.
bool checksum_fits(std::span<const std::byte> frame, std::uint32_t seed) noexcept;

// ------------------------------------------------------------------ records

constexpr std::size_t record_bytes(std::size_t payload) noexcept {
  return record_header_bytes + payload;
}
/// Requires: `into.size() == record_bytes(payload.size())`.
void encode(const record_head& head, std::string_view payload, std::span<std::byte> into,
            std::uint32_t seed) noexcept;

struct record_view {
  record_head head;
  std::string_view payload;
};

/// The size of the record that begins here; 0 if fewer bytes than a header are given.
std::uint64_t record_size(std::span<const std::byte> bytes) noexcept;
/// The record at the beginning of `bytes`; nullopt if it is damaged or incomplete.
std::optional<record_view> decode_record(std::span<const std::byte> bytes,
                                         std::uint32_t seed) noexcept;

/// The records of a frame whose checksum was verified; their own checksums are not verified again.
class record_cursor {
 public:
  explicit record_cursor(std::span<const std::byte> frame) noexcept : frame_(frame) {}

  /// The offset in the frame at which the next record begins.
  std::size_t offset() const noexcept { return offset_; }
  /// False if there is no record here.
  bool next(record_view& into) noexcept;
  /// Only padding is left.
  bool at_end() const noexcept;

 private:
  std::span<const std::byte> frame_;
  std::size_t offset_ = frame_header_bytes;
};

}  // namespace weir::detail
