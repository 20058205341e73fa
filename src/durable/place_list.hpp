// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "durable/record.hpp"

namespace weir::detail {

/// The places of the records of a run, in the order in which they were appended.
///
/// Each is kept as its distance from the one before, seven bits a byte, so that a place takes two
/// or three bytes instead of eight, and the places of a short run allocate nothing.
class place_list {
 public:
  void push_back(record_place place) {
    // Places grow along the log, but nothing breaks if they do not: the distance wraps around.
    for (std::uint64_t left = place - last_;; left >>= 7U) {
      if (left < more) {
        bytes_.push_back(static_cast<char>(left));
        break;
      }
      bytes_.push_back(static_cast<char>(left % more | more));
    }
    last_ = place;
  }
  template <class F>
  void for_each(F&& use) const {
    record_place place = 0;
    for (std::size_t at = 0; at < bytes_.size();) {
      std::uint64_t distance = 0;
      for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes_[at++]);
        distance |= std::uint64_t{byte % more} << shift;
        if (byte < more) break;
      }
      use(place += distance);
    }
  }
  bool empty() const noexcept { return bytes_.empty(); }
  /// Removes all, and keeps the memory if it is at most `kept_bytes`.
  void clear(std::size_t kept_bytes = 0) {
    if (bytes_.capacity() > kept_bytes) std::string().swap(bytes_);
    bytes_.clear();
    last_ = 0;
  }

 private:
  static constexpr unsigned more = 0x80;  // in a byte: another one follows
  std::string bytes_;
  record_place last_ = 0;
};

}  // namespace weir::detail
