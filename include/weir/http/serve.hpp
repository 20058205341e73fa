// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/io/http_handler.hpp>
#include <weir/duration.hpp>
#include <weir/http/request.hpp>
#include <weir/http/response.hpp>
#include <weir/io/listener.hpp>
#include <weir/io/listeners.hpp>
#include <weir/name.hpp>
#include <weir/task.hpp>

namespace weir::http {

struct http_options {
  std::int64_t max_header = 16 * 1024;
  std::int64_t max_body = 1024 * 1024;
  /// From the first byte of a request to the end of its header.
  duration header_timeout = std::chrono::seconds(10);
  /// How long a connection may wait for its next request.
  duration idle_timeout = std::chrono::seconds(60);
  duration drain = std::chrono::seconds(10);
  /// How long a body, read or written, may stand still.
  duration progress_timeout = std::chrono::seconds(30);
  std::int64_t max_connections = 10'000;
  /// A client that has ended its side still waits for its answer.
  bool half_close = false;
  weir::name name{};
};

}  // namespace weir::http

namespace weir::detail {

task<> serve_http(io::listener& l, std::unique_ptr<http_handler> handler,
                  http::http_options options);
/// One handler for each loop.
task<> serve_http(io::listeners& l, std::vector<std::unique_ptr<http_handler>> handlers,
                  http::http_options options);

}  // namespace weir::detail

namespace weir::http {

/// Answers requests, each with `task<response> handler(request&)`, until it is cancelled or the
/// listener is closed; both drain: idle connections are closed at once, others after their answer,
/// at the latest after `drain`. Each connection has a scope of its own, named by its peer.
///
/// Connections are kept (HTTP/1.0: if asked); requests that come together are answered one after
/// the other. Input that is not valid, or could be framed in two ways, is answered with 400, 408,
/// 413, 431 or 505, and the connection is closed. A handler that throws: 500 with `x-error-id`,
/// which is in the event `request_failed` with the error. A client that goes away cancels its
/// handler (cancel_kind::remote): by a reset, or, unless `half_close`, by the end of its side while
/// the handler is parked. Limits below 1, negative durations: errc::invalid_argument.
///
/// Costs: an idle connection holds no buffer for requests; a warm one allocates nothing but what
/// its handler makes.
template <class Handler>
  requires std::is_invocable_r_v<task<response>, Handler&, request&>
task<> serve(io::listener& l, Handler handler, http_options options = {}) {
  return detail::serve_http(
      l, std::make_unique<detail::http_handler_of<Handler>>(std::move(handler)), options);
}

/// The same on all loops of a runtime, each with a copy of the handler; see io::listeners.
/// `max_connections` is for all loops together.
template <class Handler>
  requires(std::is_invocable_r_v<task<response>, Handler&, request&> &&
           std::copy_constructible<Handler>)
task<> serve(io::listeners& l, Handler handler, http_options options = {}) {
  std::vector<std::unique_ptr<detail::http_handler>> handlers;
  for (std::size_t i = 0; i < l.size(); ++i)
    handlers.push_back(std::make_unique<detail::http_handler_of<Handler>>(Handler(handler)));
  return detail::serve_http(l, std::move(handlers), options);
}

}  // namespace weir::http
