// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/core/fiber.hpp>

namespace weir::detail {

/// The base frame of `f` has ended, or never began; its result is set. Runs the fiber's own defers
/// first: true if the strand continues with them. Otherwise passes the result to the scope and the
/// waiters; `f` may be destroyed by then.
bool fiber_ended(fiber& f);

}  // namespace weir::detail
