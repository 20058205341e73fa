// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include <weir/retry_budget.hpp>

#include "toolkit/sliding_window.hpp"

namespace weir::detail {

/// What a retry_budget and the policies that use it share. Any thread.
///
/// First attempts are forgotten early and further ones late, so a grant never exceeds what the
/// exact window would give.
class budget_core {
 public:
  explicit budget_core(const retry_budget_options& options);
  void first_attempt(time_point now);
  /// Whether one more attempt may be made; if so, it is charged.
  bool grants(time_point now);

 private:
  double ratio_;
  double reserve_;
  std::mutex mutex_;
  sliding_window<std::int64_t, forgets::early> firsts_;
  sliding_window<std::int64_t, forgets::late> granted_;
};

/// The shared part of a budget that may not be there.
std::shared_ptr<budget_core> core_of(const retry_budget* budget);

}  // namespace weir::detail
