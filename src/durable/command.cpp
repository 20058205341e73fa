// SPDX-License-Identifier: MIT
#include <weir/detail/durable/command.hpp>

#include <string>
#include <string_view>

#include <weir/detail/core/dump_line.hpp>
#include <weir/durable/patch.hpp>

#include "core/error.hpp"

namespace weir::detail {

std::string_view to_string(command_kind kind) noexcept {
  constexpr std::string_view words[] = {"nothing", "sleep", "time limit", "step",   "step_once",
                                        "call",    "send",  "awakeable",  "signal", "promise",
                                        "absorb",  "patch", "stored"};
  const auto at = static_cast<std::size_t>(kind);
  return at < std::size(words) ? words[at] : "unknown command";
}

void raise_answer(const command_answer& answer) {
  if (answer.how == command_answer::kind::cancelled) {
    cancel_reason why(cancel_kind::user, answer.text);
    raise_cancelled(why);
  }
  if (answer.code == errc::terminal) throw terminal_error(answer.text, answer.facts);
  raise(answer.code, answer.text);
}

void raise_undecodable(std::string_view what, std::string_view name) {
  try {
    throw;
  } catch (const error& e) {
    std::string text(what);
    if (!name.empty()) text.append(" '").append(name).append("'");
    if (current_run != nullptr)
      text.append(" of durable run '").append(current_run->run_id()).append("'");
    text.append(": ").append(e.what());
    text.append("; the value was written as another type than it is read as");
    raise(errc_of(e), text);
  }
}

void command_wait::describe(dump_line& line) const {
  line.add(to_string(setup_.kind)).add_name(setup_.name);
}

}  // namespace weir::detail

namespace weir {

bool patch(std::string_view id, std::source_location site) {
  detail::run_seam* const run = detail::run_outside_step("patch");
  return run == nullptr || run->patch(id, site);
}

}  // namespace weir
