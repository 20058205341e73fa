// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <weir/detail/core/absorb.hpp>
#include <weir/detail/core/run_seam.hpp>
#include <weir/policy/settle.hpp>

namespace weir {

/// Returns how `op` ended as a value, even if it ended because the run was cancelled: then the
/// request is consumed and the run continues uncancelled; a second cancel is a new event. While a
/// fiber of the run is inside `absorb`, a cancel goes only to the outermost absorbed operations; if
/// it ends none of them, the run's root scope is cancelled. A cancel that arrives while an earlier
/// one is still being absorbed is the same request. Outside a durable run it is `settle`.
template <detail::operation Op>
task<outcome<detail::result_t<Op>>> absorb(Op&& op) {
  using plain = detail::held_t<Op>;
  return detail::absorb_coroutine<detail::result_t<plain>, plain>::run(std::forward<Op>(op));
}

}  // namespace weir
