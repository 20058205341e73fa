// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/attempt.hpp>
#include <weir/detail/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/name.hpp>
#include <weir/outcome.hpp>

namespace weir {

struct circuit_breaker_options {
  weir::name name{};
  double failure_ratio = 0.5;
  std::int64_t minimum_calls = 20;
  duration window = std::chrono::seconds(30);
  duration open_for = std::chrono::seconds(5);
  std::int64_t probes = 1;
  double slow_ratio = 1.0;
  duration slow_call = unbounded;  ///< a call that takes at least this long is slow
};

enum class circuit_state : std::uint8_t {
  closed,     ///< calls pass
  open,       ///< calls are rejected, until the first one after `open_for`
  half_open,  ///< some calls pass, to try
  isolated,   ///< calls are rejected until reset()
};

/// A circuit breaker rejected a call without running it.
class circuit_open_error : public error {
 public:
  circuit_open_error(const std::string& what, duration retry_after);
  /// The time left until a call may be tried; 0 while it is being tried, `unbounded` if the
  /// breaker is isolated.
  duration retry_after() const noexcept { return retry_after_; }

 private:
  duration retry_after_;
};

namespace detail {

class breaker_core;

/// One call through a breaker. Dropped without a result, it counts as nothing and gives a probe's
/// place back.
class breaker_call {
 public:
  explicit breaker_call(breaker_core& core) noexcept : core_(core) {}
  breaker_call(const breaker_call&) = delete;
  breaker_call& operator=(const breaker_call&) = delete;
  ~breaker_call() {
    if (open_) forget();
  }
  /// False: rejected, `out` says so.
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

/// Stops calling what fails: `op | breaker(cb)`, shared by any number of operations.
///
/// Closed: calls pass; when of at least `minimum_calls` calls within the last `window` a share of
/// `failure_ratio` failed, or of `slow_ratio` took `slow_call` or longer, it opens. Open: calls are
/// rejected (circuit_open_error) until the first one after `open_for`, which is a probe. Half open:
/// `probes` calls pass; it is decided by the same ratios when they ended, or earlier once certain,
/// and then closes with an empty window or opens again. Calls that were cancelled count as nothing
/// and give a probe's place back; results of calls that began in an earlier state count as nothing.
/// Threads: any; operations keep its shared part, so it may go before they do. Time is that of the
/// calling loop. Events: `opened`, `half_opened`, `closed`, `isolated`, `rejected`. Costs: two
/// short locks per call. Bad options: errc::invalid_argument. A durable run may use only one that
/// it made itself, outside of steps, and nobody else may use that: errc::not_journaled.
class circuit_breaker {
 public:
  explicit circuit_breaker(circuit_breaker_options options = {});
  circuit_breaker(circuit_breaker&) = delete;  // not const: `circuit_breaker({})` means options
  circuit_breaker& operator=(const circuit_breaker&) = delete;
  ~circuit_breaker();

  circuit_state state() const;
  /// Rejects every call until reset().
  void isolate();
  /// Closes it, with an empty window.
  void reset();
  std::string_view name() const noexcept;

  // Below: for the library.
  const std::shared_ptr<detail::breaker_core>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<detail::breaker_core> core_;
};

/// `op | breaker(cb)`: calls `op` through a circuit breaker.
class breaker : public detail::policy_of<breaker> {
 public:
  explicit breaker(const circuit_breaker& through) noexcept : core_(through.core()) {}

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return detail::breaker_coroutine<T, P, Op>::run(std::forward<P>(policy), std::forward<Op>(op));
  }
  detail::breaker_core& core() const noexcept { return *core_; }

 private:
  std::shared_ptr<detail::breaker_core> core_;
};

}  // namespace weir
