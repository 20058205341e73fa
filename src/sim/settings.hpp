// SPDX-License-Identifier: MIT
#pragma once

#include <weir/sim.hpp>

namespace weir::detail {

/// The value of WEIR_SIM_SEED or WEIR_SIM_RUNS in the environment; anything but a number:
/// errc::invalid_argument.
std::optional<std::uint64_t> environment_number(const char* name);
/// errc::invalid_argument unless it can be used for single runs (`what`), or for explore.
void check_strategy(const sim::strategy& s, const char* what, bool explore);

}  // namespace weir::detail
