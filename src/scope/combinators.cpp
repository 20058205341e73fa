// SPDX-License-Identifier: MIT
#include <weir/combinators.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"

namespace weir::detail {

void arm_children::cancel_losers() { detail::cancel_losers(*scope_); }

// Results that were taken are not `value` any more; an error that was reported was observed.
void arm_children::count_unseen() {
  for (const core_ref& c : children_) {
    auto& f = static_cast<fiber&>(*c.get());
    const std::string_view name = f.name == nullptr ? scope_->name() : f.name;
    if (f.result().is_value()) loop::here()->emit("value_discarded", name, 0, scope_->id());
    if (f.result().is_error() && !f.observed)
      loop::here()->emit("suppressed", name, 0, scope_->id());
  }
}

}  // namespace weir::detail
