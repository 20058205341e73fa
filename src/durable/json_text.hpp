// SPDX-License-Identifier: MIT
// Shared by the writer and the reader of JSON: tags, base64, quoting.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace weir::detail {

inline constexpr std::string_view base64_tag = "$base64";
inline constexpr std::string_view float_tag = "$float";
inline constexpr std::string_view float_nan = "nan";
inline constexpr std::string_view float_inf = "inf";
inline constexpr std::string_view float_minus_inf = "-inf";

std::string base64(std::string_view bytes);
/// Decodes the output of `base64` into `bytes`; false for any other text.
bool from_base64(std::string_view text, std::string& bytes);

inline bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}

/// The JSON escape of a character that is not plain.
std::string_view escaped(char c, std::array<char, 6>& room);

/// Passes the quoted text to `sink`, in pieces.
template <class Sink>
void quote(std::string_view utf8, Sink sink) {
  sink("\"");
  std::size_t plain = 0;
  std::array<char, 6> room;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    if (is_plain(utf8[i])) continue;
    sink(utf8.substr(plain, i - plain));
    sink(escaped(utf8[i], room));
    plain = i + 1;
  }
  sink(utf8.substr(plain));
  sink("\"");
}

}  // namespace weir::detail
