// SPDX-License-Identifier: MIT
// The machinery of <weir/sim/sim_disk.hpp>.
#pragma once

#include <cstdint>

#include <weir/duration.hpp>
#include <weir/sim/disk.hpp>

namespace weir {

namespace detail {

class disk_state;

/// What a simulated disk needs from its simulation.
class disk_host {
 public:
  disk_host(const disk_host&) = delete;
  disk_host& operator=(const disk_host&) = delete;

  /// True with this probability; called only for rates above 0.
  virtual bool chance(double rate) = 0;
  /// A random number from 0 to n - 1.
  virtual std::uint64_t below(std::uint64_t n) = 0;
  /// The calling simulated loop; 0 outside all loops.
  virtual std::uint32_t owner() const noexcept = 0;
  /// The caller is being destroyed by a crash: every disk call is a no-op.
  virtual bool dead() const noexcept = 0;

 protected:
  disk_host() = default;
  ~disk_host() = default;
};

}  // namespace detail
}  // namespace weir
