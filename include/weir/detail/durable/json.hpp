// SPDX-License-Identifier: MIT
// The machinery of <weir/durable/json.hpp>.
#pragma once

#include <concepts>
#include <cstddef>
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

/// Whether the bytes are valid UTF-8: no overlong forms, no surrogates.
bool is_utf8(std::string_view bytes) noexcept;

}  // namespace detail
}  // namespace weir
