// SPDX-License-Identifier: MIT
#include <ostream>
#include <string>

#include <weir/future.hpp>

#include "core/cancel_tree.hpp"
#include "core/dump_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

namespace {

void print_link(std::ostream& out, const cancel_reason& link, const char* before) {
  out << before << to_string(link.kind);
  if (!link.message.empty()) out << ": " << link.message;
  if (!link.scope_name.empty()) out << ", in scope '" << link.scope_name << "'";
  out << " (#" << link.source << ")";
  const auto at = std::chrono::duration<double>(link.when.time_since_epoch()).count();
  out << ", at " << at << " s\n";
  if (link.cause == nullptr) return;
  std::string cause = describe(link.cause);
  for (std::size_t end = cause.find('\n'); end + 1 < cause.size(); end = cause.find('\n', end + 1))
    cause.insert(end + 1, "    ");
  out << "    because of " << cause;
}

}  // namespace

void print_why(std::ostream& out, future_core* core) {
  if (core == nullptr) return void(out << "an empty future\n");
  require_future_home(*core);
  const auto* f = dynamic_cast<const fiber*>(core);
  const reason_ref none;
  const reason_ref& reason = core->result().is_cancelled() ? core->result().reason_reference()
                             : f != nullptr                ? cancel_tree::reason(*f)
                                                           : none;
  std::string name = f == nullptr || f->name == nullptr ? "" : " '" + std::string(f->name) + "'";
  if (!reason) {
    out << "fiber" << name << " was not cancelled\n";
  } else {
    out << "fiber" << name << " was cancelled:\n";
    const char* before = "  asked by ";
    for (const cancel_reason& link : reason->chain()) {
      print_link(out, link, before);
      before = "  through ";
    }
  }
  if (f == nullptr || f->ended) return;
  std::string text;
  describe_fiber(text, *f, 1);
  out << "it has not ended yet:\n" << text;
}

}  // namespace weir::detail
