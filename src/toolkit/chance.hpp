// SPDX-License-Identifier: MIT
// Chance, from the random numbers of the running loop.
#pragma once

#include <cstdint>

#include <weir/time.hpp>

namespace weir::detail {

/// Uniform in [0, n): the high half of a product, whose bias is below n / 2^64.
inline std::uint64_t random_below(std::uint64_t n) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(weir::random()) * n >> 64);
}

/// True with this probability; nothing is drawn where there is nothing to decide.
inline bool happens(double rate) {
  if (rate <= 0) return false;
  if (rate >= 1) return true;
  return static_cast<double>(weir::random() >> 11) * 0x1p-53 < rate;
}

}  // namespace weir::detail
