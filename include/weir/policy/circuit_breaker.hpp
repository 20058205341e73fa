// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
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
  duration slow_call = unbounded;  ///< calls that take at least this long are slow
};

enum class circuit_state : std::uint8_t {
  closed,     ///< calls pass
  open,       ///< calls are rejected, until the first one after `open_for`
  half_open,  ///< `probes` calls pass, as a test
  isolated,   ///< calls are rejected until reset()
};

/// A circuit breaker rejected a call without running it.
class circuit_open_error : public error {
 public:
  circuit_open_error(const std::string& what, duration retry_after);
  /// The time left until a probe is admitted; 0 while probes run, `unbounded` if the breaker is
  /// isolated.
  duration retry_after() const noexcept { return retry_after_; }

 private:
  duration retry_after_;
};

}  // namespace weir

#include <weir/detail/toolkit/circuit_breaker.hpp>

namespace weir {

/// Stops calling a failing service: `op | breaker(cb)`, shared by any number of operations.
///
/// Closed: calls pass; it opens when there were at least `minimum_calls` calls within the last
/// `window` and a share of `failure_ratio` failed or of `slow_ratio` took `slow_call` or longer.
/// Open: calls are rejected (circuit_open_error) until the first one after `open_for`, which is a
/// probe. Half open: `probes` calls pass; when they have ended, or earlier if the result is
/// certain, the same ratios decide whether it closes with an empty window or opens again. Cancelled
/// calls are not counted and free their place as a probe; calls that began in an earlier state are
/// not counted. Threads: any; operations keep its shared part alive, so it may be destroyed before
/// them. Time is that of the calling loop. Events: `opened`, `half_opened`, `closed`, `isolated`,
/// `rejected`. Costs: two short locks per call. Bad options: errc::invalid_argument. A durable run
/// may use only a breaker that it created itself, outside of steps, and only that run may use it:
/// errc::not_journaled.
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
