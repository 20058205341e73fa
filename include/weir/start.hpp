// SPDX-License-Identifier: MIT
// scope::start: a child that says when it is up.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <weir/future.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

/// Waits until a child says that it has started, or ends. Cancelled, it cancels the child and waits
/// for its end.
class start_wait : public future_wait {
 public:
  using result = void;
  explicit start_wait(core_ref&& core) : future_wait(std::move(core)) {}
  bool try_now() const noexcept { return false; }
  bool start() override;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void take() noexcept {}
  void said() noexcept;

 private:
  bool leaving_ = false;
};

/// The part of `started<U>` that does not depend on its type.
class started_base {
 public:
  void bind(fiber& child) noexcept { child_ = &child; }
  void wait_with(start_wait* w) noexcept { waiting_ = w; }
  bool said() const noexcept { return said_; }

 protected:
  void claim();
  void tell() noexcept;

 private:
  fiber* child_ = nullptr;
  start_wait* waiting_ = nullptr;
  bool said_ = false;
};

}  // namespace detail

/// Given to the function of scope::start, which calls it once when the child is up.
template <class U>
class started : public detail::started_base {
 public:
  /// Lets the starter go on with `value`. A second call: errc::already_started.
  void operator()(U value) {
    claim();
    value_.emplace(std::move(value));
    tell();
  }
  U take_value() { return std::move(*value_); }

 private:
  std::optional<U> value_;
};

template <>
class started<void> : public detail::started_base {
 public:
  void operator()() {
    claim();
    tell();
  }
  void take_value() const noexcept {}
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

/// What the child runs: the function with the object it announces itself by.
template <class U, class F>
struct start_job {
  explicit start_job(F f) : fn(std::move(f)) {}
  auto operator()() { return fn(up); }
  F fn;
  started<U> up;
};

struct start_wait_op {
  start_wait_op(core_ref c, started_base* u) : core(std::move(c)), up(u) {}
  core_ref core;
  started_base* up;
  struct awaiter : start_wait {
    awaiter(core_ref&& c, started_base* u) : start_wait(std::move(c)), up(u) {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> me) {
      strand& s = *current;
      s.leaf = &me.promise();
      if (!prepare_park(s, *this)) return;
      up->wait_with(this);
      arm();
    }
    void await_resume() noexcept { up->wait_with(nullptr); }
    started_base* up;
  };
  awaiter weir_await() && { return awaiter(std::move(core), up); }
};

[[noreturn]] void raise_never_started(const fiber& child);
[[noreturn]] void rethrow_start_failure(fiber& child);

template <class U, class F>
task<U> run_start(scope& s, F fn, kept_name name, std::source_location site) {
  using job = start_job<U, F>;
  using child_type = call_fiber<result_t<job>, job, make_task>;
  auto* made = scope::make(job(std::move(fn)));
  auto* f =
      static_cast<child_type*>(s.adopt(made, {.name = name.view()}, site, scope::launch::starting));
  const core_ref keep = core_ref::adopt(f);
  if (f->ended) rethrow_start_failure(*f);
  started<U>& up = f->op.up;
  up.bind(*f);
  co_await start_wait_op(core_ref(f), &up);
  if (f->ended && !up.said()) rethrow_start_failure(*f);
  co_return up.take_value();
}

}  // namespace detail

template <class F>
auto scope::start(F&& fn, spawn_options options, std::source_location site) {
  using value = typename detail::started_arg<std::decay_t<F>>::type;
  admit("start");
  return detail::run_start<value, std::decay_t<F>>(*this, std::forward<F>(fn),
                                                   detail::kept_name(options.name), site);
}

}  // namespace weir
