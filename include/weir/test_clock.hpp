// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <weir/duration.hpp>

namespace weir {

namespace detail {
struct test_clock_state;
}

/// A manually advanced clock for a real loop: `weir::run({.clock = &clock}, op)`.
///
/// `advance` may be called by the program or by another thread and returns at once; the clock then
/// moves timer by timer, each when nothing is ready, and directly to the target if no timer is due
/// before it.
class test_clock {
 public:
  test_clock();
  test_clock(const test_clock&) = delete;
  test_clock& operator=(const test_clock&) = delete;
  ~test_clock();

  /// Advances by `d`; a negative `d` is errc::invalid_argument.
  void advance(duration d);
  /// Whether the clock jumps to the next timer whenever nothing is ready.
  void auto_advance(bool on);
  /// Sets the wall clock (weir::wall_now) forward, or back by a negative `d`; `now` is not
  /// affected.
  void shift_wall_clock(duration d);
  time_point now() const;

  detail::test_clock_state& state() noexcept { return *state_; }

 private:
  std::shared_ptr<detail::test_clock_state> state_;
};

}  // namespace weir
