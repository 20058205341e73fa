// SPDX-License-Identifier: MIT
#include <weir/time.hpp>

#include <algorithm>

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

namespace {

/// Throws unless timers can wake the caller: it needs a fiber and a loop.
void require_timers(const char* what) {
  if (current != nullptr && loop::here() == nullptr) raise_nothing_wakes();
  require_fiber(what);
}

}  // namespace

void sleep_wait::arm() {
  if (loop::here() == nullptr) raise_nothing_wakes();
  loop& here = *loop::here();
  const std::uint64_t now = ticks(here.now());
  if ((when & relative) != 0) {
    const std::uint64_t length = when & ~relative;
    when = std::min(now + length, ticks(time_point::max()));
    if (length == 0) return complete();
  }
  if (when <= now) return complete();
  here.arm_timer(*this, when);
}

cancel_result sleep_wait::withdraw() noexcept {
  if (armed()) loop::here()->cancel_timer(*this);
  return cancel_result::done;
}

void sleep_wait::describe(dump_line& line) const {
  line.add("sleep");
  if (!armed()) return;
  const std::uint64_t now = ticks(loop::here()->now());
  line.add(", ").add((std::max(when, now) - now) / 1'000'000).add(" ms left");
}

void fire_sleep(timer_node& due) noexcept { static_cast<sleep_wait&>(due).fired(); }

void yield_wait::describe(dump_line& line) const { line.add("yield"); }
void checkpoint_wait::describe(dump_line& line) const { line.add("checkpoint"); }

bool checkpoint_wait::try_now() noexcept {
  strand& s = *current;
  cancel_tree::expire_passed(s);
  if (!cancel_tree::cancelled(s)) return true;
  s.budget = -1;
  return false;
}

pending<sleep_wait> make_sleep(duration length) {
  require_timers("sleep");
  const auto ns = length > duration::zero() ? static_cast<std::uint64_t>(length.count()) : 0;
  return pending<sleep_wait>(sleep_wait::relative | ns);
}
pending<sleep_wait> make_sleep_until(time_point at) {
  require_timers("sleep_until");
  return pending<sleep_wait>(ticks(at));
}

}  // namespace detail

detail::pending<detail::yield_wait> yield() {
  detail::require_fiber("yield");
  return detail::pending<detail::yield_wait>({});
}
detail::pending<detail::checkpoint_wait> checkpoint() {
  detail::require_fiber("checkpoint");
  return detail::pending<detail::checkpoint_wait>({});
}

time_point now() { return detail::require_fiber("now").now(); }
wall_time wall_now() { return detail::require_fiber("wall_now").env().wall_now(); }
std::uint64_t random() { return detail::require_fiber("random").env().random(); }

std::string uuid() {
  detail::environment& env = detail::require_fiber("uuid").env();
  std::uint64_t high = env.random();
  std::uint64_t low = env.random();
  high = (high & 0xffffffffffff0fffU) | 0x4000U;            // version 4
  low = (low & 0x3fffffffffffffffU) | 0x8000000000000000U;  // the RFC's variant
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text.push_back('-');
    const std::uint64_t half = i < 16 ? high : low;
    text.push_back(digits[half >> (60 - 4 * (i % 16)) & 0xfU]);
  }
  return text;
}

}  // namespace weir
