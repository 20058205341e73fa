// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>

#include "shop.hpp"

namespace shop {

/// Knows which orders wait for the answer of a person, and passes answers on. An agent: its
/// handlers run one at a time, and a supervisor starts it again when one of them fails. It has
/// forgotten everything then, and reads the ledger.
class approval_desk {
 public:
  approval_desk(back_office* office, weir::durable::engine* e);
  /// `awakeable`: where the answer goes.
  void ask(std::string order, std::string awakeable);
  /// Whether it was the first answer; empty if nobody has asked about this order.
  weir::task<std::optional<bool>> answer(std::string order, bool yes);

 private:
  back_office& office_;
  weir::durable::engine& engine_;
  std::map<std::string, std::string> awakeables_;  // by order
};

}  // namespace shop
