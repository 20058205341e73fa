// SPDX-License-Identifier: MIT
// Part of <weir/policy/supervise.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>
#include <weir/policy/backoff.hpp>
#include <weir/time.hpp>

namespace weir {

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
}  // namespace weir
