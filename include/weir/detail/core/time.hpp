// SPDX-License-Identifier: MIT
// The machinery of <weir/time.hpp>.
#pragma once

#include <cstdint>

#include <weir/detail/core/timer.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/duration.hpp>

namespace weir {

namespace detail {

/// Waits for a point in time, which it keeps when it is restarted after a withdrawal.
class sleep_wait : public simple_wait<sleep_wait, local_wait>, public timer_node {
 public:
  /// Absolute nanoseconds, or a length from the start, with the highest bit set.
  using args = std::uint64_t;
  using result = void;
  static constexpr std::uint64_t relative = std::uint64_t{1} << 63;

  explicit sleep_wait(std::uint64_t&& time) noexcept { when = time; }
  bool try_now() const noexcept { return false; }
  void arm();
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void take() const noexcept {}
  void fired() noexcept { complete(); }
};

void fire_sleep(timer_node& due) noexcept;

/// Moves the strand to the back of the ready queue.
class yield_wait : public simple_wait<yield_wait, local_wait> {
 public:
  struct args {};
  using result = void;
  explicit yield_wait(args&&) noexcept {}
  bool try_now() const noexcept { return false; }
  static constexpr bool gives_way = true;  // it gives up the turn by itself
  void arm() noexcept { complete(); }
  cancel_result withdraw() noexcept override { return cancel_result::done; }
  void describe(dump_line& line) const override;
  void take() const noexcept {}
};

/// Ready at once, unless the fiber is cancelled or a deadline around it has passed.
class checkpoint_wait : public simple_wait<checkpoint_wait, local_wait> {
 public:
  struct args {};
  using result = void;
  explicit checkpoint_wait(args&&) noexcept {}
  bool try_now() noexcept;
  void arm() noexcept { complete(); }
  cancel_result withdraw() noexcept override { return cancel_result::done; }
  void describe(dump_line& line) const override;
  void take() const noexcept {}
};

pending<sleep_wait> make_sleep(duration length);
pending<sleep_wait> make_sleep_until(time_point at);

}  // namespace detail
}  // namespace weir
