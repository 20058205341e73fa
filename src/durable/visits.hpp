// SPDX-License-Identifier: MIT
// How many entries of long lists the engine looks at: what the tests of growth count instead of
// time.
#pragma once

#include <cstdint>

namespace weir::detail {

/// Counted wherever the engine goes through a list that grows with the number of runs, waits or
/// records. Each of these lists is to be gone through so that the sum stays linear.
inline thread_local std::uint64_t list_visits = 0;

}  // namespace weir::detail
