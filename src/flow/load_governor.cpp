// SPDX-License-Identifier: MIT
#include <weir/governor/load.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/loop.hpp"

namespace weir {

namespace {

constexpr duration between_reads = std::chrono::seconds(1);

}  // namespace

load_governor::load_governor(const load_options& options)
    : adjusting_governor({.name = options.name, .max_waiting = options.max_waiting}),
      max_(options.max),
      max_pressure_(options.max_pressure) {
  const auto require = [&](bool good, const char* problem) {
    detail::require_governor_option(good, "load_governor", name(), problem);
  };
  require(max_ >= 1, "max is below 1, so that nothing would ever run; give 1 or more");
  require(max_ <= 0xffffffff, "max is above 4294967295; give less");
  require(max_pressure_ >= 0 && max_pressure_ <= 100,
          "max_pressure is not a percentage; give 0 to 100");
  set_limit(max_);
}

void load_governor::adjust(time_point now) noexcept {
  if (now < next_read_) return;
  next_read_ = detail::saturating_add(now, between_reads);
  const std::optional<double> pressure = detail::loop::here()->env().cpu_pressure();
  if (!pressure) return set_limit(max_);
  set_limit(*pressure > max_pressure_ ? std::max<std::int64_t>(limit_now() / 2, 1)
                                      : std::min(limit_now() + 1, max_));
}

time_point load_governor::next_change() const noexcept {
  return limit_now() < max_ ? next_read_ : time_point::max();
}

std::int64_t load_governor::limit() const noexcept {
  (void)available();  // refreshes the limit
  return limit_now();
}

}  // namespace weir
