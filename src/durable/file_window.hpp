// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <weir/sim/disk.hpp>

namespace weir::detail {

/// Reads a file forwards through a buffer of constant size, whatever the size of the file.
class file_window {
 public:
  static constexpr std::size_t capacity = std::size_t{1} << 20;

  /// Requires: the file outlives the use of the window.
  void look_at(disk_file& file) noexcept;
  /// The bytes at an offset, fewer than asked for only at the end of the file; valid until the
  /// next call. Requires: n <= capacity, and the file does not grow meanwhile.
  std::span<const std::byte> at(std::uint64_t offset, std::size_t n) {
    if (offset < begin_ || offset + n > begin_ + filled_) fill(offset);
    const std::uint64_t skipped = offset - begin_;
    if (skipped >= filled_) return {};
    const auto rest = std::span<const std::byte>(buffer_).first(filled_).subspan(
        static_cast<std::size_t>(skipped));
    return rest.first(rest.size() < n ? rest.size() : n);
  }

 private:
  void fill(std::uint64_t offset);

  disk_file* file_ = nullptr;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;
  std::size_t filled_ = 0;
  bool at_end_ = false;  // the file has nothing after what the buffer holds
};

}  // namespace weir::detail
