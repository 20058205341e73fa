// SPDX-License-Identifier: MIT
// What travels through the shop. Everything that the journal keeps, and that goes over HTTP, is
// described, so that it can be stored and sent as JSON.
#pragma once

#include <chrono>
#include <string>

#include <weir/durable/serde.hpp>

namespace shop {

using std::chrono::milliseconds;

struct order {
  std::string id;  ///< the customer's choice: the same id again is the same order
  std::string item;
  int cents = 0;
  std::string card = "valid";                     ///< an "expired" one is declined
  milliseconds patience = std::chrono::hours(1);  ///< how long the customer waits for an approval
  milliseconds packing{};                         ///< how long the shop takes for it
};
WEIR_DESCRIBE(order, id, item, cents, card, patience, packing)

/// What a payment provider says. A declined card is an answer too: the provider works.
struct authorization {
  std::string provider;
  bool accepted = false;
};
WEIR_DESCRIBE(authorization, provider, accepted)

struct receipt {
  std::string order;
  std::string provider;
  bool shipped = false;  ///< false: the approval was refused, and everything is undone
};
WEIR_DESCRIBE(receipt, order, provider, shipped)

/// Orders above this need the approval of a person.
constexpr int approval_above_cents = 50'000;

/// What a person answers.
struct decision {
  bool approved = false;
};
WEIR_DESCRIBE(decision, approved)

/// What happened to an order, for all who want to know; nothing depends on it.
struct news {
  std::string order;
  std::string what;
  std::string detail;
};
WEIR_DESCRIBE(news, order, what, detail)

}  // namespace shop
