// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace weir::detail {

/// A text of one pointer, which allocates if it is not empty: for members of which there are as
/// many as runs. A std::string takes 32 bytes more for every text that does not fit into it.
class kept_text {
 public:
  kept_text() noexcept = default;
  kept_text(const kept_text&) = delete;
  ~kept_text() { ::operator delete(block_); }
  kept_text& operator=(const kept_text&) = delete;
  /// Uses the block of a text that is as long, or a little longer. REQUIRES: `text` is not a part
  /// of this one.
  kept_text& operator=(std::string_view text) {
    if (text.empty()) {
      ::operator delete(std::exchange(block_, nullptr));
      return *this;
    }
    const std::size_t room = view().size();
    if (text.size() > room || room - text.size() > wasted_bytes_max) {
      char* const made = static_cast<char*>(::operator new(header_bytes + text.size()));
      ::operator delete(std::exchange(block_, made));
    }
    // Shorter than 2^32 bytes: it was, or will be, in a record.
    const auto size = static_cast<std::uint32_t>(text.size());
    std::memcpy(block_, &size, header_bytes);
    std::memcpy(block_ + header_bytes, text.data(), text.size());
    return *this;
  }

  std::string_view view() const noexcept {
    if (block_ == nullptr) return {};
    std::uint32_t size = 0;
    std::memcpy(&size, block_, header_bytes);
    return {block_ + header_bytes, size};
  }
  explicit(false) operator std::string_view() const noexcept { return view(); }
  std::string str() const { return std::string(view()); }
  bool empty() const noexcept { return block_ == nullptr; }

 private:
  static constexpr std::size_t header_bytes = sizeof(std::uint32_t);
  static constexpr std::size_t wasted_bytes_max = 16;
  char* block_ = nullptr;  // the size, then the text
};

}  // namespace weir::detail
