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

// tables[k][b]: the effect of byte b on the checksum when k bytes follow it.
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

// The instruction takes three cycles and one can start per cycle, so three lanes are computed in
// parallel and combined.
constexpr std::size_t lane_bytes = 512;

using shift_tables = std::array<std::array<std::uint32_t, 256>, 4>;

/// The effect of a lane of zeros on a checksum, for each byte of the checksum; XOR combines them.
constexpr shift_tables make_shift() noexcept {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::size_t i = 0; i < of_bit.size(); ++i) {
    std::uint32_t crc = std::uint32_t{1} << i;
    for (std::size_t n = 0; n < lane_bytes; ++n) crc = (crc >> 8) ^ tables[0][crc & 0xff];
    of_bit[i] = crc;
  }
  shift_tables shift{};
  for (std::size_t k = 0; k < shift.size(); ++k)
    for (std::size_t b = 0; b < 256; ++b)
      for (std::size_t bit = 0; bit < 8; ++bit)
        if ((b >> bit & 1) != 0) shift[k][b] ^= of_bit[8 * k + bit];
  return shift;
}

[[maybe_unused]] std::uint32_t shifted(std::uint32_t crc) noexcept {
  static constexpr shift_tables shift = make_shift();
  return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^
         shift[3][crc >> 24];
}

#if defined(__x86_64__)
#define WEIR_CRC32C_TARGET __attribute__((target("sse4.2")))

WEIR_CRC32C_TARGET std::uint32_t add_word(std::uint32_t crc, const std::byte* at) noexcept {
  return static_cast<std::uint32_t>(_mm_crc32_u64(crc, load<std::uint64_t>(at)));
}
WEIR_CRC32C_TARGET std::uint32_t add_byte(std::uint32_t crc, std::byte b) noexcept {
  return _mm_crc32_u8(crc, std::to_integer<unsigned char>(b));
}
bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }

#elif defined(__ARM_FEATURE_CRC32)
#define WEIR_CRC32C_TARGET

std::uint32_t add_word(std::uint32_t crc, const std::byte* at) noexcept {
  return __crc32cd(crc, load<std::uint64_t>(at));
}
std::uint32_t add_byte(std::uint32_t crc, std::byte b) noexcept {
  return __crc32cb(crc, std::to_integer<unsigned char>(b));
}
bool has_instruction() noexcept { return true; }

#endif

#if defined(WEIR_CRC32C_TARGET)

WEIR_CRC32C_TARGET std::uint32_t by_instruction(const std::byte* at, std::size_t n,
                                                std::uint32_t crc) noexcept {
  for (; n >= 3 * lane_bytes; at += 3 * lane_bytes, n -= 3 * lane_bytes) {
    std::uint32_t second = 0;
    std::uint32_t third = 0;
    for (std::size_t i = 0; i < lane_bytes; i += 8) {
      crc = add_word(crc, at + i);
      second = add_word(second, at + lane_bytes + i);
      third = add_word(third, at + 2 * lane_bytes + i);
    }
    crc = shifted(shifted(crc) ^ second) ^ third;
  }
  for (; n >= 8; at += 8, n -= 8) crc = add_word(crc, at);
  for (; n > 0; ++at, --n) crc = add_byte(crc, *at);
  return crc;
}

crc_function choose() noexcept { return has_instruction() ? by_instruction : by_table; }

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
