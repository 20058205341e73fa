// SPDX-License-Identifier: MIT
#include "io/utf8.hpp"

#include <cstddef>
#include <cstring>

namespace weir::detail {

namespace {

/// How many bytes at the front are ASCII, in steps of eight.
std::size_t ascii_prefix(std::string_view bytes) noexcept {
  constexpr std::uint64_t high_bits = 0x8080808080808080U;
  std::size_t at = 0;
  for (; bytes.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & high_bits) != 0) break;
  }
  return at;
}

}  // namespace

// The second byte has a smaller range behind leads that could begin an overlong form, a surrogate
// or a number that is too large.
bool utf8_check::begin(std::uint8_t lead) noexcept {
  least_ = 0x80;
  most_ = 0xbf;
  if (lead < 0x80) return true;
  if (lead < 0xc2 || lead > 0xf4) return false;
  missing_ = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  if (lead == 0xe0) least_ = 0xa0;
  if (lead == 0xed) most_ = 0x9f;
  if (lead == 0xf0) least_ = 0x90;
  if (lead == 0xf4) most_ = 0x8f;
  return true;
}

bool utf8_check::add(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    if (missing_ == 0) {
      bytes.remove_prefix(ascii_prefix(bytes));
      if (bytes.empty()) return true;
    }
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    if (missing_ == 0) {
      if (!begin(byte)) return false;
      continue;
    }
    if (byte < least_ || byte > most_) return false;
    least_ = 0x80;
    most_ = 0xbf;
    --missing_;
  }
  return true;
}

}  // namespace weir::detail
