// SPDX-License-Identifier: MIT
// scope::start: a child that reports when it is up.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <weir/future.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

/// Waits until a child reports that it has started, or ends. When cancelled, it cancels the child
/// and waits for its end.
class start_wait : public future_wait {
 public:
  using result = void;
  explicit start_wait(core_ref&& core) : future_wait(std::move(core)) {}
  void link() override { arm(); }
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  bool said() const noexcept { return said_; }
  void say() noexcept;

 private:
  bool said_ = false;
  bool leaving_ = false;
};

/// The reported value goes directly into the starter's wait: the child and its function may have
/// ended before the starter runs again.
template <class U>
class value_wait : public start_wait {
 public:
  using start_wait::start_wait;
  std::optional<stored_t<U>> value;
};

/// The type-independent part of `started<U>`.
class started_base {
 public:
  void bind(fiber& child) noexcept { child_ = &child; }

 protected:
  void claim();
  void no_longer_starting() noexcept;

 private:
  fiber* child_ = nullptr;
  bool said_ = false;
};

}  // namespace detail

/// Given to the function of scope::start, which calls it once when the child is up.
template <class U>
class started : public detail::started_base {
 public:
  /// Resumes the starter with `value`. A second call: errc::already_started.
  void operator()(U value) {
    claim();
    no_longer_starting();
    if (waiting_ == nullptr) return;
    waiting_->value.emplace(std::move(value));
    std::exchange(waiting_, nullptr)->say();
  }
  void wait_with(detail::value_wait<U>& w) noexcept { waiting_ = &w; }

 private:
  detail::value_wait<U>* waiting_ = nullptr;
};

template <>
class started<void> : public detail::started_base {
 public:
  void operator()() {
    claim();
    no_longer_starting();
    if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->say();
  }
  void wait_with(detail::value_wait<void>& w) noexcept { waiting_ = &w; }

 private:
  detail::value_wait<void>* waiting_ = nullptr;
};

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

template <class F>
auto scope::start(F&& fn, spawn_options options, std::source_location site) {
  using value = typename detail::started_arg<std::decay_t<F>>::type;
  if (detail::is_empty_callable(fn)) detail::raise_empty_job();
  admit("start");
  return detail::run_start<value, std::decay_t<F>>(*this, std::forward<F>(fn),
                                                   detail::kept_name(options.name), site);
}

}  // namespace weir
