// SPDX-License-Identifier: MIT
// Sums over a sliding time window, in bounded memory.
#pragma once

#include <array>
#include <cstddef>

#include <weir/duration.hpp>

namespace weir::detail {

/// When a part of the window expires.
enum class forgets : std::uint8_t {
  early,  // with its first entry: the total never exceeds the exact one
  late,   // with its last entry: the total is never below the exact one
};

/// What was added within the last `length`, in parts of `length / parts` that begin with their
/// first entry. A part expires as a whole, `length` after its first (or last) entry; so entries of
/// one instant that share no part with others expire exactly after `length`.
///
/// Time that goes back a little (loops on several threads read their own clocks) counts as no time
/// at all. If it goes back by more than `length`, the clock is a different one and the window
/// restarts.
template <class Sums, forgets When>
class sliding_window {
 public:
  explicit sliding_window(duration length) noexcept
      : length_(length),
        width_(length / parts + duration(length % parts == duration::zero() ? 0 : 1)) {}

  void add(time_point now, const Sums& by) noexcept {
    now = forget_until(now);
    if (count_ == 0 || now - newest().first >= width_) {
      ++count_;
      newest() = {now, now, {}};
    }
    newest().last = now;
    newest().sums += by;
    total_ += by;
  }
  const Sums& total(time_point now) noexcept {
    forget_until(now);
    return total_;
  }
  void clear() noexcept {
    count_ = 0;
    total_ = {};
  }

 private:
  static constexpr std::size_t parts = 32;
  struct part {
    time_point first;
    time_point last;
    Sums sums;
  };
  // At most `parts` + 1 are in use, as the oldest may have begun before the window.
  using slots = std::array<part, parts + 2>;

  part& at(std::size_t i) noexcept { return slots_[(oldest_ + i) % slots_.size()]; }
  part& newest() noexcept { return at(count_ - 1); }
  time_point forget_until(time_point now) noexcept {
    if (count_ == 0) return now;
    if (now < newest().last) {
      if (newest().last - now > length_) clear();
      return count_ == 0 ? now : newest().last;
    }
    while (count_ > 0) {
      const part& p = at(0);
      if (now - (When == forgets::early ? p.first : p.last) < length_) break;
      total_ -= p.sums;
      oldest_ = (oldest_ + 1) % slots_.size();
      --count_;
    }
    return now;
  }

  duration length_;
  duration width_;
  slots slots_{};
  std::size_t oldest_ = 0;
  std::size_t count_ = 0;
  Sums total_{};
};

}  // namespace weir::detail
