// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <weir/detail/flow/adjusting_governor.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>

namespace weir {

struct burst_options {
  weir::name name{};
  std::int64_t steady = 1;  ///< permits at once, 1 or more
  std::int64_t burst = 1;   ///< permits at once in a burst, `steady` or more
  duration burst_for{};     ///< length of a burst, and of the idle time before it
  std::int64_t max_waiting = unbounded;
};

/// Grants up to `burst` permits at once for `burst_for` after nothing was active for `burst_for`,
/// then up to `steady`. It starts ready for a burst. Permits held when a burst ends stay valid.
///
/// Threads, order and cancellation: as counting_governor. Bad options: errc::invalid_argument.
class burst_governor final : public detail::adjusting_governor {
 public:
  explicit burst_governor(const burst_options& options);

  /// The number of permits that may be held at once, as of now.
  std::int64_t limit() const noexcept;

 private:
  void adjust(time_point now) noexcept override;
  void granted(std::int64_t weight) noexcept override;
  void give_back(std::int64_t weight) override;
  void clock_changed(time_point now) noexcept override;

  std::int64_t steady_;
  std::int64_t burst_;
  duration burst_for_;
  time_point idle_since_ = time_point::min();  // max(): something is active
  time_point burst_until_ = time_point::min();
};

}  // namespace weir
