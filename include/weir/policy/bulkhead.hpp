// SPDX-License-Identifier: MIT
// Policies that run an operation under a permit of a governor: bulkhead and rate_limit.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/toolkit/pipe.hpp>
#include <weir/duration.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

/// errc::invalid_argument unless `limit` is positive.
std::shared_ptr<counting_governor> own_governor(std::int64_t limit, const char* policy);
/// The governor refused the call: event `rejected`.
void emit_refused(const std::exception_ptr& error, std::string_view governor, const char* policy);
/// Releases a permit; if that fails, returns the error that the operation then has.
std::exception_ptr release_permit(permit& held, const outcome_base& out);

/// The governor of a policy: the caller's, or its own, which all copies of the policy share.
template <class G>
class governor_user {
 public:
  explicit governor_user(G& g) noexcept : governor_(&g) {}
  explicit governor_user(std::shared_ptr<G> own) noexcept
      : own_(std::move(own)), governor_(own_.get()) {}
  G& governor() const noexcept { return *governor_; }
  std::string_view name() const {
    if constexpr (requires { std::string_view(governor_->name()); }) {
      return governor_->name();
    } else {
      return {};
    }
  }

 private:
  std::shared_ptr<G> own_;
  G* governor_;
};

template <class T, class P, class Op>
struct governed_coroutine {
  static task<T> run(P policy, Op op) {
    outcome<T> out;
    permit held;
    try {
      held = co_await policy.user().governor().acquire();
    } catch (...) {
      out.set_error(std::current_exception());
      emit_refused(out.error(), policy.user().name(), policy.function_name);
    }
    if (!out.is_error()) {
      auto call = [&] { return attempt_task(op); };
      co_await detail::into(out, call);
      if (std::exception_ptr broken = release_permit(held, out)) {
        out.drop_value();
        out.set_error(std::move(broken));
      }
    }
    co_await detail::finish_as(out);
    co_return out.take();
  }
};

/// The common part of bulkhead and rate_limit, which differ in name and use.
template <class Self, class G>
class governed_policy : public policy_of<Self> {
 public:
  explicit governed_policy(G& g) noexcept : user_(g) {}
  explicit governed_policy(std::shared_ptr<G> own) noexcept : user_(std::move(own)) {}
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    return governed_coroutine<T, P, Op>::run(std::forward<P>(policy), std::forward<Op>(op));
  }
  const governor_user<G>& user() const noexcept { return user_; }

 private:
  governor_user<G> user_;
};

}  // namespace detail

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
