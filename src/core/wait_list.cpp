// SPDX-License-Identifier: MIT
#include <weir/detail/core/wait_list.hpp>

#include "core/cancel_tree.hpp"
#include "core/fatal.hpp"
#include "core/home.hpp"

namespace weir::detail {

void wait_list::destroyed_too_early(const object_name& whose) const {
  std::string text = text_of(whose);
  text.append(" destroyed while fibers wait for it:");
  for (const linked_wait* w = first_; w != nullptr; w = w->next_) {
    const fiber* f = cancel_tree::fiber_of(*w->waiting_strand()->top);
    text.append(" '").append(f == nullptr || f->name == nullptr ? "unnamed" : f->name).append("'");
  }
  fatal(text);
}

}  // namespace weir::detail
