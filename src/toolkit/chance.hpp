// SPDX-License-Identifier: MIT
// Random decisions, from the random numbers of the running loop.
#pragma once

#include <cstdint>

#include <weir/time.hpp>

namespace weir::detail {

/// Uniform in [0, n): the high half of a product, with a bias below n / 2^64.
inline std::uint64_t random_below(std::uint64_t n) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(weir::random()) * n >> 64);
}

/// True with this probability; rates of 0 and 1 draw no random number.
inline bool happens(double rate) {
  if (rate <= 0) return false;
  if (rate >= 1) return true;
  return static_cast<double>(weir::random() >> 11) * 0x1p-53 < rate;
}

}  // namespace weir::detail
