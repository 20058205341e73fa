// SPDX-License-Identifier: MIT
#include "durable/manifest.hpp"

#include <array>
#include <cstring>
#include <string_view>

#include "durable/crc32c.hpp"
#include "durable/little_endian.hpp"

namespace weir::detail {

namespace {

constexpr std::string_view manifest_magic = "WEIRMAN1";
constexpr std::size_t manifest_checksum_at = 76;
constexpr std::uint32_t manifest_closed = 0x8000'0000;  // the highest bit of the field `begun`

}  // namespace

void encode(const manifest& m, std::span<std::byte, manifest_bytes> into) noexcept {
  std::byte* at = into.data();
  std::memcpy(at, manifest_magic.data(), manifest_magic.size());
  store(at + 8, m.version);
  store(at + 12, m.key_id);
  store(at + 16, m.epoch);
  store(at + 24, m.first_segment);
  store(at + 32, m.first_lsn);
  store(at + 40, m.durable_lsn);
  std::memcpy(at + 48, m.secret.data(), m.secret.size());
  store(at + 64, m.segment_bytes);
  store(at + 72, m.begun | (m.closed ? manifest_closed : 0));
  store(at + manifest_checksum_at, crc32c(into.first(manifest_checksum_at)));
}

std::optional<manifest> decode_manifest(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != manifest_bytes) return std::nullopt;
  const std::byte* at = bytes.data();
  if (std::memcmp(at, manifest_magic.data(), manifest_magic.size()) != 0) return std::nullopt;
  if (load<std::uint32_t>(at + manifest_checksum_at) != crc32c(bytes.first(manifest_checksum_at)))
    return std::nullopt;
  const auto begun = load<std::uint32_t>(at + 72);
  manifest m{.version = load<std::uint32_t>(at + 8),
             .key_id = load<std::uint32_t>(at + 12),
             .epoch = load<std::uint64_t>(at + 16),
             .first_segment = load<std::uint64_t>(at + 24),
             .first_lsn = load<std::uint64_t>(at + 32),
             .durable_lsn = load<std::uint64_t>(at + 40),
             .secret = {},
             .segment_bytes = load<std::uint64_t>(at + 64),
             .begun = begun & ~manifest_closed,
             .closed = (begun & manifest_closed) != 0};
  std::memcpy(m.secret.data(), at + 48, m.secret.size());
  return m;
}

std::optional<manifest> read_manifest(const journal_files& files) {
  const std::string path = files.path(manifest_name);
  if (!files.disk->exists(path)) return std::nullopt;
  const auto file = files.disk->open(path, open_mode::read);
  // One extra byte, to detect a file that is too long.
  std::array<std::byte, manifest_bytes + 1> bytes{};
  const std::size_t n = read_up_to(*file, bytes, 0);
  return decode_manifest(std::span(bytes).first(n));
}

void write_manifest(const journal_files& files, const manifest& m) {
  std::array<std::byte, manifest_bytes> bytes{};
  encode(m, bytes);
  write_whole(files, files.directory, std::string(manifest_name), bytes);
}

}  // namespace weir::detail
