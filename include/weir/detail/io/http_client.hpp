// SPDX-License-Identifier: MIT
#pragma once

namespace weir::detail {

/// What the requests of a client share. In src/io/http_client_core.hpp.
class client_core;
/// One request on one connection, until its answer was read. In src/io/http_client_exchange.hpp.
class client_exchange;

}  // namespace weir::detail
