// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <weir/duration.hpp>
#include <weir/io/listener.hpp>
#include <weir/io/socket.hpp>
#include <weir/name.hpp>
#include <weir/task.hpp>

namespace weir::io {

struct serve_options {
  weir::name name{};
  std::int64_t max_connections = 10'000;
  duration drain = std::chrono::seconds(10);
  duration handshake_timeout = std::chrono::seconds(10);  // of TLS
};

}  // namespace weir::io

#include <weir/detail/io/serve.hpp>

namespace weir::io {

/// Runs `handler` for every connection, each in a scope of its own that is named by its peer, until
/// it is cancelled or the listener is closed; both drain. The socket is closed when its handler
/// ends. On a listener with TLS the scope shakes hands first, for at most `handshake_timeout`. An
/// error of that, or of a handler, ends that connection (event `connection_failed`). At
/// `max_connections` nothing is accepted; without descriptors accepting pauses (event
/// `accept_paused`). When it is cancelled it stops accepting, gives the connections `drain`, and
/// then cancels them.
template <class Handler>
  requires std::is_invocable_r_v<task<>, Handler&, socket&>
task<> serve(listener& l, Handler handler, serve_options options = {}) {
  return detail::serve_with(l, std::move(handler), options,
                            std::string(options.name.empty() ? "serve" : options.name.view()));
}

}  // namespace weir::io
