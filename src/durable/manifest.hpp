// SPDX-License-Identifier: MIT
// The manifest: what a journal must know that its segments may not show. If lost, it is rebuilt
// from them. It is a lower bound, which stays true whatever is appended later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "durable/journal_files.hpp"
#include "durable/log_frame.hpp"

namespace weir::detail {

inline constexpr std::size_t manifest_bytes = 80;

struct manifest {
  std::uint32_t version = journal_version;
  std::uint32_t key_id = 0;
  std::uint64_t epoch = 0;          // of the last open; no frame was written in a later one
  std::uint64_t first_segment = 1;  // the oldest segment that is still needed
  std::uint64_t first_lsn = 1;      // the first LSN in it
  std::uint64_t durable_lsn = 0;    // all LSNs up to this were durable when it was written
  journal_secret secret{};
  std::uint64_t segment_bytes = 0;  // of the segments made from then on
  std::uint32_t begun = 0;          // segments begun, with durable headers; 0: unknown
  bool closed = false;              // written by a clean close: nothing was appended after it
};

void encode(const manifest& m, std::span<std::byte, manifest_bytes> into) noexcept;
/// nullopt if the length, magic or checksum is wrong.
std::optional<manifest> decode_manifest(std::span<const std::byte> bytes) noexcept;

/// nullopt if there is none or it is damaged.
std::optional<manifest> read_manifest(const journal_files& files);
void write_manifest(const journal_files& files, const manifest& m);

}  // namespace weir::detail
