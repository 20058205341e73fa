// SPDX-License-Identifier: MIT
// Sums over the last so much time, in bounded memory.
#pragma once

#include <array>
#include <cstddef>

#include <weir/duration.hpp>

namespace weir::detail {

/// When a part of a window is forgotten.
enum class forgets : std::uint8_t {
  early,  // with its first entry: never more than what lies in the window
  late,   // with its last entry: never less
};

/// What was added within the last `length`, in at most `parts` parts. A part begins with its first
/// entry, so whatever is added at one instant is forgotten exactly `length` later; an entry that
/// follows within `length / parts` shares the fate of the part's first (or last) one.
///
/// Time that goes back a little (loops on several threads read their clocks on their own) counts as
/// no time at all; if it goes back by more than `length`, the window is another world's and starts
/// anew.
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
  // The oldest part may have begun just before the window: one more than `parts`.
  using ring = std::array<part, parts + 2>;

  part& at(std::size_t i) noexcept { return ring_[(oldest_ + i) % ring_.size()]; }
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
      oldest_ = (oldest_ + 1) % ring_.size();
      --count_;
    }
    return now;
  }

  duration length_;
  duration width_;
  ring ring_{};
  std::size_t oldest_ = 0;
  std::size_t count_ = 0;
  Sums total_{};
};

}  // namespace weir::detail
