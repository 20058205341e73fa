// SPDX-License-Identifier: MIT
// How policies refuse bad options.
#pragma once

#include <string>

#include <weir/error.hpp>

namespace weir::detail {

/// errc::invalid_argument unless `good`.
inline void require_option(bool good, const char* policy, const char* problem) {
  if (!good) raise(errc::invalid_argument, std::string(policy) + ": " + problem);
}

}  // namespace weir::detail
