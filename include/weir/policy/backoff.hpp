// SPDX-License-Identifier: MIT
// Back-off: the delays between attempts, for retry and supervise.
#pragma once

#include <chrono>
#include <cstdint>

#include <weir/duration.hpp>

namespace weir {

/// How a delay `d` is randomised, so that callers that failed together do not retry together.
enum class jitter : std::uint8_t {
  full,          ///< uniform in [0, d)
  equal,         ///< uniform in [d / 2, d)
  decorrelated,  ///< uniform in [base, 3 x the last delay), at most the ceiling
  none,          ///< d
};

/// The delays before restarts: `base`, then `factor` times the last one, up to `ceiling`. After a
/// life of at least `reset_after` it starts again at `base`.
struct backoff {
  duration base{};
  double factor = 2;
  duration ceiling = std::chrono::seconds(30);
  weir::jitter jitter = weir::jitter::none;
  duration reset_after = unbounded;
};

}  // namespace weir

#include <weir/detail/toolkit/backoff.hpp>
