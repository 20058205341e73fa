// SPDX-License-Identifier: MIT
// CRC32C (Castagnoli): the checksum of everything in a journal but the blobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::detail {

/// Of `before`, the checksum of what precedes them, and of these bytes: the checksum of both. Uses
/// the CPU's instructions where it has them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The same from a table: for CPUs without the instructions, and to check them.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace weir::detail
