// SPDX-License-Identifier: MIT
// The stock of the shop: a durable object with one shelf for each item.
#pragma once

#include <string>
#include <vector>

#include "shop.hpp"

namespace shop {

/// What is stored for an item, which is the key of the object.
struct shelf {
  int left = 100;
  std::vector<std::string> reserved;  ///< the orders that a piece was put aside for
};
WEIR_DESCRIBE(shelf, left, reserved)

/// Adds the object `stock`, with these handlers:
///
///   stock/reserve   puts a piece aside for an order; "sold out" if there is none
///   stock/release   puts it back; nothing happens if the order has none
///   stock/hand_out  the piece of an order has left the house
///   stock/deliver   so many more have arrived
///   stock/level     how many are left: shared, so it waits for nobody
void add_stock(weir::durable::engine& e, back_office& office);

}  // namespace shop
