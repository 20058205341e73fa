// SPDX-License-Identifier: MIT
#pragma once

#include "shop.hpp"

namespace shop {

/// Approves expensive orders, and hears customers who have changed their minds. An agent: its
/// handlers run one at a time, and a supervisor starts it again when one of them fails.
class approval_desk {
 public:
  approval_desk(back_office* office, weir::durable::engine* e);
  void review(approval_request request);
  weir::task<> decide(approval_request request, story s);

 private:
  back_office& office_;
  weir::durable::engine& engine_;
};

}  // namespace shop
