// SPDX-License-Identifier: MIT
// One request on one connection: sending it, and reading its answer.
//
// Invariants:
// 1. It holds a place of its origin, and the connection, until the answer was read. Then the
//    connection is kept if it is idle (see client_core); otherwise, and if it ends early, closed.
// 2. A request is sent once; again only on a new connection instead of a kept one, if no byte of an
//    answer has come, the method is idempotent and the body is not a stream.
// 3. What is left of the request is sent while the answer is read, because a server may answer
//    first, or stop reading until it has answered. Sending may be interrupted anywhere and goes on
//    where it was.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <weir/duration.hpp>
#include <weir/http/client.hpp>
#include <weir/task.hpp>

#include "io/http_body.hpp"
#include "io/http_client_core.hpp"
#include "io/http_head.hpp"
#include "io/http_url.hpp"

namespace weir::detail {

/// What is sent. Redirects change it.
struct client_request {
  std::string method;
  http_url url;
  http::headers fields;
  http::request_body body;
  std::optional<time_point> deadline;  // what is sent as x-deadline-ms

  /// "GET http://host/path", for errors.
  std::string text() const { return method + " " + url.str(); }
  bool streams() const noexcept { return body.stream_ != nullptr; }
  /// Whether a server that gets it twice does the same as if it got it once.
  bool may_repeat() const noexcept;
  /// Throws errc::invalid_argument.
  void check() const;
};

/// Sends a request. May be stopped by a cancellation and run again.
class client_upload {
 public:
  client_upload(io::socket& to, client_request& request);
  client_upload(const client_upload&) = delete;
  client_upload& operator=(const client_upload&) = delete;

  task<> run();
  bool ended() const noexcept { return ended_; }
  /// Whether the server takes nothing more. It may have answered.
  bool failed() const noexcept { return failed_; }
  /// Whether waiting for its end, before the answer is read, is no risk.
  bool is_small() const noexcept;

 private:
  struct progress;
  task<> refill();

  io::socket& socket_;
  client_request& request_;
  std::string out_;          // the head, then a chunk
  std::string_view rest_;    // what is to be sent of it, or of the body
  bool body_begun_ = false;  // a text: it is in `rest_`, or was
  bool last_ = false;        // nothing comes after `rest_`
  bool ended_ = false;
  bool failed_ = false;
};

class client_exchange {
 public:
  explicit client_exchange(std::shared_ptr<client_core> core) noexcept : core_(std::move(core)) {}
  client_exchange(const client_exchange&) = delete;
  client_exchange& operator=(const client_exchange&) = delete;

  /// Waits for a place, connects, sends, and reads the head of the answer.
  task<> begin(client_request request);
  /// The next bytes of the body, appended. False at the end.
  task<bool> read_piece(std::string& into);
  task<http::response> read_response();
  /// Reads what is left of the answer if that is little, so that the connection can be kept.
  task<> discard();

  int status() const noexcept { return status_; }
  const http::headers& fields() const noexcept { return fields_; }
  client_request& request() noexcept { return *request_; }
  client_core& core() noexcept { return *core_; }
  /// It outlives the call that made it.
  void hold(client_use use) { use_.emplace(std::move(use)); }
  bool reading = false;  // a next() is pending

 private:
  task<> connect();
  task<> send_and_read_head();
  task<> read_head();
  task<bool> read_piece_alone(std::string& into);
  /// Runs it while the rest of the request is sent.
  task<> alongside_upload(task<> read);
  task<std::size_t> receive(std::size_t least);
  void finish();
  [[noreturn]] void fail(errc code, const std::string& why);

  std::shared_ptr<client_core> core_;
  std::optional<client_use> use_;
  std::optional<client_request> request_;
  std::optional<origin_use> origin_;
  client_connection_ref connection_;  // null: the answer was read, or has failed
  std::optional<client_upload> upload_;
  http_head_reader head_reader_{{.max_head = 64 * 1024, .max_fields = 1000}};
  http_head head_;
  http_body_reader body_{{.max_head = 64 * 1024, .max_fields = 1000}};
  http::headers fields_;
  int status_ = 0;
  std::uint64_t received_ = 0;  // of the body
  std::string unread_;          // a piece of it, received by a call that was cancelled then
  bool answered_ = false;       // a byte of an answer has come
  bool failed_ = false;
};

}  // namespace weir::detail
