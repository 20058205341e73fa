// SPDX-License-Identifier: MIT
#include <weir/combinators.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

void arm_children::cancel_losers(rule decided) {
  detail::cancel_losers(
      *scope_, decided == rule::all ? cancel_kind::sibling_failed : cancel_kind::race_lost);
}

std::source_location caller_site() noexcept {
  const frame* awaiting = current->leaf->parent;
  return awaiting == nullptr ? current->leaf->function : awaiting->awaiting;
}

std::exception_ptr arm_children::cause_of(const std::exception_ptr& error) {
  return cancel_tree::cause_of(*scope_, error, scope_->name());
}

// A result that was taken is no longer a `value`; an error that was reported is `observed`.
void emit_unseen(fiber& f, const scope& s) {
  const std::string_view name = f.name == nullptr ? s.name() : f.name;
  if (f.result().is_value()) loop::here()->emit("value_discarded", name, 0, s.id());
  if (f.result().is_error() && !f.observed)
    loop::here()->emit("suppressed", name, 0, s.id(), f.result().error());
}

void arm_children::count_unseen() {
  for (const core_ref& c : children_) emit_unseen(static_cast<fiber&>(*c.get()), *scope_);
}

}  // namespace weir::detail
