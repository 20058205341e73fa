// SPDX-License-Identifier: MIT
#include <weir/policy/supervise.hpp>

#include <algorithm>
#include <limits>
#include <string>

#include <weir/detail/toolkit/policy_event.hpp>

#include "core/loop.hpp"
#include "toolkit/option.hpp"

namespace weir {

namespace {

std::string limit_text(std::string_view who, std::int64_t max_restarts, duration within,
                       std::size_t failures) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(within).count();
  std::string text("restart limit of ");
  text.append(who).append(": ").append(std::to_string(failures)).append(" failures within ");
  text.append(std::to_string(ms)).append(" ms, and only ").append(std::to_string(max_restarts));
  return text.append(" restarts are allowed; look at errors(), or raise max_restarts");
}

}  // namespace

restart_limit_error::restart_limit_error(std::string_view who, std::int64_t max_restarts,
                                         duration within, std::vector<std::exception_ptr> errors)
    // Not moved: arguments are evaluated in unspecified order, and size() is called in another.
    : error_group(errc::restart_limit, limit_text(who, max_restarts, within, errors.size()),
                  errors) {}

namespace detail {

namespace {

delay_rules rules_of(const backoff& b) { return {b.base, b.factor, b.ceiling, b.jitter}; }

}  // namespace

void check_options(const supervise_options& options) {
  require_option(options.max_restarts >= 0, "supervise",
                 "max_restarts is negative; give 0 or more, or unbounded");
  require_option(options.within > duration::zero(), "supervise",
                 "within is not positive; give the window a length");
  rules_of(options.backoff).check("supervise: backoff");
  require_option(options.backoff.reset_after >= duration::zero(), "supervise: backoff",
                 "reset_after is negative; give 0 or more");
}

supervise_run::~supervise_run() = default;

void supervise_run::begin_life() { born_ = loop::here()->now(); }

duration supervise_run::after_failure(outcome_base& out) {
  const time_point now = loop::here()->now();
  const auto outside = [&](const failed_life& l) { return now - l.when >= options_.within; };
  window_.erase(window_.begin(), std::find_if_not(window_.begin(), window_.end(), outside));
  // Without a limit the errors are never used.
  if (options_.max_restarts != std::numeric_limits<std::int64_t>::max())
    window_.push_back({now, out.error()});
  if (static_cast<std::int64_t>(window_.size()) > options_.max_restarts) {
    std::vector<std::exception_ptr> errors;
    errors.reserve(window_.size());
    for (failed_life& life : window_) errors.push_back(std::move(life.error));
    out.set_error(std::make_exception_ptr(restart_limit_error("supervise", options_.max_restarts,
                                                              options_.within, std::move(errors))));
    return duration(-1);
  }
  if (options_.backoff.reset_after != duration::max() &&
      now - born_ >= options_.backoff.reset_after)
    delays_.restart();
  const duration pause = delays_.next(rules_of(options_.backoff));
  emit_policy_event("restart", "supervise", static_cast<std::uint64_t>(++restarts_), out.error());
  return pause;
}

}  // namespace detail
}  // namespace weir
