// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <weir/local.hpp>

namespace weir::http {

/// The W3C trace context of the request that the running code works for; empty if there is none. A
/// server binds it to what the client sent, and a client passes it on.
inline const local<std::string> traceparent{""};

}  // namespace weir::http
