// SPDX-License-Identifier: MIT
//
// The least that reading a journal takes: the segments in order, the checksum of each frame, the
// header of each record.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "durable/crc32c.hpp"
#include "durable/log_frame.hpp"

namespace bench {

class bare_scan {
 public:
  /// The number of records in a journal.
  std::int64_t count(const std::string& directory) {
    std::vector<std::string> segments;
    for (const auto& file : std::filesystem::directory_iterator(directory))
      if (file.path().extension() == ".wlog") segments.push_back(file.path());
    std::sort(segments.begin(), segments.end());
    records_ = 0;
    for (const std::string& path : segments) scan(path);
    return records_;
  }
  std::uint64_t sum = 0;  // of what the headers say, so that they are read

 private:
  template <class T>
  static T number_at(const std::byte* at) noexcept {
    T n;
    std::memcpy(&n, at, sizeof n);
    return n;
  }

  void scan(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const std::uint32_t seed = read_seed(fd);
    std::size_t kept = 0;
    off_t at = weir::detail::segment_header_bytes;
    for (bool more = true; more;) {
      const ssize_t n = pread(fd, buffer_.data() + kept, buffer_.size() - kept, at);
      if (n <= 0) break;
      at += n;
      const auto all =
          std::span<const std::byte>(buffer_).first(kept + static_cast<std::size_t>(n));
      const std::size_t used = scan_frames(all, seed, more);
      kept = all.size() - used;
      std::memmove(buffer_.data(), buffer_.data() + used, kept);
    }
    close(fd);
  }

  std::uint32_t read_seed(int fd) {
    std::array<std::byte, weir::detail::segment_header_bytes> bytes{};
    if (pread(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return 0;
    const auto header = weir::detail::decode_segment_header(bytes);
    return header ? weir::detail::checksum_seed(header->secret) : 0;
  }

  std::size_t scan_frames(std::span<const std::byte> bytes, std::uint32_t seed, bool& more) {
    std::size_t at = 0;
    while (at + weir::detail::frame_header_bytes <= bytes.size()) {
      const std::byte* head = bytes.data() + at;
      const auto size = number_at<std::uint32_t>(head + 8);
      if (size == 0) more = false;
      if (size == 0 || at + size > bytes.size()) break;
      const auto frame = bytes.subspan(at, size);
      if (weir::detail::crc32c(frame.subspan(8), seed) != number_at<std::uint32_t>(head + 4))
        more = false;
      if (!more) break;
      scan_records(frame, number_at<std::uint32_t>(head + 12));
      at += size;
    }
    return at;
  }

  void scan_records(std::span<const std::byte> frame, std::uint32_t records) {
    const std::byte* at = frame.data() + weir::detail::frame_header_bytes;
    for (std::uint32_t i = 0; i < records; ++i) {
      sum += number_at<std::uint16_t>(at + 8) + number_at<std::uint64_t>(at + 12);
      at += weir::detail::record_header_bytes + number_at<std::uint32_t>(at + 4);
    }
    records_ += records;
  }

  std::vector<std::byte> buffer_ = std::vector<std::byte>(std::size_t{1} << 20);
  std::int64_t records_ = 0;
};

}  // namespace bench
