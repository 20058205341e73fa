// SPDX-License-Identifier: MIT
#pragma once

#include <weir/context.hpp>
#include <weir/outcome.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// Pops the LIFO stack of `c`: runs each defer, stops and joins each service, shielded, within the
/// grace of the nearest scope. `how` is how the operation ended, for the defers; their errors are
/// added to `errors`.
task<> pop_entries(context& c, const outcome_base& how, std::vector<std::exception_ptr>& errors);

}  // namespace weir::detail
