// SPDX-License-Identifier: MIT
// Rejects invalid options.
#pragma once

#include <cstdint>
#include <string>

#include <weir/error.hpp>

namespace weir::detail {

/// Throws errc::invalid_argument unless `good`.
inline void require_option(bool good, const char* policy, const char* problem) {
  if (!good) raise(errc::invalid_argument, std::string(policy) + ": " + problem);
}

inline void require_positive(std::int64_t value, const std::string& whose, const char* option) {
  if (value > 0) return;
  raise(errc::invalid_argument,
        whose + ": " + option + " is " + std::to_string(value) + "; give 1 or more");
}

}  // namespace weir::detail
