// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <utility>

#include <weir/detail/core/composite.hpp>
#include <weir/detail/core/deadline.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/duration.hpp>

namespace weir {

/// Runs `op` under a time limit. The result is what happened: ended by this limit -> timeout_error,
/// after `op` is joined; a value after the limit had passed -> the value (event `late`); an error
/// while being cancelled -> that error. `d <= 0`: timeout_error without starting.
template <class Rep, class Period, detail::operation Op>
auto with_timeout(std::chrono::duration<Rep, Period> d, Op&& op) {
  return detail::limited({detail::saturating_cast(d), {}, false}, std::forward<Op>(op));
}
/// The same with a point in time (kind `deadline`).
template <class Duration, detail::operation Op>
auto with_deadline(std::chrono::time_point<std::chrono::steady_clock, Duration> at, Op&& op) {
  return detail::limited({{}, std::chrono::time_point_cast<duration>(at), true},
                         std::forward<Op>(op));
}

/// `op | timeout(d)`: as with_timeout, as a policy.
class timeout : public detail::policy_of<timeout> {
 public:
  template <class Rep, class Period>
  explicit timeout(std::chrono::duration<Rep, Period> d) noexcept
      : length_(detail::saturating_cast(d)) {}

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return detail::run_region<T, detail::timeout_region, Op>({policy.length_, {}, false},
                                                             std::forward<Op>(op));
  }
  /// A wait under a time limit is a wait.
  template <class W>
  auto on_wait(detail::pending<W>&& wait) const {
    return with_timeout(length_, std::move(wait));
  }

 private:
  duration length_;
};

}  // namespace weir
