// SPDX-License-Identifier: MIT
// The HTTP client: requests over connections that are kept for reuse. HTTP/1.1 without proxies,
// cookies or compression; https by TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/io/http_client.hpp>
#include <weir/duration.hpp>
#include <weir/http/headers.hpp>
#include <weir/http/response.hpp>
#include <weir/stream/any_stream.hpp>
#include <weir/task.hpp>

namespace weir::http {

/// Which redirects are followed. One that is not followed is the response. https is never left for
/// http, except under `any`.
enum class redirects : std::uint8_t { same_host, none, any };

struct client_options {
  std::int64_t max_per_host = 8;  ///< connections to one scheme, host and port; 1 or more
  duration timeout = std::chrono::seconds(30);
  std::int64_t max_body = std::int64_t{16} << 20;  ///< of a response; not of an `incoming`
  weir::http::redirects redirects = weir::http::redirects::same_host;
  std::int64_t max_redirects = 5;
  duration idle_timeout = std::chrono::seconds(30);  ///< 0: no connection is kept
  std::string_view ca_file{};  ///< for https, instead of the system's roots; PEM
};
static_assert(std::is_trivially_destructible_v<client_options>);

/// The body of a request: a text, which is copied or moved, or a stream, which is sent in chunks as
/// it is pulled.
class request_body {
 public:
  request_body() noexcept {}
  request_body(const char* text) : text_(text) {}
  request_body(std::string_view text) : text_(text) {}
  request_body(std::string text) noexcept : text_(std::move(text)) {}
  template <detail::any_pipeline P>
    requires(!std::is_lvalue_reference_v<P> && std::is_same_v<typename P::value_type, std::string>)
  request_body(P&& stream)
      : stream_(std::make_unique<any_stream<std::string>>(std::forward<P>(stream))) {}

  // Below: for the library.
  std::string text_;
  std::unique_ptr<any_stream<std::string>> stream_;
};

/// An answer whose body is pulled as it arrives, however long it is. It holds one of the client's
/// connections: destroyed before the end of the body, it closes it. The client outlives it.
class incoming {
 public:
  incoming(incoming&&) noexcept;
  incoming& operator=(incoming&&) noexcept;
  ~incoming();

  int status() const noexcept;
  std::optional<std::string_view> header(std::string_view name) const noexcept {
    return headers().get(name);
  }
  const http::headers& headers() const noexcept;
  /// Throws status_error if the status is 400 or more.
  void raise_for_status() const;
  /// The next piece of the body, which is not empty, or nothing at the end. One at a time
  /// (errc::busy). Takes at most the client's `timeout`. Cancelled, it has taken nothing. A body
  /// that is cut short: errc::end_of_stream; after an error: errc::closed.
  [[nodiscard]] task<std::optional<std::string>> next();

  // Below: for the library.
  explicit incoming(std::unique_ptr<detail::client_exchange> exchange) noexcept;

 private:
  std::unique_ptr<detail::client_exchange> exchange_;
};

/// An HTTP client. Requests run concurrently, at most `max_per_host` to one scheme, host and port;
/// further ones wait in order. Connections are kept for `idle_timeout`.
///
/// A status is never an error; `raise_for_status()` makes it one. `timeout` covers everything from
/// waiting for a connection to the end of the body, with all redirects (timeout_error); of `open`
/// it covers the time until the answer begins, and then each `next()`. A body cut short:
/// errc::end_of_stream; larger than `max_body`: errc::too_large; an answer that is not HTTP, or
/// framed in two ways: errc::bad_data. URLs that are not http or https, or not valid, and headers
/// that the client sets itself (transfer-encoding, expect, upgrade, another length):
/// errc::invalid_argument, before anything is sent.
///
/// A kept connection that is found dead before any byte of the answer is replaced once by a new
/// one, for GET, HEAD, PUT, DELETE and OPTIONS. Nothing is sent twice otherwise.
///
/// Redirects: 303, and 301 or 302 after POST, become GET without a body; others keep method and
/// body, but a stream is not sent again: the redirect is the response. Another host gets neither
/// `authorization` nor `cookie`. More than `max_redirects`: errc::too_many_redirects.
///
/// The time left until the deadline around the call is sent as `x-deadline-ms`; of a request that
/// is not an `open` the client's `timeout` counts, too. `http::traceparent` is sent if it is set.
///
/// Threads: home loop only (errc::wrong_loop). Destroying it while requests are pending, or an
/// `incoming` of it exists, aborts.
class client {
 public:
  /// Bad options: errc::invalid_argument.
  explicit client(client_options options = {});
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  ~client();

  task<response> get(std::string_view url, headers fields = headers());
  task<response> post(std::string_view url, request_body body, headers fields = headers());
  task<response> request(std::string_view method, std::string_view url,
                         request_body body = request_body(), headers fields = headers());
  /// For answers that are long, or have no end. A stream as the body is sent during the call and
  /// during each `next()`, until the answer has ended.
  task<incoming> open(std::string_view method, std::string_view url,
                      request_body body = request_body(), headers fields = headers());

 private:
  std::shared_ptr<detail::client_core> core_;
};

/// Whether another attempt may succeed: refused, reset, ended early, not resolved for now, timed
/// out. Not statuses, answers that are not HTTP, and mistakes of the caller. For retry(...).when.
bool is_transient(const std::exception_ptr& error) noexcept;

}  // namespace weir::http
