// SPDX-License-Identifier: MIT
// The manifest: what a journal must know that its segments may not say. Lost, it is made again
// from them. What it says is a lower bound: it stays true, whatever is appended later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "durable/frame.hpp"
#include "durable/journal_files.hpp"

namespace weir::detail {

inline constexpr std::size_t manifest_bytes = 80;

struct manifest {
  std::uint32_t version = journal_version;
  std::uint32_t key_id = 0;
  std::uint64_t epoch = 0;          // of the last open; no frame was written in a later one
  std::uint64_t first_segment = 1;  // the oldest one that is still needed
  std::uint64_t first_lsn = 1;      // the first one in it
  std::uint64_t durable_lsn = 0;    // all up to this were on the disk when it was written
  journal_secret secret{};
  std::uint64_t segment_bytes = 0;  // of the segments made since
  std::uint32_t begun = 0;          // segments that were begun, headers and all; 0: not known
  bool closed = false;              // written by a clean close: nothing was appended after it
};

void encode(const manifest& m, std::span<std::byte, manifest_bytes> into) noexcept;
/// nullopt if it is not one: another length, magic or checksum.
std::optional<manifest> decode_manifest(std::span<const std::byte> bytes) noexcept;

/// nullopt if there is none or it is damaged.
std::optional<manifest> read_manifest(const journal_files& files);
void write_manifest(const journal_files& files, const manifest& m);

}  // namespace weir::detail
