// SPDX-License-Identifier: MIT
#include "durable/crc32c.hpp"

#include <array>
#include <cstring>

#include "durable/little_endian.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace weir::detail {

namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // reflected

// tables[k][b]: what a byte b does to the checksum when k bytes follow it.
using crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr crc_tables make_tables() noexcept {
  crc_tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t b = 0; b < 256; ++b)
      tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xff];
  return tables;
}

constexpr crc_tables tables = make_tables();

std::uint32_t by_table(const std::byte* at, std::size_t n, std::uint32_t crc) noexcept {
  for (; n >= 8; at += 8, n -= 8) {
    const std::uint64_t word = load<std::uint64_t>(at) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; n > 0; ++at, --n)
    crc = tables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xff] ^ (crc >> 8);
  return crc;
}

using crc_function = std::uint32_t (*)(const std::byte*, std::size_t, std::uint32_t) noexcept;

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const std::byte* at, std::size_t n,
                                                               std::uint32_t crc) noexcept {
  std::uint64_t wide = crc;
  for (; n >= 8; at += 8, n -= 8) wide = _mm_crc32_u64(wide, load<std::uint64_t>(at));
  crc = static_cast<std::uint32_t>(wide);
  for (; n > 0; ++at, --n) crc = _mm_crc32_u8(crc, std::to_integer<unsigned char>(*at));
  return crc;
}

crc_function choose() noexcept {
  return __builtin_cpu_supports("sse4.2") != 0 ? by_instruction : by_table;
}

#elif defined(__ARM_FEATURE_CRC32)

std::uint32_t by_instruction(const std::byte* at, std::size_t n, std::uint32_t crc) noexcept {
  for (; n >= 8; at += 8, n -= 8) crc = __crc32cd(crc, load<std::uint64_t>(at));
  for (; n > 0; ++at, --n) crc = __crc32cb(crc, std::to_integer<unsigned char>(*at));
  return crc;
}

crc_function choose() noexcept { return by_instruction; }

#else

crc_function choose() noexcept { return by_table; }

#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static const crc_function best = choose();
  return ~best(bytes.data(), bytes.size(), ~before);
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return ~by_table(bytes.data(), bytes.size(), ~before);
}

}  // namespace weir::detail
