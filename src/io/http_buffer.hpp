// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace weir::detail {

/// Received bytes that were not read yet, in one piece. It grows as it is asked to and never
/// shrinks: its users have limits.
class http_buffer {
 public:
  http_buffer() noexcept = default;
  http_buffer(http_buffer&& other) noexcept
      : bytes_(std::move(other.bytes_)),
        capacity_(std::exchange(other.capacity_, 0)),
        begin_(std::exchange(other.begin_, 0)),
        end_(std::exchange(other.end_, 0)) {}
  http_buffer& operator=(http_buffer&&) = delete;

  std::string_view view() const noexcept { return {bytes_.get() + begin_, end_ - begin_}; }
  bool empty() const noexcept { return begin_ == end_; }

  void consume(std::size_t n) noexcept {
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  void clear() noexcept { begin_ = end_ = 0; }

  /// Room behind the bytes, `least` or more: read into it, then `added`.
  std::span<std::byte> room(std::size_t least) {
    if (capacity_ - end_ < least) make_room(least);
    return {reinterpret_cast<std::byte*>(bytes_.get()) + end_, capacity_ - end_};
  }
  void added(std::size_t n) noexcept { end_ += n; }

  std::size_t capacity() const noexcept { return capacity_; }

 private:
  static constexpr std::size_t usual = 16 * 1024;

  void make_room(std::size_t least) {
    const std::size_t size = end_ - begin_;
    if (capacity_ - size >= least) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, size);
    } else {
      const std::size_t capacity = std::max({usual, capacity_ * 2, size + least});
      auto larger = std::make_unique_for_overwrite<char[]>(capacity);
      if (size > 0) std::memcpy(larger.get(), bytes_.get() + begin_, size);
      bytes_ = std::move(larger);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = size;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace weir::detail
