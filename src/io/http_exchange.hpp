// SPDX-License-Identifier: MIT
// One request and its answer: everything about them that is not a wait. A connection borrows an
// exchange from its server when the first byte of a request comes, and returns it when it idles
// again; so an idle connection holds no buffer, and a busy one allocates none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/duration.hpp>
#include <weir/event.hpp>
#include <weir/http/request.hpp>
#include <weir/http/response.hpp>
#include <weir/http/serve.hpp>
#include <weir/mutex.hpp>

#include "io/http_body.hpp"
#include "io/http_buffer.hpp"
#include "io/http_head.hpp"

namespace weir::detail {

class http_connection;

/// What the readers of the body share with the exchange, which they may outlive: a handler may have
/// given the body to a fiber that goes on after the answer.
struct body_access {
  http_exchange* exchange = nullptr;  // null: the answer has ended
  bool reading = false;               // a read of the body waits

  /// Throws errc::closed if the answer has ended.
  http_exchange& open() const;
};

class http_exchange {
 public:
  explicit http_exchange(const http::http_options& options);

  /// A request begins on this connection. What was received before stays.
  void begin(http_connection& on);
  /// The answer was sent, or never will be: later pulls of the body fail. REQUIRES: none waits.
  void end() noexcept;
  /// Whether a fiber waits for the body.
  bool body_is_read() const noexcept { return access != nullptr && access->reading; }
  /// For the readers of the body.
  const std::shared_ptr<body_access>& share_body();
  /// Prepares what handlers ask for. REQUIRES: `head` was read.
  http_fault prepare();
  /// How much of the body is sure to come that the handler has not read; a body whose client waits
  /// for 100 counts as endless.
  std::uint64_t unread() const noexcept;

  /// Composes the head of `answer`, and its body if it fits, in `out`. Returns what is left of the
  /// body to send. `keep`: the connection stays open.
  std::string_view compose(bool keep, wall_time now);
  /// Whether the answer is a stream that is to be pulled.
  bool streams() const noexcept { return answer->streamed() != nullptr && sends_body(); }
  /// Whether pieces of a stream are sent as chunks.
  bool chunked() const noexcept { return head.minor == 1; }

  const http::http_options& options;
  http_buffer in;
  std::string out;
  http_head_reader head_reader;
  http_head head;
  http_body_reader body;
  http::request request{*this};
  http_connection* connection = nullptr;

  // Of the request.
  http_target target;
  std::string path;
  std::vector<std::string_view> segments;
  std::vector<std::pair<std::string, std::string>> params;
  std::optional<time_point> deadline;
  std::uint64_t body_bytes = 0;         // received so far
  std::shared_ptr<body_access> access;  // made when the body is first asked for
  bool body_taken = false;
  bool continued = false;  // 100 was sent, or need not be

  // Of the answer.
  std::optional<http::response> answer;
  http_fault fault;           // why the body is refused
  bool answer_begun = false;  // bytes of the head may have been sent
  bool broken = false;        // nothing can be sent any more
  bool cut = false;           // the stream has failed: no end mark
  mutex turn;                 // to write: the stream's, or the comments'
  event write_ended;          // set unless a write is under way
  time_point last_write{};
  std::uint64_t writes = 0;   // that were begun
  bool stream_ended = false;  // no comment may follow

 private:
  bool sends_body() const noexcept;
  void append_headers(bool keep, wall_time now);
};

}  // namespace weir::detail
