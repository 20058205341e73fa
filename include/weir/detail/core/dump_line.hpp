// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::detail {

/// The text that a wait writes about itself in a dump. A thin wrapper of a string, so that headers
/// need no streams.
class dump_line {
 public:
  explicit dump_line(std::string& text) noexcept : text_(&text) {}
  dump_line& add(std::string_view part) {
    text_->append(part);
    return *this;
  }
  dump_line& add(std::uint64_t number) {
    text_->append(std::to_string(number));
    return *this;
  }
  /// Adds a name in quotes after a blank; nothing if it is empty.
  dump_line& add_name(std::string_view name) {
    if (!name.empty()) text_->append(" '").append(name).append("'");
    return *this;
  }

 private:
  std::string* text_;
};

}  // namespace weir::detail
