// SPDX-License-Identifier: MIT
// The reader of WebSocket frames on arbitrary bytes: what it finds must not depend on how the bytes
// are cut, and a text that it accepts is UTF-8. For libFuzzer (ws_frames.cpp) and for a unit test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "io/ws_frame.hpp"

namespace fuzz {

inline void ws_require(bool holds) {
  if (!holds) std::abort();
}

/// Everything that is found in `bytes`, given in pieces of at most `piece`.
inline std::string read_ws(std::string_view bytes, bool masked, std::size_t piece) {
  using weir::detail::ws_reader;
  ws_reader reader(masked);
  std::string found;
  std::string message;
  std::string buffer;
  for (;;) {
    const auto f = reader.read({buffer.data(), buffer.size()});
    if (f.fault) return found + "|fault " + std::to_string(f.fault.code);
    ws_require(f.consumed <= buffer.size());
    ws_require(f.announced >= f.data.size() || f.what != ws_reader::kind::piece);
    const std::string data(f.data);
    buffer.erase(0, f.consumed);
    if (f.what == ws_reader::kind::piece) {
      message += data;
      ws_require(message.size() <= f.announced);
      if (!f.last) continue;
      ws_require(reader.binary() || weir::detail::is_utf8(message));
      found += (reader.binary() ? "|binary " : "|text ") + message;
      message.clear();
    } else if (f.what != ws_reader::kind::nothing) {
      ws_require(data.size() <= weir::detail::max_control_payload);
      found += "|control " + std::to_string(static_cast<int>(f.what)) + " " + data;
      if (f.what == ws_reader::kind::close)
        found += std::to_string(weir::detail::read_ws_close(data).code);
    } else if (f.consumed == 0) {
      if (bytes.empty()) return found;
      const std::size_t n = std::min(piece, bytes.size());
      buffer += bytes.substr(0, n);
      bytes.remove_prefix(n);
    }
  }
}

/// The first byte chooses the side and how the rest is cut.
inline void check_ws(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const bool masked = (data[0] & 1U) != 0;
  const std::size_t piece = 1 + data[0] / 2U % 16U;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  ws_require(read_ws(bytes, masked, bytes.size() + 1) == read_ws(bytes, masked, piece));
}

}  // namespace fuzz
