// SPDX-License-Identifier: MIT
#include <weir/policy/backoff.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <weir/error.hpp>

#include "toolkit/chance.hpp"
#include "toolkit/option.hpp"

namespace weir::detail {

namespace {

duration at_most(double ns, duration ceiling) noexcept {
  if (ns >= static_cast<double>(ceiling.count())) return ceiling;
  return duration(std::llround(ns));
}

duration between(duration low, duration high) {
  if (high <= low) return low;
  return low + duration(static_cast<std::int64_t>(
                   random_below(static_cast<std::uint64_t>((high - low).count()))));
}

}  // namespace

void delay_rules::check(const char* policy) const {
  require_option(base >= duration::zero(), policy, "base is negative; give 0 or more");
  require_option(factor >= 1 && std::isfinite(factor), policy,
                 "factor is not a number from 1 on, and delays must not shrink");
  require_option(ceiling >= duration::zero(), policy, "ceiling is negative; give 0 or more");
}

duration delay_sequence::next(const delay_rules& rules) {
  const bool first = !begun_;
  begun_ = true;
  if (rules.how == jitter::decorrelated) {
    // Up to three times the previous delay; the first time, three times the base.
    const double widest = 3 * static_cast<double>((first ? rules.base : last_).count());
    last_ = std::min(rules.ceiling, between(rules.base, at_most(widest, duration::max())));
    return last_;
  }
  planned_ns_ = first ? static_cast<double>(rules.base.count()) : planned_ns_ * rules.factor;
  const duration planned = at_most(planned_ns_, rules.ceiling);
  switch (rules.how) {
    case jitter::full:
      return between(duration::zero(), planned);
    case jitter::equal:
      return between(planned / 2, planned);
    default:
      return planned;
  }
}

void delay_sequence::skip(const delay_rules& rules, std::int64_t n) {
  constexpr std::int64_t draws_max = 64;  // a random walk has forgotten its start by then
  if (n <= 0) return;
  if (rules.how == jitter::decorrelated) {
    for (std::int64_t i = 0; i < std::min(n, draws_max); ++i) (void)next(rules);
    return;
  }
  const auto base = static_cast<double>(rules.base.count());
  begun_ = true;
  planned_ns_ = base == 0 ? 0 : base * std::pow(rules.factor, static_cast<double>(n - 1));
}

}  // namespace weir::detail
