// SPDX-License-Identifier: MIT
// Part of <weir/policy/chaos.hpp>, which includes it after the declarations it needs.
#pragma once

#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>
#include <weir/time.hpp>

namespace weir {

namespace detail {

/// Throws errc::invalid_argument.
void check_options(const chaos_options& options);
/// The latency of this call; draws from the loop's random numbers.
duration draw_latency(const chaos_options& options);
/// True: `out` is an injected fault.
bool draw_fault(const chaos_options& options, outcome_base& out);

template <class T, class P, class Op>
struct chaos_coroutine {
  static task<T> run(P policy, Op op) {
    const duration late = detail::draw_latency(policy.options());
    if (late > duration::zero()) co_await sleep(late);
    outcome<T> out;
    if (!detail::draw_fault(policy.options(), out)) {
      auto call = [&] { return detail::attempt_task(op); };
      co_await detail::into(out, call);
    }
    co_await detail::finish_as(out);
    co_return out.take();
  }
};

/// The policy made by weir::chaos.
class chaos_policy : public policy_of<chaos_policy> {
 public:
  explicit chaos_policy(const chaos_options& options) : options_(options) {
    check_options(options_);
  }

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return chaos_coroutine<T, P, Op>::run(std::forward<P>(policy), std::forward<Op>(op));
  }
  const chaos_options& options() const noexcept { return options_; }

 private:
  chaos_options options_;
};

}  // namespace detail
}  // namespace weir
