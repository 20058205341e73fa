// SPDX-License-Identifier: MIT
// The readers of HTTP messages on arbitrary bytes: what they find must not depend on how the bytes
// are cut, and what they accept must have one reading. For libFuzzer (http_request.cpp,
// http_response.cpp) and for a unit test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "io/http_body.hpp"
#include "io/http_head.hpp"
#include "io/http_text.hpp"

namespace fuzz {

namespace http_wire = weir::detail;

inline void http_require(bool holds) {
  if (!holds) std::abort();
}

/// Reads message after message and writes down what it finds, body by body and fault by fault.
class http_reading {
 public:
  http_reading(bool requests, http_wire::http_limits limits)
      : requests_(requests), head_reader_(limits), body_reader_(limits) {}

  void feed(std::string_view bytes) {
    buffer_ += bytes;
    while (!failed_ && !buffer_.empty() && (in_body_ ? read_body() : read_head())) {
    }
  }
  void end() {
    if (failed_ || !in_body_) return;
    found_ += body_reader_.end_of_input() ? "|complete" : "|cut";
  }
  const std::string& found() const { return found_; }

 private:
  bool read_head() {
    const auto r = requests_ ? head_reader_.read_request(buffer_, head_)
                             : head_reader_.read_response(buffer_, head_, false);
    if (r.fault) return fail(r.fault);
    if (r.consumed == 0) return false;
    http_require(r.consumed <= buffer_.size());
    check_head();
    found_ += "|" + std::string(head_.method) + " " + std::string(head_.target) + " " +
              std::to_string(head_.status) + (head_.keep_alive ? " keep" : " close");
    for (const auto& f : head_.fields)
      found_ += "|" + std::string(f.name) + "=" + std::string(f.value);
    buffer_.erase(0, r.consumed);
    body_reader_.begin(head_.framing, head_.length);
    in_body_ = !body_reader_.ended();
    return true;
  }

  bool read_body() {
    const auto piece = body_reader_.read(buffer_);
    http_require(piece.consumed <= buffer_.size());
    found_ += std::string(piece.data);
    if (piece.fault) return fail(piece.fault);
    http_require(body_reader_.ended() || !piece.data.empty() || piece.consumed == buffer_.size());
    buffer_.erase(0, piece.consumed);
    if (body_reader_.ended()) {
      in_body_ = false;
      found_ += "|end";
    }
    return true;
  }

  /// An accepted head has no second reading.
  void check_head() {
    const std::string_view text = head_.text;
    for (std::size_t i = 0; i < text.size(); ++i) {
      http_require(text[i] != '\0');
      http_require((text[i] == '\r') == (i + 1 < text.size() && text[i + 1] == '\n'));
    }
    int lengths = 0;
    int codings = 0;
    for (const auto& f : head_.fields) {
      http_require(http_wire::is_http_token(f.name) && http_wire::is_http_value(f.value));
      lengths += http_wire::same_ignoring_case(f.name, "content-length") ? 1 : 0;
      codings += http_wire::same_ignoring_case(f.name, "transfer-encoding") ? 1 : 0;
    }
    http_require(codings == 0 || (codings == 1 && lengths == 0));
    if (!requests_ || head_.method == "CONNECT") return;
    http_wire::http_target parts;
    http_require(!http_wire::split_target(head_.method, head_.target, parts));
    std::string path;
    std::vector<std::string_view> segments;
    if (http_wire::normalize_path(parts.path, path, segments)) return;
    http_require(path == "*" || path.starts_with('/'));
    (void)http_wire::query_value(parts.query, "key");
  }

  bool fail(const http_wire::http_fault& fault) {
    http_require(fault.status >= 400);
    found_ += "|fault " + std::to_string(fault.status) + " " + fault.text;
    failed_ = true;
    return false;
  }

  bool requests_;
  http_wire::http_head_reader head_reader_;
  http_wire::http_body_reader body_reader_;
  http_wire::http_head head_;
  std::string buffer_;
  std::string found_;
  bool in_body_ = false;
  bool failed_ = false;
};

/// What is found in these bytes, in one piece and cut in several ways. Small limits, so that they
/// are reached.
inline std::string read_http(std::string_view bytes, bool requests) {
  const http_wire::http_limits limits{.max_head = 256, .max_fields = 5};
  http_reading whole(requests, limits);
  whole.feed(bytes);
  whole.end();
  for (const std::size_t cut : {std::size_t{1}, std::size_t{3}, std::size_t{17}}) {
    http_reading parts(requests, limits);
    for (std::size_t at = 0; at < bytes.size(); at += cut) parts.feed(bytes.substr(at, cut));
    parts.end();
    http_require(parts.found() == whole.found());
  }
  return whole.found();
}

inline std::string_view http_input(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace fuzz
