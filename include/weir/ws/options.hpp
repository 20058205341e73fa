// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <weir/duration.hpp>
#include <weir/io/tls.hpp>

namespace weir::ws {

struct ws_options {
  std::int64_t max_message = std::int64_t{1} << 20;  ///< bytes of a received message; 1 or more
  /// How often the peer is pinged. One from which nothing has come for twice as long is gone.
  duration ping_every = std::chrono::seconds(20);
  /// Comma-separated, the preferred one first: those that a client offers, or a server accepts.
  std::string_view subprotocol{};
  io::tls_options tls{};  ///< of a client, for wss; `alpn` is http/1.1 unless set
};
static_assert(std::is_trivially_destructible_v<ws_options>);

}  // namespace weir::ws
