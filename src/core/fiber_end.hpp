// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/fiber.hpp>

namespace weir::detail {

/// The base frame of `f` has ended, or never began; its result is set. Runs the fiber's own defers
/// first: true if the strand goes on with them. Otherwise hands the result to the scope and to
/// whoever waits; `f` may be gone afterwards.
bool fiber_ended(fiber& f);

}  // namespace weir::detail
