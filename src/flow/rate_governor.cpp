// SPDX-License-Identifier: MIT
#include <weir/governor/rate.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir {

namespace {

constexpr double second = 1e9;  // in nanoseconds

}  // namespace

rate_governor::rate_governor(const rate_options& options)
    : adjusting_governor({.name = options.name, .max_waiting = options.max_waiting}),
      per_second_(options.per_second),
      burst_(options.burst) {
  const auto require = [&](bool good, const char* problem) {
    detail::require_governor_option(good, "rate_governor", name(), problem);
  };
  require(std::isfinite(per_second_) && per_second_ > 0,
          "per_second is not positive; give the number of permits in a second");
  require(burst_ >= 1, "burst is below 1, so that nothing would ever run; give 1 or more");
  require(burst_ <= 0xffffffff, "burst is above 4294967295; give less");
  set_free(burst_);
}

time_point rate_governor::refilled(std::int64_t permits) const noexcept {
  if (permits <= 0) return full_at_;
  const double after = std::ceil(static_cast<double>(permits) * second / per_second_);
  if (after >= 9.2e18) return time_point::max();
  return detail::saturating_add(full_at_, duration(static_cast<std::int64_t>(after)));
}

// At the exact instant the bucket is full, the count continues from where it began; otherwise
// rounding errors would accumulate. Free permits are computed with the same due() as the alarm's
// time, so the waiter woken then is granted.
void rate_governor::adjust(time_point now) noexcept {
  if (now > refilled(spent_)) {
    full_at_ = now;
    spent_ = 0;
    return set_free(burst_);
  }
  const double passed = static_cast<double>((now - full_at_).count());
  auto free = burst_ - spent_ + static_cast<std::int64_t>(passed * per_second_ / second);
  while (free < burst_ && now >= due(free + 1)) ++free;
  while (free > 0 && now < due(free)) --free;
  set_free(std::clamp<std::int64_t>(free, 0, burst_));
}

// A release frees nothing: permits come back only with time.
void rate_governor::give_back(std::int64_t weight) {
  set_free(limit_now() - active() - weight);
  adjusting_governor::give_back(weight);
}

// The permits in the bucket are kept.
void rate_governor::clock_changed(time_point now) noexcept {
  full_at_ = now;
  spent_ = burst_ - (limit_now() - active());
}

void rate_governor::require_weight(std::int64_t weight) const {
  if (weight <= burst_) return;
  detail::raise(errc::invalid_argument, detail::text_of({"rate_governor", name()})
                                            .append(": ")
                                            .append(std::to_string(weight))
                                            .append(" permits at once are more than its burst of ")
                                            .append(std::to_string(burst_))
                                            .append("; ask for fewer or raise burst"));
}

detail::pending<detail::adjusted_wait> rate_governor::acquire(std::int64_t weight) {
  require_weight(weight);
  return acquire_units(weight);
}

std::optional<permit> rate_governor::try_acquire(std::int64_t weight) {
  require_weight(weight);
  return try_acquire_units(weight);
}

void rate_governor::describe(detail::dump_line& line) const {
  line.add("acquire of governor").add_name(name());
  const duration left = anybody_waits() ? due(first_weight()) - time() : duration::zero();
  const auto wait_ms = std::max<std::int64_t>(left.count(), 0) / 1'000'000;
  line.add(" (the next in ").add(static_cast<std::uint64_t>(wait_ms)).add(" ms)");
}

std::shared_ptr<rate_governor> detail::rate_of<rate_governor>::make(std::int64_t n, duration per) {
  if (n < 1 || per <= duration::zero())
    raise(errc::invalid_argument, "rate_limit: " + std::to_string(n) + " in " +
                                      std::to_string(per.count()) +
                                      " ns lets nothing run; give a number and a time above 0");
  return std::make_shared<rate_governor>(
      rate_options{.name = "rate_limit",
                   .per_second = static_cast<double>(n) * second / static_cast<double>(per.count()),
                   .burst = n});
}

}  // namespace weir
