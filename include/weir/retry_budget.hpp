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

/// Bounds what retries and hedges add to the load of a service that is in trouble.
///
/// Ensures: a further attempt is granted only if, within the last `window`, all that were granted
/// and this one are at most `ratio` x first attempts + `min_per_second` x `window`. First attempts
/// are never charged. A denial gives the original error and the event `budget_denied`.
/// Threads: any; one object is shared by any number of policies (`.budget = &b`), which keep its
/// shared part, so it may go before they do. Costs: one short lock per first and per further
/// attempt. A durable run may use only one that it made itself, outside of steps, and nobody else
/// may use that: errc::not_journaled.
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
