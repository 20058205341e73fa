// SPDX-License-Identifier: MIT
#include "durable/file_window.hpp"

#include <algorithm>
#include <cstring>

namespace weir::detail {

void file_window::look_at(disk_file& file) noexcept {
  file_ = &file;
  begin_ = 0;
  filled_ = 0;
  at_end_ = false;
}

void file_window::fill(std::uint64_t offset) {
  const bool inside = offset >= begin_ && offset < begin_ + filled_;
  if (at_end_ && offset >= begin_) return;
  const auto skipped = static_cast<std::size_t>(inside ? offset - begin_ : filled_);
  if (skipped < filled_) std::memmove(buffer_.data(), buffer_.data() + skipped, filled_ - skipped);
  filled_ -= skipped;
  begin_ = offset;
  // Fills the buffer, but not beyond the size of the file, which is small in simulations.
  const std::uint64_t size = file_->size();
  if (buffer_.size() < capacity)
    buffer_.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(capacity, std::max<std::uint64_t>(buffer_.size(), size))));
  const std::uint64_t wanted = std::min<std::uint64_t>(capacity, size > begin_ ? size - begin_ : 0);
  at_end_ = begin_ + capacity >= size;
  if (wanted > filled_) {
    const auto into =
        std::span(buffer_).subspan(filled_, static_cast<std::size_t>(wanted) - filled_);
    filled_ += read_up_to(*file_, into, begin_ + filled_);
  }
}

}  // namespace weir::detail
