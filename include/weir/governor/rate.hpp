// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <weir/detail/flow/adjusting_governor.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>
#include <weir/policy/bulkhead.hpp>

namespace weir {

struct rate_options {
  weir::name name{};
  double per_second = 1;   ///< permits per second; may be less than one
  std::int64_t burst = 1;  ///< permits that may accumulate, 1 or more
  std::int64_t max_waiting = unbounded;
};

/// A token bucket: grants `per_second` permits per second, and up to `burst` unused ones at once.
/// It starts full. Releasing a permit returns no token; active() counts permits not released yet.
///
/// The n-th permit after the bucket was full is due at an exact time of the loop's clock, so
/// rounding errors do not add up. Only the first waiter has a timer. Threads, order and
/// cancellation: as counting_governor; a permit that was granted to a waiter and not taken because
/// of a cancellation is not spent. Bad options: errc::invalid_argument.
class rate_governor final : public detail::adjusting_governor,
                            public detail::governor_facade<rate_governor> {
 public:
  explicit rate_governor(const rate_options& options);

  /// Waits for `weight` permits; more than `burst` can never be granted: errc::invalid_argument.
  detail::pending<detail::adjusted_wait> acquire(std::int64_t weight = 1);
  std::optional<permit> try_acquire(std::int64_t weight = 1);
  /// acquire_for(d, weight = 1): as acquire, for at most `d`: timeout_error.
  using detail::governor_facade<rate_governor>::acquire_for;
  using detail::governor_facade<rate_governor>::with;
  using detail::governor_facade<rate_governor>::wrap;
  using detail::adjusting_governor::on_idle;

 private:
  void adjust(time_point now) noexcept override;
  void granted(std::int64_t weight) noexcept override { spent_ += weight; }
  void untaken(std::int64_t weight) noexcept override { spent_ -= weight; }
  void give_back(std::int64_t weight) override;
  time_point next_change() const noexcept override { return due(first_weight()); }
  void clock_changed(time_point now) noexcept override;
  void describe(detail::dump_line& line) const override;

  void require_weight(std::int64_t weight) const;
  /// When this many permits have been refilled since the bucket was full.
  time_point refilled(std::int64_t permits) const noexcept;
  /// When `weight` permits are available, if none are granted before.
  time_point due(std::int64_t weight) const noexcept { return refilled(spent_ + weight - burst_); }

  double per_second_;
  std::int64_t burst_;
  time_point full_at_{};    // a time at which the bucket was full
  std::int64_t spent_ = 0;  // permits granted since
};

template <>
struct detail::rate_of<rate_governor> {
  static std::shared_ptr<rate_governor> make(std::int64_t n, duration per);
};

}  // namespace weir
