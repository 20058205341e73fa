// SPDX-License-Identifier: MIT
// The bodies of HTTP/1 messages, read from bytes: no I/O, the same result however they are cut.
//
// Invariants:
// 1. It consumes everything it is given up to the end of the body, and nothing behind it.
// 2. A chunk has a size of 1 to 16 hexadecimal digits, then CR LF or an extension (`;`, visible
//    characters); its data is followed by CR LF. Trailers are read like the fields of a head and
//    dropped. Everything else is a fault.
// 3. Extensions together, and trailers together, are no longer than `max_head`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/http_head.hpp"

namespace weir::detail {

class http_body_reader {
 public:
  explicit http_body_reader(http_limits limits = {}) noexcept : limits_(limits) {}

  /// A body begins.
  void begin(http_framing framing, std::uint64_t length);

  /// What `read` found: the next bytes of the body, as a view of its input; none: more input is
  /// needed, or the body has ended.
  struct piece {
    std::size_t consumed = 0;
    std::string_view data;
    http_fault fault;
  };
  piece read(std::string_view input);
  bool ended() const noexcept { return phase_ == phase::ended; }
  /// The connection has ended. Returns whether the body is complete.
  bool end_of_input() noexcept;
  /// The bytes that are certain to come: of a body with a length, or the rest of a chunk.
  std::uint64_t announced() const noexcept { return ended() ? 0 : left_; }

 private:
  enum class phase : std::uint8_t {
    ended,
    counted,    // `left_` bytes of a body with a length
    open,       // until the connection ends
    size,       // the digits of a chunk's size
    extension,  // behind them
    size_end,   // the LF behind a size
    data,       // `left_` bytes of a chunk
    data_cr,    // the CR LF behind it
    data_end,
    trailer,  // a line of the trailers
  };

  piece take_data(std::string_view input, phase next);
  http_fault step(char c);
  http_fault step_size(char c);
  http_fault step_trailer(char c);

  http_limits limits_;
  std::uint64_t left_ = 0;
  std::size_t extra_ = 0;   // bytes of extensions, then of trailers
  std::size_t fields_ = 0;  // in the trailers
  unsigned digits_ = 0;     // of the chunk's size
  phase phase_ = phase::ended;
  std::string line_;  // of the trailers
};

}  // namespace weir::detail
