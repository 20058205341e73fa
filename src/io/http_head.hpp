// SPDX-License-Identifier: MIT
// The heads of HTTP/1 messages, read from bytes: no I/O, the same result however the bytes are cut.
//
// This is not Boost.Beast's parser. That one accepts what another parser on the way could read
// differently (folded fields, other codings before chunked, chunked in 1.0), so a strict reading
// had to come first; then every head is read twice, in two grammars, and where these differ is the
// hole that strictness should close. See docs/adr/0013-one-strict-parser-for-http.md.
//
// Invariants:
// 1. A head is complete or refused as soon as its bytes decide it, and by nothing else: whole and
//    byte by byte it gives the same result.
// 2. What is accepted has one reading: lines end with CR LF, no field is folded, no space is before
//    a colon, one framing is given. Everything else is a fault, with the status of the answer.
// 3. The views of a head point into its own text, which is a copy: the buffer may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/http_text.hpp"

namespace weir::detail {

struct http_limits {
  std::size_t max_head = 16 * 1024;  // bytes of a head, of trailers, of the extensions of chunks
  std::size_t max_fields = 100;
};

struct http_field {
  std::string_view name;
  std::string_view value;
};

enum class http_framing : std::uint8_t { none, length, chunked, until_close };

struct http_head {
  std::string text;
  std::vector<http_field> fields;
  std::string_view method;  // of a request
  std::string_view target;
  int status = 0;  // of a response
  std::string_view reason;
  int minor = 1;  // of HTTP/1.x
  http_framing framing = http_framing::none;
  std::uint64_t length = 0;  // if the framing is `length`
  bool keep_alive = true;
  bool expects_continue = false;

  /// The first field of this name.
  std::optional<std::string_view> find(std::string_view name) const noexcept;
};

/// Reads one field, without the end of its line.
http_fault read_field(std::string_view line, http_field& into) noexcept;

class http_head_reader {
 public:
  explicit http_head_reader(http_limits limits = {}) noexcept : limits_(limits) {}

  /// `consumed`: the bytes of the head; 0 as long as more are needed, and with a fault.
  struct result {
    std::size_t consumed = 0;
    http_fault fault;
  };
  /// `buffer` begins where the message does and is longer with each call. After a head, and after a
  /// fault, it is ready for the next message.
  result read_request(std::string_view buffer, http_head& into);
  /// `no_body`: the request was HEAD.
  result read_response(std::string_view buffer, http_head& into, bool no_body);

 private:
  result find_end(std::string_view buffer, bool skips_line);
  http_fault parse_request(http_head& head) const;
  http_fault parse_response(http_head& head, bool no_body) const;
  http_fault parse_fields(http_head& head, std::size_t at) const;

  http_limits limits_;
  std::size_t line_ = 0;   // where the line begins that is not complete
  std::size_t begin_ = 0;  // 2 if an empty line comes before the head
};

}  // namespace weir::detail
