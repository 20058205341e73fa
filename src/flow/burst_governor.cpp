// SPDX-License-Identifier: MIT
#include <weir/governor/burst.hpp>

namespace weir {

burst_governor::burst_governor(const burst_options& options)
    : adjusting_governor({.name = options.name, .max_waiting = options.max_waiting}),
      steady_(options.steady),
      burst_(options.burst),
      burst_for_(options.burst_for) {
  const auto require = [&](bool good, const char* problem) {
    detail::require_governor_option(good, "burst_governor", name(), problem);
  };
  require(steady_ >= 1, "steady is below 1, so that nothing would ever run; give 1 or more");
  require(burst_ >= steady_, "burst is below steady; give as much or more");
  require(burst_ <= 0xffffffff, "burst is above 4294967295; give less");
  require(burst_for_ > duration::zero(), "burst_for is not positive; give the length of a burst");
  set_limit(burst_);
}

// A burst begins with the first permit after a rest; until then its end is moved forward.
void burst_governor::adjust(time_point now) noexcept {
  if (active() == 0 && now >= detail::saturating_add(idle_since_, burst_for_))
    burst_until_ = detail::saturating_add(now, burst_for_);
  set_limit(now < burst_until_ ? burst_ : steady_);
}

void burst_governor::granted(std::int64_t) noexcept { idle_since_ = time_point::max(); }

// If this was the last permit, the rest begins now, before any waiter is granted.
void burst_governor::give_back(std::int64_t weight) {
  if (active() == weight) idle_since_ = time();
  adjusting_governor::give_back(weight);
}

std::int64_t burst_governor::limit() const noexcept {
  (void)available();  // refreshes the limit
  return limit_now();
}

// The rest so far cannot be measured on the new clock: it starts again now.
void burst_governor::clock_changed(time_point now) noexcept {
  if (active() == 0) idle_since_ = now;
  burst_until_ = time_point::min();
}

}  // namespace weir
