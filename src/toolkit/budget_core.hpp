// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include <weir/detail/core/run_rules.hpp>
#include <weir/policy/retry_budget.hpp>

#include "toolkit/sliding_window.hpp"

namespace weir::detail {

/// Shared by a retry_budget and the policies that use it. Any thread.
///
/// The window forgets first attempts early and further ones late, so it never grants more than an
/// exact window would.
class budget_core {
 public:
  explicit budget_core(const retry_budget_options& options);
  void first_attempt(time_point now);
  /// Whether one more attempt is allowed; if so, it is charged.
  bool grants(time_point now);
  /// Throws errc::not_journaled where it must not be used.
  void require_here() const { made_.require_here({"retry budget", {}}); }
  /// Throws errc::not_journaled if a durable run made it.
  void require_for_step() const { made_.require_for_step("retry budget"); }

 private:
  double ratio_;
  double reserve_;
  made_in_run made_;
  std::mutex mutex_;
  sliding_window<std::int64_t, forgets::early> firsts_;
  sliding_window<std::int64_t, forgets::late> granted_;
};

/// The core of an optional budget; null without one.
std::shared_ptr<budget_core> core_of(const retry_budget* budget);

}  // namespace weir::detail
