// SPDX-License-Identifier: MIT
// Counts the visited entries of the engine's long lists: tests of growth use it instead of time.
#pragma once

#include <cstdint>

namespace weir::detail {

/// Incremented in the walks over lists that grow with the number of runs, waits or records and that
/// must stay linear in sum.
inline thread_local std::uint64_t list_visits = 0;

}  // namespace weir::detail
