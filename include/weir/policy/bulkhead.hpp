// SPDX-License-Identifier: MIT
// Policies that run an operation under a permit of a governor: bulkhead and rate_limit.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/toolkit/bulkhead.hpp>
#include <weir/duration.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// `op | bulkhead(g)` or `op | bulkhead(n)`: each run holds a permit of the governor, which bounds
/// how many run at once; the others wait, first come, first served. A refusal (the governor is full
/// or closed) is its error and the event `rejected`. `bulkhead(n)` creates its own counting
/// governor, shared by all operations that the policy is applied to; home loop only
/// (errc::wrong_loop). `n < 1`: errc::invalid_argument. `g` must outlive the operations.
template <class G>
class bulkhead : public detail::governed_policy<bulkhead<G>, G> {
 public:
  explicit bulkhead(G& g) noexcept : detail::governed_policy<bulkhead<G>, G>(g) {}
  template <std::integral N>
  explicit bulkhead(N limit)
      : detail::governed_policy<bulkhead<G>, G>(
            detail::own_governor(static_cast<std::int64_t>(limit), function_name)) {}
  static constexpr const char* function_name = "bulkhead";  // for the library
};
template <governor G>
bulkhead(G&) -> bulkhead<G>;
template <std::integral N>
bulkhead(N) -> bulkhead<counting_governor>;

namespace detail {

/// The governor of `rate_limit(n, per)`, in weir/governor/rate.hpp.
template <class G>
struct rate_of;

}  // namespace detail

/// `op | rate_limit(g)`: as bulkhead; meant for governors that limit a rate. `op | rate_limit(n,
/// per)`, such as `rate_limit(5, 1s)`, creates its own rate_governor: n at once, then n in each
/// `per`, evenly spaced. Neither may be 0 or less: errc::invalid_argument.
template <class G>
class rate_limit : public detail::governed_policy<rate_limit<G>, G> {
 public:
  explicit rate_limit(G& g) noexcept : detail::governed_policy<rate_limit<G>, G>(g) {}
  template <std::integral N, class Rep, class Period>
  rate_limit(N n, std::chrono::duration<Rep, Period> per)
      : detail::governed_policy<rate_limit<G>, G>(
            detail::rate_of<G>::make(static_cast<std::int64_t>(n), detail::saturating_cast(per))) {}
  template <std::integral N>
  explicit rate_limit(N n) : rate_limit(n, duration{}) {
    static_assert(!std::integral<N>,
                  "rate_limit(n): n in what time? write rate_limit(n, 1s), or give a governor");
  }
  static constexpr const char* function_name = "rate_limit";  // for the library
};
template <governor G>
rate_limit(G&) -> rate_limit<G>;
class rate_governor;
template <std::integral N, class Rep, class Period>
rate_limit(N, std::chrono::duration<Rep, Period>) -> rate_limit<rate_governor>;
template <std::integral N>
rate_limit(N) -> rate_limit<rate_governor>;

}  // namespace weir
