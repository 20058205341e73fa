// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace weir::ws {

/// A received message.
class message {
 public:
  message(bool binary, std::string data) noexcept : data_(std::move(data)), binary_(binary) {}

  bool text() const noexcept { return !binary_; }
  bool binary() const noexcept { return binary_; }
  std::string_view data() const noexcept { return data_; }
  /// Moves the bytes out.
  std::string take() && noexcept { return std::move(data_); }

 private:
  std::string data_;
  bool binary_;
};

/// A part of a received message; the last one may be empty.
class piece {
 public:
  piece(bool binary, bool last, std::string data) noexcept
      : data_(std::move(data)), binary_(binary), last_(last) {}

  bool text() const noexcept { return !binary_; }
  bool binary() const noexcept { return binary_; }
  /// Whether the message ends with it.
  bool last() const noexcept { return last_; }
  std::string_view data() const noexcept { return data_; }
  std::string take() && noexcept { return std::move(data_); }

 private:
  std::string data_;
  bool binary_;
  bool last_;
};

}  // namespace weir::ws
