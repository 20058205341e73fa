// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <weir/error.hpp>
#include <weir/http/event.hpp>
#include <weir/http/headers.hpp>
#include <weir/stream/any_stream.hpp>

namespace weir::detail {

/// A body that is made while it is sent.
struct response_stream {
  bool sent = false;  // by one of the responses that share it
  std::optional<any_stream<std::string>> pieces;
  std::optional<any_stream<http::event>> events;
};

class response_upgrade;

}  // namespace weir::detail

namespace weir::http {

/// A status that says that the request has failed; see response::raise_for_status.
class status_error : public error {
 public:
  explicit status_error(int status);
  int status() const noexcept { return status_; }

 private:
  int status_;
};

/// An answer: what a handler returns and what a client gets.
///
/// `content-length`, `date`, `connection` and `transfer-encoding` are the server's: it replaces
/// what was set, but closes the connection after `connection: close`; a content-length that is not
/// the body's is errc::invalid_argument. Statuses 1xx, 204 and 304 are sent without a body. A
/// status outside of 100 to 999, and a header that would break its line: errc::invalid_argument.
/// A copy of one that streams shares the stream, which can be sent once (errc::already_taken).
class response {
 public:
  /// A body is `text/plain; charset=utf-8` unless the header is set.
  explicit response(int status, std::string body = "");
  response(const response&) = default;
  response(response&&) noexcept = default;
  response& operator=(const response&) = default;
  response& operator=(response&&) noexcept = default;

  /// Status 200, `application/json`.
  static response json(std::string text);
  /// Sends the pieces of a stream as they come; `application/octet-stream` unless set. The stream
  /// runs after the handler has returned and owns what it uses. It is pulled when the last piece
  /// was written. Its error cuts the connection before the end mark.
  static response stream(any_stream<std::string> pieces);
  /// Sends server-sent events as they come, and a comment every 15 s, which finds clients that are
  /// gone.
  static response events(any_stream<event> events);

  response& set(std::string_view header, std::string_view value) & {
    set_header(header, value);
    return *this;
  }
  response&& set(std::string_view header, std::string_view value) && {
    set_header(header, value);
    return std::move(*this);
  }
  /// As set, but keeps what is there: for set-cookie.
  response& add(std::string_view header, std::string_view value) & {
    add_header(header, value);
    return *this;
  }
  response&& add(std::string_view header, std::string_view value) && {
    add_header(header, value);
    return std::move(*this);
  }

  int status() const noexcept { return status_; }
  /// Empty if it is a stream.
  const std::string& body() const& noexcept { return body_; }
  std::string body() && noexcept { return std::move(body_); }
  std::optional<std::string_view> header(std::string_view name) const noexcept {
    return headers_.get(name);
  }
  const http::headers& headers() const noexcept { return headers_; }
  /// Throws status_error if the status is 400 or more.
  void raise_for_status() const;

  // Below: for the library.
  /// What a client received.
  response(int status, http::headers headers, std::string body) noexcept
      : headers_(std::move(headers)), body_(std::move(body)), status_(status) {}
  detail::response_stream* streamed() const noexcept { return stream_.get(); }
  /// The connection belongs to another protocol behind this answer, whose status is 101.
  response(http::headers headers, std::shared_ptr<detail::response_upgrade> upgrade) noexcept
      : headers_(std::move(headers)), upgrade_(std::move(upgrade)), status_(101) {}
  const std::shared_ptr<detail::response_upgrade>& upgrade() const noexcept { return upgrade_; }

 private:
  void set_header(std::string_view name, std::string_view value);
  void add_header(std::string_view name, std::string_view value);
  void require_own_length(std::string_view name, std::string_view value) const;

  http::headers headers_;
  std::string body_;
  std::shared_ptr<detail::response_stream> stream_;
  std::shared_ptr<detail::response_upgrade> upgrade_;
  int status_;
};

}  // namespace weir::http
