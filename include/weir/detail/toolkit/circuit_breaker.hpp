// SPDX-License-Identifier: MIT
// Part of <weir/policy/circuit_breaker.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/name.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

class breaker_core;

/// One call through a breaker. If it is destroyed without a result, it is not counted and frees its
/// place as a probe.
class breaker_call {
 public:
  explicit breaker_call(breaker_core& core) noexcept : core_(core) {}
  breaker_call(const breaker_call&) = delete;
  breaker_call& operator=(const breaker_call&) = delete;
  ~breaker_call() {
    if (open_) forget();
  }
  /// False: rejected, and `out` holds the error.
  bool admitted(outcome_base& out);
  void ended(const outcome_base& out);

 private:
  void forget() noexcept;
  breaker_core& core_;
  time_point started_{};
  std::uint64_t epoch_ = 0;
  bool open_ = false;
};

template <class T, class P, class Op>
struct breaker_coroutine {
  static task<T> run(P policy, Op op) {
    outcome<T> out;
    detail::breaker_call pass(policy.core());
    if (pass.admitted(out)) {
      auto call = [&] { return detail::attempt_task(op); };
      co_await detail::into(out, call);
      pass.ended(out);
    }
    co_await detail::finish_as(out);
    co_return out.take();
  }
};

}  // namespace detail
}  // namespace weir
