// SPDX-License-Identifier: MIT
// The machinery of <weir/task.hpp>.
#pragma once

#include <coroutine>
#include <exception>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weir/detail/core/frame.hpp>
#include <weir/outcome.hpp>

namespace weir {

template <class T = void>
class task;

namespace detail {

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

/// A task whose await is not a cancellation point: returned by `shield`.
template <class T>
class quiet_task;
template <class T>
inline constexpr bool is_task<quiet_task<T>> = true;

template <class A>
concept weir_awaitable = requires(A&& a) { std::forward<A>(a).weir_await(); };

/// The awaiter of a task: owns its frame and receives its outcome.
/// `Cancellable` false: the await itself is not a cancellation point (shield, cleanup).
template <class T, bool Cancellable = true>
class [[nodiscard]] task_await {
 public:
  explicit task_await(std::coroutine_handle<> frame) noexcept { out_.own_frame(frame); }
  task_await(const task_await&) = delete;
  task_await& operator=(const task_await&) = delete;

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> me) {
    if constexpr (Cancellable) {
      return start_child(me.promise(), out_);
    } else {
      frame& child = frame_of(out_.frame());
      child.parent = &me.promise();
      child.out = &out_;
      return enter_child(*current, me.promise(), child);
    }
  }
  T await_resume() {
    out_.destroy_frame();
    return out_.take();
  }

 private:
  outcome<T> out_;
};

/// A stream, or another source of values with `next()`.
template <class A>
concept value_source = requires(A& a) {
  a.next();
  a.close();
};

/// The result type after a failed static_assert, so that its message is the only one.
struct refused {
  template <class T>
  operator T() const noexcept;
  template <class Next>
  refused operator|(Next&&) const noexcept;
  refused operator()() const noexcept;
  bool await_ready() const noexcept;
  void await_suspend(std::coroutine_handle<>) const noexcept;
  refused await_resume() const noexcept;
  refused weir_await() const noexcept;
};

/// The `co_await` rules of every promise of weir.
struct promise_base : frame {
  std::suspend_always initial_suspend() const noexcept { return {}; }
  final_await final_suspend() const noexcept { return {}; }
  template <class A>
  auto await_transform(A&& awaited, place_pointer here = __builtin_source_location()) {
    using plain = std::remove_cvref_t<A>;
    static_assert(!(is_task<plain> && std::is_lvalue_reference_v<A>),
                  "co_await an rvalue task: a task runs once, so write co_await std::move(t) or "
                  "await the call itself");
    static_assert(weir_awaitable<A> || !value_source<plain>,
                  "co_await binds tighter than |, so this awaits the stream itself: write "
                  "co_await (s | sink) with parentheses, or co_await s.next()");
    static_assert(is_task<plain> || weir_awaitable<A> || value_source<plain>,
                  "weir coroutines await weir operations only: wrap a foreign callback or "
                  "awaitable with weir::suspend<T>(...)");
    awaiting = as_location(here);
    if constexpr (weir_awaitable<A>) {
      return std::forward<A>(awaited).weir_await();
    } else {
      return refused();
    }
  }
};

template <class T>
struct promise : promise_base {
  task<T> get_return_object(std::source_location here = std::source_location::current()) noexcept;
  void unhandled_exception() noexcept {
    static_cast<outcome<T>*>(out)->drop_value();  // a local's destructor may throw after co_return
    frame_failed(*this);
  }
  template <class U = T>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) {
    static_cast<outcome<T>*>(out)->emplace(std::forward<U>(value));
  }
};

template <>
struct promise<void> : promise_base {
  task<void> get_return_object(
      std::source_location here = std::source_location::current()) noexcept;
  void unhandled_exception() noexcept { frame_failed(*this); }
  void return_void() { static_cast<outcome<void>*>(out)->emplace(); }
};

}  // namespace detail
}  // namespace weir
