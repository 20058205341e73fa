// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include <weir/detail/flow/adjusting_governor.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>

namespace weir {

struct adaptive_options {
  weir::name name{};
  std::int64_t initial = 20;
  std::int64_t min = 1;
  std::int64_t max = 200;
  std::int64_t max_waiting = unbounded;
};

namespace detail {
struct measured_permit;
}

/// Grants up to limit() permits at once, and adapts the limit to how long permits are held: it
/// grows while that time is stable and shrinks when it rises.
///
/// A *window* is max(10, 2 x limit) releases. At its end, with short_rtt the mean time of the
/// window and long_rtt an exponential mean of the windows before (weight 1/32):
///   gradient = clamp(long_rtt / short_rtt, 0.5, 1)
///   limit'   = limit x gradient, plus sqrt(limit) only at gradient 1, at most limit x 1.5
/// between `min` and `max`. A window in which the peak of held permits was below limit / 2 does not
/// change the limit: it says nothing about it.
///
/// The time is measured from when the holder receives its permit until the release, however the
/// work ended; its record comes from a free list of the governor. Threads, order and cancellation:
/// as counting_governor; a permit that is released after the home loop has ended is not measured.
/// Bad options: errc::invalid_argument.
class adaptive_governor final : public detail::adjusting_governor {
 public:
  explicit adaptive_governor(const adaptive_options& options = {});
  ~adaptive_governor() override;

  /// The number of permits that may be held at once.
  std::int64_t limit() const noexcept { return limit_now(); }

 private:
  friend struct detail::measured_permit;

  void adjust(time_point) noexcept override {}
  void granted(std::int64_t) noexcept override;
  permit make_permit(std::int64_t weight) override;

  void released(detail::measured_permit& record);
  void measured(duration held) noexcept;
  void end_window() noexcept;

  std::int64_t min_;
  std::int64_t max_;
  double limit_;          // limit() is its integral part
  double long_rtt_ = -1;  // in nanoseconds; negative: no window has ended yet
  double sum_ = 0;
  std::int64_t samples_ = 0;
  std::int64_t most_out_ = 0;                  // most permits held at once in this window
  detail::measured_permit* unused_ = nullptr;  // records of released permits
};

}  // namespace weir
