// SPDX-License-Identifier: MIT
#pragma once

#include <weir/context.hpp>
#include <weir/outcome.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// Pops the LIFO stack of `c`, shielded and within the grace of the nearest scope: runs each defer,
/// stops and joins each service. Defers see `how`, the outcome of the operation; their errors are
/// appended to `errors`.
task<> pop_entries(context& c, const outcome_base& how, std::vector<std::exception_ptr>& errors);

}  // namespace weir::detail
