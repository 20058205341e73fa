// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include <weir/http/headers.hpp>
#include <weir/task.hpp>
#include <weir/ws/connection.hpp>
#include <weir/ws/options.hpp>

namespace weir::ws {

/// Connects to "ws://host/path" or "wss://...", and shakes hands. `fields` are sent with the
/// request, such as `authorization` or `origin`. Redirects are not followed, and there is no limit
/// of its own: use with_timeout.
///
/// A URL or a field that cannot be sent: errc::invalid_argument. A server that refuses:
/// errc::bad_data with its status; one that ends the connection: errc::end_of_stream. Otherwise as
/// io::connect and io::tls_connect.
[[nodiscard]] task<connection> connect(std::string_view url, ws_options options = {},
                                       http::headers fields = http::headers());

}  // namespace weir::ws
