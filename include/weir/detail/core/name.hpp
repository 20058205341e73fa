// SPDX-License-Identifier: MIT
// Part of <weir/name.hpp>, which includes it after the declarations it needs.
#pragma once

#include <string_view>
#include <utility>

namespace weir {

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
