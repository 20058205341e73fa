// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/toolkit/pipe.hpp>
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

namespace detail {

/// One run of a supervised operation.
class supervise_run {
 public:
  explicit supervise_run(const supervise_options& options) noexcept : options_(options) {}
  supervise_run(const supervise_run&) = delete;
  supervise_run& operator=(const supervise_run&) = delete;
  ~supervise_run();
  void begin_life();
  /// The delay before the next life; negative: it gives up, and `out` holds the error.
  duration after_failure(outcome_base& out);

 private:
  struct failed_life {
    time_point when;
    std::exception_ptr error;
  };
  const supervise_options& options_;
  delay_sequence delays_;
  std::vector<failed_life> window_;  // oldest first
  std::int64_t restarts_ = 0;
  time_point born_{};
};

/// Throws errc::invalid_argument.
void check_options(const supervise_options& options);

template <class T, class P, class Op>
struct supervise_coroutine {
  static task<T> run(P policy, Op op) {
    supervise_run lives(policy.options());
    outcome<T> out;
    auto call = [&] { return detail::attempt_task(op); };
    for (;;) {
      lives.begin_life();
      co_await detail::into(out, call);
      if (!out.is_error()) break;
      const duration pause = lives.after_failure(out);
      if (pause < duration::zero()) break;
      if (pause > duration::zero()) co_await sleep(pause);
      out.reset();
    }
    co_await detail::finish_as(out);
    co_return out.take();
  }
};

/// The policy made by weir::supervise.
class supervise_policy : public policy_of<supervise_policy> {
 public:
  static constexpr bool runs_again = true;
  explicit supervise_policy(const supervise_options& options) : options_(options) {
    check_options(options_);
  }

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return supervise_coroutine<T, P, Op>::run(std::forward<P>(policy), std::forward<Op>(op));
  }
  const supervise_options& options() const noexcept { return options_; }

 private:
  supervise_options options_;
};

}  // namespace detail

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
