// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/detail/core/settle.hpp>
#include <weir/duration.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// Returns how `op` ended as a value; never throws, unless moving that value does. If the *caller*
/// is cancelled, `op` is cancelled and joined and the caller unwinds.
template <detail::operation Op>
task<outcome<detail::result_t<Op>>> settle(Op&& op) {
  using plain = detail::held_t<Op>;
  return detail::run_settle<detail::result_t<plain>, plain>(std::forward<Op>(op));
}

/// Runs `op` shielded from outer cancellation, even if that was already requested. Its result is
/// delivered, and the caller is unwound at its next await.
template <detail::operation Op>
auto shield(Op&& op) {
  using plain = detail::held_t<Op>;
  using value = detail::result_t<plain>;
  return detail::quiet_task<value>(
      detail::run_region<value, detail::shield_region, plain>({}, std::forward<Op>(op)));
}
/// The same for at most `limit` after the outer cancellation was requested.
template <class Rep, class Period, detail::operation Op>
auto shield(std::chrono::duration<Rep, Period> limit, Op&& op) {
  using plain = detail::held_t<Op>;
  using value = detail::result_t<plain>;
  return detail::quiet_task<value>(detail::run_region<value, detail::shield_region, plain>(
      {detail::saturating_cast(limit)}, std::forward<Op>(op)));
}

/// `op | finally(fn)`: `fn`, plain or a task, runs after value, error and cancellation alike,
/// shielded, within the scope's grace. An error in it counts only after a value.
template <class F>
class finally : public detail::policy_of<finally<F>> {
 public:
  explicit finally(F fn) : fn_(std::move(fn)) {}

  // Below: for the library.
  F release() && { return std::move(fn_); }
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    using kept = std::conditional_t<std::is_reference_v<P>, detail::function_ref<F>, F>;
    using region = detail::finally_region<kept>;
    if constexpr (std::is_reference_v<P>) {
      return detail::run_region<T, region, Op>(typename region::setup(kept{&policy.fn_}),
                                               std::forward<Op>(op));
    } else {
      return detail::run_region<T, region, Op>(typename region::setup(std::move(policy.fn_)),
                                               std::forward<Op>(op));
    }
  }

 private:
  F fn_;
};

}  // namespace weir
