// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>
#include <weir/policy/backoff.hpp>
#include <weir/time.hpp>

namespace weir {

struct supervise_options {
  std::int64_t max_restarts = 3;
  duration within = std::chrono::seconds(5);
  weir::backoff backoff{};
};

/// The restart limit was exceeded. `errors()`: all failures inside the window, oldest first; the
/// last one exceeded the limit.
class restart_limit_error : public error_group {
 public:
  /// `who` gave up: "supervise", or the name of a supervisor.
  restart_limit_error(std::string_view who, std::int64_t max_restarts, duration within,
                      std::vector<std::exception_ptr> errors);
};

}  // namespace weir

#include <weir/detail/toolkit/supervise.hpp>

namespace weir {

/// `op | supervise({...})`: runs `op` again whenever it fails, until it returns a value.
///
/// It gives up with restart_limit_error when more than `max_restarts` failures of this run lie
/// within the last `within`. Before each restart it backs off by `.backoff` (default: no delay).
/// Cancels: a cancelled operation is not restarted. Event: `restart` (number: of the restart). Bad
/// options: errc::invalid_argument.
inline detail::supervise_policy supervise(supervise_options options = {}) {
  return detail::supervise_policy(options);
}

}  // namespace weir
