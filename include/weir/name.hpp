// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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

namespace detail {

/// An owned name: the pointer of a literal, or a copy of anything else.
class kept_name {
 public:
  kept_name() noexcept = default;
  explicit kept_name(const weir::name& given) : literal_(given.is_literal()) {
    if (given.empty()) return;
    if (literal_) {
      text_ = given.view().data();
    } else {
      text_ = copy_of(given.view());
    }
  }
  /// REQUIRES: `text` has static storage.
  static kept_name of_literal(const char* text) noexcept {
    kept_name kept;
    kept.text_ = text;
    return kept;
  }
  kept_name(kept_name&& other) noexcept
      : text_(std::exchange(other.text_, nullptr)), literal_(other.literal_) {}
  kept_name& operator=(kept_name&& other) noexcept {
    std::swap(text_, other.text_);
    std::swap(literal_, other.literal_);
    return *this;
  }
  ~kept_name() {
    if (text_ != nullptr && !literal_) delete[] text_;
  }

  bool empty() const noexcept { return text_ == nullptr; }
  bool is_literal() const noexcept { return literal_; }
  /// The characters, never null; unless it is a literal, the caller now owns them.
  const char* release() noexcept {
    const char* const text = std::exchange(text_, nullptr);
    return text == nullptr ? "" : text;
  }
  std::string_view view() const noexcept {
    return text_ == nullptr ? std::string_view() : std::string_view(text_);
  }

 private:
  static const char* copy_of(std::string_view text) {
    char* copy = new char[text.size() + 1];
    text.copy(copy, text.size());
    copy[text.size()] = '\0';
    return copy;
  }

  const char* text_ = nullptr;
  bool literal_ = true;
};

}  // namespace detail
}  // namespace weir
