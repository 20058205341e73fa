// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/core/wait.hpp>
#include <weir/duration.hpp>
#include <weir/time.hpp>

namespace weir::detail {

/// Calls its owner at a point in time, on the loop that it was set on. Setting it again replaces
/// the time. Allocates nothing.
///
/// A sleep that no strand is parked on: the only arm of a composite wait. It fires with the waits
/// of its instant, before the time limits, so what it grants wins over a timeout.
class alarm : private composite {
 public:
  alarm() noexcept;
  void set(time_point at) noexcept;
  void cancel() noexcept;

 protected:
  ~alarm() = default;

 private:
  virtual void rang() noexcept = 0;

  void arm_completed(arm_link& arm) noexcept final;
  bool poll() final { return false; }
  void link() final {}
  cancel_result withdraw() noexcept final;
  void describe(dump_line& line) const final;

  arm_link link_;
  sleep_wait sleep_{0};
};

}  // namespace weir::detail
