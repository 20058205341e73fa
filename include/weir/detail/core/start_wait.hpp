// SPDX-License-Identifier: MIT
// Part of <weir/start.hpp>, which includes it after the declarations it needs.
#pragma once

#include <type_traits>
#include <utility>

#include <weir/future.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

template <class F>
struct started_arg : started_arg<decltype(&F::operator())> {};
template <class C, class R, class U>
struct started_arg<R (C::*)(started<U>&)> {
  using type = U;
};
template <class C, class R, class U>
struct started_arg<R (C::*)(started<U>&) const> {
  using type = U;
};
template <class R, class U>
struct started_arg<R (*)(started<U>&)> {
  using type = U;
};
template <class C, class R, class U>
struct started_arg<R (C::*)(started<U>&) noexcept> {
  using type = U;
};
template <class C, class R, class U>
struct started_arg<R (C::*)(started<U>&) const noexcept> {
  using type = U;
};

/// What the child runs: the function with its `started` object.
template <class U, class F>
struct start_job {
  explicit start_job(F f) : fn(std::move(f)) {}
  auto operator()() { return fn(up); }
  F fn;
  started<U> up;
};

/// Throws why a started child has no value for its starter.
[[noreturn]] void rethrow_start_failure(fiber& child);

/// The awaiter of run_start; returns the value, or throws why there is none.
template <class U>
class start_await final : public value_wait<U> {
 public:
  start_await(core_ref&& core, started<U>& up) : value_wait<U>(std::move(core)), up_(up) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> me) {
    strand& s = *current;
    s.leaf = &me.promise();
    if (!prepare_park(s, *this)) return;
    up_.wait_with(*this);
    this->arm();
  }
  U await_resume() {
    if (!this->said()) rethrow_start_failure(static_cast<fiber&>(this->core()));
    if constexpr (!std::is_void_v<U>) return std::move(*this->value);
  }

 private:
  started<U>& up_;
};

template <class U>
class start_op {
 public:
  start_op(core_ref core, started<U>& up) : core_(std::move(core)), up_(&up) {}
  start_await<U> weir_await() && { return start_await<U>(std::move(core_), *up_); }

 private:
  core_ref core_;
  started<U>* up_;
};

template <class U, class F>
task<U> run_start(scope& s, F fn, kept_name name, std::source_location site) {
  using job = start_job<U, F>;
  using child_type = call_fiber<result_t<job>, job, make_task>;
  s.admit("start");
  auto* made = scope::make(job(std::move(fn)));
  auto* f =
      static_cast<child_type*>(s.adopt(made, {.name = name.view()}, site, scope::launch::starting));
  core_ref child = core_ref::adopt(f);
  if (f->ended) rethrow_start_failure(*f);
  started<U>& up = f->op.up;
  up.bind(*f);
  start_op<U> wait(std::move(child), up);
  co_return co_await std::move(wait);
}

}  // namespace detail
}  // namespace weir
