// SPDX-License-Identifier: MIT
// Cancelling a run, and the regions that absorb it.
#include "durable/run.hpp"

#include "core/cancel_tree.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

// A run that was cancelled before its start time never begins: the cancel record says so.
void durable_run::cancel_before_begin() {
  circular_buffer<completion>& past = live->replay->past.completions;
  for (std::size_t i = 0; i < past.size(); ++i)
    if (past[i].type == record_type::cancel && past[i].answer.code == cancelled_early)
      return deliver_cancel(past[i]);
}

std::vector<scope*> durable_run::outermost_absorbs() const {
  std::vector<scope*> outermost;
  if (live->tables == nullptr) return outermost;
  for (const auto& [order, s] : live->tables->absorbs.entered) {
    ++list_visits;
    bool inside = static_cast<bool>(cancel_tree::reason(*s));
    for (context* c = cancel_tree::parent(*s); c != nullptr && !inside; c = cancel_tree::parent(*c))
      inside = live->tables->absorbs.order_of.contains(c);
    if (!inside) outermost.push_back(s);
  }
  return outermost;
}

// The outermost absorbed operations get the cancellation; if there are none, the whole run does.
void durable_run::deliver_cancel(const completion& what) {
  if (live->cancelling) return;  // one is under way already
  const reason_ref reason =
      make_reason({cancel_kind::user, what.answer.text}, live->root_scope->id(), live->inner.now());
  const std::vector<scope*> outermost = outermost_absorbs();
  if (outermost.empty()) return cancel_tree::cancel(*live->root_scope, reason, false);
  live->cancelling = reason;
  live->tables->absorbs.asked.insert(outermost.begin(), outermost.end());
  live->absorbed = false;
  for (scope* s : outermost) cancel_tree::cancel(*s, reason, false);
}

// ------------------------------------------------------------------ absorb

void durable_run::enter_absorb(scope& region) {
  auto& all = live->need_tables().absorbs;
  const std::uint64_t order = ++all.last;
  all.entered.emplace_hint(all.entered.end(), order, &region);
  all.order_of.emplace(&region, order);
}

void durable_run::leave_absorb(scope& left, bool consumed) noexcept {
  if (live == nullptr) return;
  ++list_visits;
  auto& all = live->tables->absorbs;
  const auto order = all.order_of.find(&left);
  all.entered.erase(order->second);
  all.order_of.erase(order);
  if (live->evicting || all.asked.erase(&left) == 0) return;
  if (consumed) live->absorbed = true;
  if (!all.asked.empty()) return;
  const reason_ref why = std::move(live->cancelling);
  live->cancelling = reason_ref();
  if (live->absorbed) {
    (void)issue(command_kind::absorb, {}, 0, 0, std::source_location());
    return;
  }
  cancel_tree::cancel(*live->root_scope, why, false);
}

}  // namespace weir::detail
