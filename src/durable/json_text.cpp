// SPDX-License-Identifier: MIT
#include "durable/json_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <weir/durable/json.hpp>

namespace weir::detail {

namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

/// The length of the UTF-8 character at `i` in bytes; 0 if it is invalid.
std::size_t utf8_length(std::string_view bytes, std::size_t i) noexcept {
  const std::uint32_t first = byte_at(bytes, i);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || first > 0xf4 || length > bytes.size() - i) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((byte_at(bytes, i + k) & 0xc0) != 0x80) return 0;
  const std::uint32_t second = byte_at(bytes, i + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_high = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

/// Whether these bytes, eight at most, are ASCII. Most text is, and this is faster than byte by
/// byte.
bool is_ascii(std::string_view bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return (word & 0x8080808080808080) == 0;
}

}  // namespace

bool is_utf8(std::string_view bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size();) {
    if (is_ascii(bytes.substr(i, 8))) {
      i += std::min<std::size_t>(bytes.size() - i, 8);
      continue;
    }
    const std::size_t length = utf8_length(bytes, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t bits = byte_at(bytes, i) << 16;
    if (left > 1) bits |= byte_at(bytes, i + 1) << 8;
    if (left > 2) bits |= byte_at(bytes, i + 2);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= left ? base64_digits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

bool from_base64(std::string_view text, std::string& bytes) {
  if (text.size() % 4 != 0) return false;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::string_view group = text.substr(i, 4);
    if (i + 4 == text.size())
      while (group.ends_with('=')) group.remove_suffix(1);
    if (group.size() < 2) return false;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < group.size(); ++k) {
      const std::size_t digit = base64_digits.find(group[k]);
      if (digit == std::string_view::npos) return false;
      bits |= static_cast<std::uint32_t>(digit) << (18 - 6 * k);
    }
    const std::size_t length = group.size() - 1;
    if ((bits & (0xffffffU >> (8 * length))) != 0) return false;
    const std::array three = {static_cast<char>(bits >> 16 & 0xff),
                              static_cast<char>(bits >> 8 & 0xff), static_cast<char>(bits & 0xff)};
    bytes.append(three.data(), length);
  }
  return true;
}

std::string_view escaped(char c, std::array<char, 6>& room) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(c);
  constexpr std::string_view digits = "0123456789abcdef";
  room = {'\\', 'u', '0', '0', digits[code >> 4], digits[code & 15]};
  return {room.data(), room.size()};
}

}  // namespace weir::detail
