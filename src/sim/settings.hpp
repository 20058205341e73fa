// SPDX-License-Identifier: MIT
#pragma once

#include <weir/sim/explore.hpp>

namespace weir::detail {

/// The value of WEIR_SIM_SEED or WEIR_SIM_RUNS in the environment; nullopt if unset or empty.
/// Throws errc::invalid_argument if it is not a number.
std::optional<std::uint64_t> environment_number(const char* name);
/// Throws errc::invalid_argument unless `s` is valid; dfs is valid for explore only.
void check_strategy(const sim::strategy& s, const char* what, bool explore);

}  // namespace weir::detail
