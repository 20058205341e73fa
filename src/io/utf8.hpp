// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::detail {

/// Whether bytes are UTF-8, piece by piece: a character may be cut anywhere. Surrogates, overlong
/// forms and numbers above U+10FFFF are not. A bad byte is found as soon as it comes.
class utf8_check {
 public:
  /// False: these bytes cannot be part of a valid text. REQUIRES: no call was false before.
  bool add(std::string_view bytes) noexcept;
  /// Whether the text may end here.
  bool complete() const noexcept { return missing_ == 0; }
  void reset() noexcept { missing_ = 0; }

 private:
  bool begin(std::uint8_t lead) noexcept;

  int missing_ = 0;         // bytes of the present character that have not come yet
  std::uint8_t least_ = 0;  // the range of the next one
  std::uint8_t most_ = 0;
};

inline bool is_utf8(std::string_view text) noexcept {
  utf8_check check;
  return check.add(text) && check.complete();
}

}  // namespace weir::detail
