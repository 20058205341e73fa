// SPDX-License-Identifier: MIT
// CRC32C (Castagnoli): the checksum of everything in a journal but the blobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::detail {

/// The checksum of `bytes`, continued from `before`, the checksum of the bytes that precede them.
/// Uses the CPU's instructions where available.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The same by table: for CPUs without the instructions, and to test them.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace weir::detail
