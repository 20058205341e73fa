// SPDX-License-Identifier: MIT
#include "durable/log_frame.hpp"

#include <algorithm>
#include <cstring>

#include "durable/crc32c.hpp"
#include "durable/little_endian.hpp"

namespace weir::detail {

namespace {

constexpr std::string_view segment_magic = "WEIRSEG1";
constexpr std::uint32_t frame_magic = 0x4d524657;  // "WFRM"

constexpr std::size_t header_checksum_at = 60;
constexpr std::size_t frame_checksummed_from = 8;
constexpr std::size_t record_checksummed_from = 4;

std::uint32_t frame_checksum(std::span<const std::byte> frame, std::uint32_t seed) noexcept {
  return crc32c(frame.subspan(frame_checksummed_from), seed);
}

record_head head_of(const std::byte* at) noexcept {
  return {.type = load<std::uint16_t>(at + 8),
          .flags = load<std::uint16_t>(at + 10),
          .run = load<std::uint64_t>(at + 12),
          .fiber = load<std::uint32_t>(at + 20),
          .index = load<std::uint32_t>(at + 24)};
}

std::string_view text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::uint32_t checksum_seed(const journal_secret& secret) noexcept {
  return crc32c(std::as_bytes(std::span(secret)));
}

bool is_blank(std::span<const std::byte> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// ------------------------------------------------------------------ segments

void encode(const segment_header& header,
            std::span<std::byte, segment_header_bytes> into) noexcept {
  std::byte* at = into.data();
  std::memcpy(at, segment_magic.data(), segment_magic.size());
  store(at + 8, header.version);
  store(at + 12, header.key_id);
  store(at + 16, header.number);
  store(at + 24, header.epoch);
  store(at + 32, header.first_lsn);
  std::memcpy(at + 40, header.secret.data(), header.secret.size());
  store(at + 56, header.bytes);
  store(at + header_checksum_at, crc32c(into.first(header_checksum_at)));
}

std::optional<segment_header> decode_segment_header(segment_header_span bytes) noexcept {
  const std::byte* at = bytes.data();
  if (std::memcmp(at, segment_magic.data(), segment_magic.size()) != 0) return std::nullopt;
  if (load<std::uint32_t>(at + header_checksum_at) != crc32c(bytes.first(header_checksum_at)))
    return std::nullopt;
  segment_header header{.version = load<std::uint32_t>(at + 8),
                        .key_id = load<std::uint32_t>(at + 12),
                        .number = load<std::uint64_t>(at + 16),
                        .epoch = load<std::uint64_t>(at + 24),
                        .first_lsn = load<std::uint64_t>(at + 32),
                        .secret = {},
                        .bytes = load<std::uint32_t>(at + 56)};
  std::memcpy(header.secret.data(), at + 40, header.secret.size());
  return header;
}

// ------------------------------------------------------------------ frames

void seal(const frame_head& head, std::span<std::byte> frame, std::uint32_t seed) noexcept {
  std::byte* at = frame.data();
  store(at, frame_magic);
  store(at + 8, head.bytes);
  store(at + 12, head.records);
  store(at + 16, head.first_lsn);
  store(at + 24, head.durable_lsn);
  store(at + 32, head.epoch);
  store(at + 40, head.segment);
  store(at + 44, std::uint32_t{0});  // flags: none are defined
  store(at + 4, frame_checksum(frame, seed));
}

std::optional<frame_head> peek_frame(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < frame_header_bytes) return std::nullopt;
  const std::byte* at = bytes.data();
  if (load<std::uint32_t>(at) != frame_magic) return std::nullopt;
  const frame_head head{.bytes = load<std::uint32_t>(at + 8),
                        .records = load<std::uint32_t>(at + 12),
                        .first_lsn = load<std::uint64_t>(at + 16),
                        .durable_lsn = load<std::uint64_t>(at + 24),
                        .epoch = load<std::uint64_t>(at + 32),
                        .segment = load<std::uint32_t>(at + 40)};
  const bool plausible =
      head.records > 0 && head.bytes % frame_alignment == 0 && head.bytes <= frame_bytes_max &&
      head.bytes >= frame_header_bytes + std::uint64_t{head.records} * record_header_bytes &&
      head.durable_lsn < head.first_lsn && head.end_lsn() > head.first_lsn;
  if (!plausible || load<std::uint32_t>(at + 44) != 0) return std::nullopt;
  return head;
}

bool checksum_fits(std::span<const std::byte> frame, std::uint32_t seed) noexcept {
  return load<std::uint32_t>(frame.data() + 4) == frame_checksum(frame, seed);
}

// ------------------------------------------------------------------ records

void encode(const record_head& head, std::string_view payload, std::span<std::byte> into,
            std::uint32_t seed) noexcept {
  std::byte* at = into.data();
  store(at + 4, static_cast<std::uint32_t>(payload.size()));
  store(at + 8, head.type);
  store(at + 10, head.flags);
  store(at + 12, head.run);
  store(at + 20, head.fiber);
  store(at + 24, head.index);
  if (!payload.empty()) std::memcpy(at + record_header_bytes, payload.data(), payload.size());
  store(at, crc32c(into.subspan(record_checksummed_from), seed));
}

std::uint64_t record_size(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < record_header_bytes) return 0;
  return record_header_bytes + std::uint64_t{load<std::uint32_t>(bytes.data() + 4)};
}

std::optional<record_view> decode_record(std::span<const std::byte> bytes,
                                         std::uint32_t seed) noexcept {
  const std::uint64_t size = record_size(bytes);
  if (size == 0 || size > bytes.size()) return std::nullopt;
  const auto record = bytes.first(static_cast<std::size_t>(size));
  if (load<std::uint32_t>(record.data()) != crc32c(record.subspan(record_checksummed_from), seed))
    return std::nullopt;
  return record_view{head_of(record.data()), text(record.subspan(record_header_bytes))};
}

bool record_cursor::next(record_view& into) noexcept {
  const auto rest = frame_.subspan(offset_);
  const std::uint64_t size = record_size(rest);
  if (size == 0 || size > rest.size()) return false;
  into.head = head_of(rest.data());
  into.payload = text(rest.first(static_cast<std::size_t>(size)).subspan(record_header_bytes));
  offset_ += static_cast<std::size_t>(size);
  return into.head.type != 0;
}

bool record_cursor::at_end() const noexcept {
  const auto rest = frame_.subspan(offset_);
  return rest.size() < frame_alignment && is_blank(rest);
}

}  // namespace weir::detail
