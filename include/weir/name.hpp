// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir {

/// The name of a scope, fiber, governor, ... as given in an options struct.
///
/// A string literal is kept as a pointer and costs nothing. Anything else (a std::string, a
/// string_view, a char pointer) is only referred to here and copied by the object that keeps the
/// name, so it must live until the call that takes the options returns. Trivially destructible, so
/// that options may appear in a co_await expression (see docs/compilers.md).
class name {
 public:
  constexpr name() noexcept = default;

  template <std::size_t N>
  constexpr name(const char (&literal)[N]) noexcept
      : data_(literal), size_(N - 1), literal_(true) {}
  template <std::size_t N>
  constexpr name(char (&buffer)[N]) noexcept : name(std::string_view(buffer)) {}
  template <class Pointer>
    requires(std::is_same_v<Pointer, const char*> || std::is_same_v<Pointer, char*>)
  constexpr name(Pointer text) noexcept
      : name(text == nullptr ? std::string_view() : std::string_view(text)) {}
  constexpr name(std::string_view text) noexcept : data_(text.data()), size_(text.size()) {}
  name(const std::string& text) noexcept : name(std::string_view(text)) {}

  constexpr std::string_view view() const noexcept { return {data_, size_}; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  /// True if the characters have static storage and need no copy.
  constexpr bool is_literal() const noexcept { return literal_; }

 private:
  const char* data_ = "";
  std::size_t size_ = 0;
  bool literal_ = false;
};

}  // namespace weir

#include <weir/detail/core/name.hpp>
