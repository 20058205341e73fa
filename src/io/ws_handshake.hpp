// SPDX-License-Identifier: MIT
// What both sides of a WebSocket handshake need.
#pragma once

#include <string>
#include <string_view>

#include <weir/error.hpp>

#include "core/error.hpp"
#include "io/http_head.hpp"
#include "io/http_text.hpp"

namespace weir::detail {

/// Calls `fn` with each member of a comma-separated list that is not empty.
template <class Fn>
void for_each_member(std::string_view list, Fn fn) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view member = trim_http(list.substr(0, comma));
    if (!member.empty()) fn(member);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
}

/// Throws errc::invalid_argument if a subprotocol could not be sent.
inline void check_subprotocols(std::string_view list) {
  for_each_member(list, [&](std::string_view name) {
    if (!is_http_token(name))
      raise(errc::invalid_argument,
            "ws_options: '" + std::string(name) + "' cannot be the name of a subprotocol");
  });
}

/// Whether a subprotocol, whose name has upper and lower case, is in the list of a head.
inline bool offers_subprotocol(const http_head& head, std::string_view name) {
  bool found = false;
  for (const http_field& f : head.fields)
    if (same_ignoring_case(f.name, "sec-websocket-protocol"))
      for_each_member(f.value, [&](std::string_view offered) { found = found || offered == name; });
  return found;
}

}  // namespace weir::detail
