// SPDX-License-Identifier: MIT
#include "core/spinner.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace weir::detail {

namespace {

constexpr int unknown = -1;
constexpr int several = -2;

/// The only core that was allowed so far, or one of the above.
std::atomic<int> only_core{unknown};

int core_of_this_thread() noexcept {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return several;  // a larger machine
  if (CPU_COUNT(&allowed) != 1) return several;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) return core;
  return several;
}

}  // namespace

bool several_cores() noexcept {
  int seen = only_core.load(std::memory_order_relaxed);
  if (seen == several) return true;
  const int here = core_of_this_thread();
  if (here == seen) return false;
  if (here != several && seen == unknown) {
    if (only_core.compare_exchange_strong(seen, here, std::memory_order_relaxed)) return false;
    if (seen == here) return false;
  }
  only_core.store(several, std::memory_order_relaxed);
  return true;
}

// A pause takes between 3 and 50 ns, so it is measured, once. The shortest of some measurements is
// one without an interruption.
int spinner::pauses_max() noexcept {
  static const int number = [] {
    constexpr int pauses = 64;
    auto shortest = std::chrono::nanoseconds::max();
    for (int i = 0; i < 8; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      for (int k = 0; k < pauses; ++k) pause_processor();
      shortest =
          std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begun);
    }
    constexpr std::chrono::nanoseconds trial = std::chrono::microseconds(60);
    return static_cast<int>(pauses * trial / std::max(shortest, std::chrono::nanoseconds(64)));
  }();
  return number;
}

}  // namespace weir::detail
