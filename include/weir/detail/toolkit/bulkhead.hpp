// SPDX-License-Identifier: MIT
// The machinery of <weir/policy/bulkhead.hpp>.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include <weir/detail/core/attempt.hpp>
#include <weir/detail/core/pipe.hpp>
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
}  // namespace weir
