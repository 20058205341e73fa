// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/task.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// One run of a coroutine, not yet started: lazy, move-only, awaited once as an rvalue.
///
/// Ensures: the coroutine runs in the awaiting fiber; recursion is not limited by the machine
/// stack. Cancels: unwound with the fiber that awaits it. Threads: stays on its loop once started.
/// Costs: one frame from the thread's cache.
template <class T>
class [[nodiscard]] task {
  static_assert(alignof(detail::stored_t<T>) <= 16,
                "weir::task<T>: T is over-aligned; C++20 compilers do not align coroutine frames "
                "beyond 16 bytes, so return it by std::unique_ptr");
  static_assert(!std::is_reference_v<T>,
                "weir::task<T&> is not supported: return a pointer, or "
                "a std::reference_wrapper");

 public:
  using promise_type = detail::promise<T>;
  using value_type = T;

  task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    task old(std::move(*this));
    frame_ = std::exchange(other.frame_, nullptr);
    return *this;
  }
  ~task() {
    if (frame_) frame_.destroy();
  }

  // Below: for the scheduler.
  explicit task(std::coroutine_handle<> frame) noexcept : frame_(frame) {}
  std::coroutine_handle<> release() noexcept { return std::exchange(frame_, nullptr); }
  explicit operator bool() const noexcept { return static_cast<bool>(frame_); }
  std::coroutine_handle<> handle() const noexcept { return frame_; }
  detail::task_await<T> weir_await() && {
    if (!frame_) detail::raise(errc::already_taken, "task awaited twice: a task runs only once");
    return detail::task_await<T>(release());
  }

 private:
  std::coroutine_handle<> frame_;
};

template <class T>
class [[nodiscard]] detail::quiet_task : public task<T> {
 public:
  explicit quiet_task(task<T>&& t) noexcept : task<T>(std::move(t)) {}
  task_await<T, false> weir_await() && { return task_await<T, false>(this->release()); }
};

template <class T>
task<T> detail::promise<T>::get_return_object(std::source_location here) noexcept {
  function = here;
  return task<T>(handle());
}
inline task<void> detail::promise<void>::get_return_object(std::source_location here) noexcept {
  function = here;
  return task<void>(handle());
}

}  // namespace weir
