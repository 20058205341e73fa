// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

namespace weir::detail {

class loop;

/// The report when none of these loops can ever continue: a cycle of fibers that wait for each
/// other, if there is one, and the trees.
std::string deadlock_text(std::span<loop* const> stuck);
/// "'a' waits on future 'b', 'b' waits on future 'a'"; empty without a cycle.
std::string waiting_cycle(std::span<loop* const> stuck);

}  // namespace weir::detail
