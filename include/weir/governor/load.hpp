// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <weir/detail/flow/adjusting_governor.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>

namespace weir {

struct load_options {
  weir::name name{};
  std::int64_t max = 1;      ///< permits at once on a machine that is not loaded, 1 or more
  double max_pressure = 20;  ///< percentage of the last ten seconds in which work waited for a core
  std::int64_t max_waiting = unbounded;
};

/// Grants up to limit() permits at once. The limit starts at `max`; it is halved, but never below
/// 1, while the machine's CPU pressure (Linux PSI, `some avg10`) is above `max_pressure`, and grows
/// by 1 while it is not.
///
/// The pressure is read through the loop's environment at most once a second, and only when the
/// governor is used (acquire, release, `limit`, `available`) or a request waits. Where the system
/// has no PSI the limit is always `max`. Threads, order and cancellation: as counting_governor. Bad
/// options: errc::invalid_argument.
class load_governor final : public detail::adjusting_governor {
 public:
  explicit load_governor(const load_options& options);

  /// The number of permits that may be held at once, as of now.
  std::int64_t limit() const noexcept;

 private:
  void adjust(time_point now) noexcept override;
  time_point next_change() const noexcept override;
  void clock_changed(time_point now) noexcept override { next_read_ = now; }

  std::int64_t max_;
  double max_pressure_;
  time_point next_read_ = time_point::min();
};

}  // namespace weir
