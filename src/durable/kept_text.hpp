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
  kept_text& operator=(std::string_view text) {
    char* made = nullptr;
    if (!text.empty()) {
      const std::uint64_t size = text.size();
      made = static_cast<char*>(::operator new(header_bytes + size));
      // Shorter than 2^32 bytes: it was, or will be, in a record.
      const auto kept = static_cast<std::uint32_t>(size);
      std::memcpy(made, &kept, header_bytes);
      std::memcpy(made + header_bytes, text.data(), size);
    }
    ::operator delete(std::exchange(block_, made));
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
  char* block_ = nullptr;  // the size, then the text
};

}  // namespace weir::detail
