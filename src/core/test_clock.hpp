// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <weir/test_clock.hpp>

#include "core/environment.hpp"

namespace weir::detail {

std::unique_ptr<environment> make_test_clock_environment(test_clock& clock);

}  // namespace weir::detail
