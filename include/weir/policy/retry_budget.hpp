// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <memory>

#include <weir/duration.hpp>

namespace weir {

struct retry_budget_options {
  double ratio = 0.2;
  double min_per_second = 10;
  duration window = std::chrono::seconds(10);
};

namespace detail {
class budget_core;
}

/// Limits the load that retries and hedges add to a failing service.
///
/// Ensures: a further attempt is granted only if the attempts granted within the last `window`,
/// including this one, are at most `ratio` x first attempts + `min_per_second` x `window`. First
/// attempts are never charged. After a denial the result is the original error; event
/// `budget_denied`. Threads: any; one object is shared by any number of policies (`.budget = &b`),
/// which keep its shared part alive, so it may be destroyed before them. Costs: one short lock per
/// first and per further attempt. A durable run may use only a budget that it created itself,
/// outside of steps, and only that run may use it: errc::not_journaled.
class retry_budget {
 public:
  /// Bad options: errc::invalid_argument.
  explicit retry_budget(retry_budget_options options = {});
  retry_budget(retry_budget&) = delete;  // not const: `retry_budget({})` means options
  retry_budget& operator=(const retry_budget&) = delete;
  ~retry_budget();

  // Below: for the library.
  const std::shared_ptr<detail::budget_core>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<detail::budget_core> core_;
};

}  // namespace weir
