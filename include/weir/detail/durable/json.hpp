// SPDX-License-Identifier: MIT
// The machinery of <weir/durable/json.hpp>.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

namespace detail {

/// The maximum size of a text, in bytes.
inline constexpr std::size_t json_bytes_max = std::size_t{64} << 20;
/// The maximum nesting depth: reading and writing recurse, and loops have small stacks.
inline constexpr std::size_t json_depth_max = 128;

class json_document;
struct json_node;

template <class T>
concept json_integer = std::integral<T> && !std::same_as<T, bool>;

/// Whether the text is an integer of at most 18 digits, and nothing else; `value` is then it.
bool read_plain_integer(std::string_view text, std::int64_t& value) noexcept;

/// As a serde writes it, without a writer.
template <json_integer T>
std::string text_of_integer(T value) {
  if constexpr (std::signed_integral<T>) {
    return std::to_string(static_cast<long long>(value));
  } else {
    return std::to_string(static_cast<unsigned long long>(value));
  }
}
/// Reads the usual form without a document; false: the text has another form, or is no `T`.
template <json_integer T>
bool read_integer(std::string_view text, T& value) noexcept {
  std::int64_t number = 0;
  if (!read_plain_integer(text, number)) return false;
  value = static_cast<T>(number);
  return (std::signed_integral<T> || number >= 0) && static_cast<std::int64_t>(value) == number;
}

/// Whether the bytes are valid UTF-8: no overlong forms, no surrogates.
bool is_utf8(std::string_view bytes) noexcept;

}  // namespace detail
}  // namespace weir
