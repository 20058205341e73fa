// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/core/fiber.hpp>
#include <weir/scope.hpp>

#include "core/cancel_tree.hpp"

namespace weir::detail {

/// The base frame of `f` has ended, or never began; its result is set. Runs the fiber's own defers
/// first: true if the strand continues with them. Otherwise passes the result to the scope and the
/// waiters; `f` may be destroyed by then.
bool fiber_ended(fiber& f);

[[gnu::always_inline]] inline void cancel_tree::child_ended(scope& s, fiber& f,
                                                            const outcome_base& result) {
  if (!result.is_value() || s.reason_) [[unlikely]] {
    child_ended_badly(s, f, result);
  } else {
    f.settle_now();
  }
  if (f.background) [[unlikely]] {
    remove_service(f);
  } else {
    remove_child(s, f);
  }
  if (f.unobserved) [[unlikely]]
    add_unobserved(s, f);
  if (!f.background) [[likely]] {
    if (s.live_ == 0) {
      drained(s);
    } else if (s.size() == 0 && !f.hidden && s.joiners_ != nullptr) [[unlikely]] {
      only_streams_left(s);
    }
  }
  if (s.guided_ && s.kind_ == region_kind::scope && !f.carries)
    static_cast<guided_scope&>(s).child_gone(f);
  f.release();
}

}  // namespace weir::detail
