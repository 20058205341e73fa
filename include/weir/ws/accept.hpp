// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <weir/http/request.hpp>
#include <weir/http/response.hpp>
#include <weir/task.hpp>
#include <weir/ws/connection.hpp>
#include <weir/ws/options.hpp>

namespace weir::detail {

/// What a server does with a WebSocket connection, without its type.
class ws_handler {
 public:
  ws_handler() = default;
  ws_handler(const ws_handler&) = delete;
  ws_handler& operator=(const ws_handler&) = delete;
  virtual ~ws_handler() = default;
  virtual task<> handle(ws::connection& c) = 0;
};

template <class Fn>
class ws_handler_of final : public ws_handler {
 public:
  explicit ws_handler_of(Fn&& fn) : fn_(std::move(fn)) {}
  task<> handle(ws::connection& c) override { return fn_(c); }

 private:
  Fn fn_;
};

task<http::response> ws_accept(http::request& r, std::unique_ptr<ws_handler> handler,
                               ws::ws_options options);

}  // namespace weir::detail

namespace weir::ws {

/// The answer to a request for a WebSocket connection, for a handler to return: 101, and then
/// `fn(connection)` runs in the scope of the connection. It begins after the handler has returned,
/// so it owns what it uses, and does not use the request. A request that is not a handshake is
/// answered with 426, one that is not valid with 400. The handler may look at the request before,
/// such as at its `origin`: browsers let every page connect.
///
/// When `fn` returns, the connection is closed with 1000, and the peer's answer is awaited for at
/// most 5 s. If it throws: 1011, and the event `connection_failed`. A server that drains closes
/// with 1001, and `fn` has the drain to end.
template <class Fn>
  requires std::is_invocable_r_v<task<>, Fn&, connection&>
[[nodiscard]] task<http::response> accept(http::request& request, Fn fn, ws_options options = {}) {
  return detail::ws_accept(request, std::make_unique<detail::ws_handler_of<Fn>>(std::move(fn)),
                           options);
}

}  // namespace weir::ws
