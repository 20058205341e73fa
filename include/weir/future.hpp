// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/future.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// A shared handle to the result of a run that has another owner: copyable, only observes, may
/// outlive scope and loop.
///
/// `co_await f` on an lvalue gives `const T&`, any number of times and awaiters, and rethrows the
/// same error; on an rvalue, or by `take()`, it moves the result out once: every later await or
/// take through any copy is errc::already_taken. If the run was cancelled: cancelled_error.
/// Threads: home loop only (errc::wrong_loop); after its loop ended, any one thread.
template <class T>
class future {
 public:
  future() noexcept = default;
  explicit future(detail::core_ref core) noexcept : core_(std::move(core)) {}

  bool done() const { return home().done(); }
  /// How it ended; null while it runs.
  const outcome<T>* peek() const {
    auto& core = home();
    return core.done() ? static_cast<const outcome<T>*>(&core.result()) : nullptr;
  }
  detail::pending<detail::take_wait<T>> take() const {
    home();
    return detail::pending<detail::take_wait<T>>(core_);
  }

  // Below: for the scheduler.
  detail::await_wait<detail::reference_wait<T>> weir_await() const& {
    home();
    return detail::await_wait<detail::reference_wait<T>>(detail::core_ref(core_));
  }
  detail::await_wait<detail::take_wait<T>> weir_await() && {
    home();
    return detail::await_wait<detail::take_wait<T>>(std::move(core_));
  }
  detail::future_core* core() const noexcept { return core_.get(); }

 private:
  detail::future_core& home() const {
    if (core_.get() == nullptr) detail::raise_empty_future();
    detail::require_future_home(*core_.get());
    return *core_.get();
  }
  detail::core_ref core_;
};

template <class T>
task<T> detail::run_future(future<T> observed) {
  static_assert(std::is_void_v<T> || std::is_copy_constructible_v<T>,
                "a future only observes, so its value is copied here, and this type cannot be "
                "copied: give the operation instead, or move the value out by take()");
  co_await pending<settled_wait>(core_ref(observed.core()));
  outcome_base& result = observed.core()->result();
  if (result.is_cancelled()) {
    observed.core()->note_observed();
    outcome<T> out;
    out.set_cancelled(result.reason_reference());
    co_await detail::finish_as(out);
  }
  if constexpr (std::is_void_v<T>) {
    co_await observed;
  } else {
    co_return co_await observed;
  }
}

/// The future of a child, which can also cancel it. Destroying it does not affect the child.
template <class T>
class child : public future<T> {
 public:
  child() noexcept = default;
  /// Takes over the reference that scope::adopt counted.
  explicit child(detail::fiber* f) noexcept : future<T>(detail::core_ref::adopt(f)) {}
  child(child&&) noexcept = default;
  child& operator=(child&&) noexcept = default;

  /// Requests cancellation of this child and returns without waiting; the first reason wins.
  void cancel(cancel_reason reason) {
    if (this->core() == nullptr) detail::raise_empty_future();
    detail::require_future_home(*this->core());
    detail::cancel_fiber(static_cast<detail::fiber&>(*this->core()), std::move(reason));
  }
  void cancel(std::string_view text) { cancel(cancel_reason(cancel_kind::user, text)); }
  void cancel(const char* text) { cancel(std::string_view(text)); }
  void cancel() { cancel(cancel_reason()); }
};

/// Describes who cancelled `f`, when, through which scopes, and what it still waits for.
template <class T>
void why(std::ostream& out, const future<T>& f) {
  detail::print_why(out, f.core());
}

}  // namespace weir
