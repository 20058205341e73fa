// SPDX-License-Identifier: MIT
#include <weir/policy/retry_budget.hpp>

#include <chrono>
#include <cmath>
#include <string>

#include "toolkit/budget_core.hpp"
#include "toolkit/option.hpp"

namespace weir {

namespace detail {

namespace {

// Products of decimal fractions may be slightly below the intended whole number.
constexpr double rounding = 1e-9;

}  // namespace

budget_core::budget_core(const retry_budget_options& options)
    : ratio_(options.ratio),
      reserve_(options.min_per_second * std::chrono::duration<double>(options.window).count()),
      firsts_(options.window),
      granted_(options.window) {}

void budget_core::first_attempt(time_point now) {
  require_here();
  const std::lock_guard lock(mutex_);
  firsts_.add(now, 1);
}

bool budget_core::grants(time_point now) {
  require_here();
  const std::lock_guard lock(mutex_);
  const double limit = ratio_ * static_cast<double>(firsts_.total(now)) + reserve_;
  if (static_cast<double>(granted_.total(now) + 1) > limit + rounding) return false;
  granted_.add(now, 1);
  return true;
}

std::shared_ptr<budget_core> core_of(const retry_budget* budget) {
  return budget == nullptr ? nullptr : budget->core();
}

}  // namespace detail

retry_budget::retry_budget(retry_budget_options options) {
  detail::require_option(options.ratio >= 0 && std::isfinite(options.ratio), "retry_budget",
                         "ratio is not a number from 0 on");
  detail::require_option(options.min_per_second >= 0 && std::isfinite(options.min_per_second),
                         "retry_budget", "min_per_second is not a number from 0 on");
  detail::require_option(options.window > duration::zero(), "retry_budget",
                         "window is not positive; give it a length");
  core_ = std::make_shared<detail::budget_core>(options);
}

retry_budget::~retry_budget() = default;

}  // namespace weir
