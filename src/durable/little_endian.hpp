// SPDX-License-Identifier: MIT
// Numbers as the bytes of a file: little endian on every machine, at any alignment.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>

namespace weir::detail {

/// The same number with its bytes in little endian order, or back.
template <std::unsigned_integral T>
constexpr T little_endian(T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) return value;
  T turned = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    turned = static_cast<T>((turned << 8) | (value & 0xff));
    value = static_cast<T>(value >> 8);
  }
  return turned;
}

/// Requires: `sizeof(T)` bytes at `at`.
template <std::unsigned_integral T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return little_endian(value);
}

template <std::unsigned_integral T>
void store(std::byte* at, T value) noexcept {
  value = little_endian(value);
  std::memcpy(at, &value, sizeof value);
}

}  // namespace weir::detail
