// SPDX-License-Identifier: MIT
// The HTTP face of the shop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weir/http.hpp>

#include "shop.hpp"

namespace shop {

/// What happened to an order once; the answer of GET /orders/{id} has a list of them.
struct happening {
  std::int64_t at_ms = 0;
  int process = 0;
  std::string what;
  std::string detail;
};
WEIR_DESCRIBE(happening, at_ms, process, what, detail)

struct order_status {
  std::string id;
  std::string state;  ///< of its run: completed, failed and cancelled are final
  std::vector<happening> happened;
};
WEIR_DESCRIBE(order_status, id, state, happened)

/// The routes. All that they use outlives the server.
///
///   GET    /                the page
///   POST   /orders          an order as JSON; one with a known id is that order, not another one
///   GET    /orders/{id}     its state, and what happened to it
///   DELETE /orders/{id}     the customer has changed his mind: ?why=...
///   POST   /approvals/{id}  {"approved": true}: a person answers
///   GET    /stock/{item}    how many are left, as JSON
///   GET    /events          what happens, as server-sent events: first what is known, then the
///   news
weir::http::router front(back_office& office, weir::durable::engine& e);

/// Shows orders moving.
std::string_view page();

}  // namespace shop
