// SPDX-License-Identifier: MIT
// The handlers whose runs docs/tool.md shows, with the lines of this file.
#pragma once

#include <stdexcept>
#include <string>

#include "durable/support/stage.hpp"

namespace durable_test {

struct tool_order {
  std::string id;
  int cents = 0;
};
WEIR_DESCRIBE(tool_order, id, cents)

inline std::string last_question;

inline task<std::string> tool_invoice(tool_order o) {
  co_await weir::step("print", [] {});
  co_return "invoice " + o.id;
}

inline task<std::string> tool_checkout(tool_order o) {
  int tried = 0;
  auto charge = [&]() -> std::string {
    if (o.cents < 0) throw weir::terminal_error("card declined");
    if (o.id == "o-1" && ++tried < 2) throw std::runtime_error("connection refused");
    return "receipt " + o.id;
  };
  weir::step_options patient;
  patient.retry.jitter = weir::jitter::none;
  const std::string paid = co_await weir::step("charge", charge, patient);
  auto approval = weir::awakeable<bool>("approval");
  co_await weir::step("ask", [&] { last_question = approval.id(); });
  if (!co_await approval.wait()) co_return "refused";
  co_await weir::sleep(24h);
  co_return co_await weir::call<std::string>("invoice", o);
}

}  // namespace durable_test
