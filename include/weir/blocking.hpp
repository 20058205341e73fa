// SPDX-License-Identifier: MIT
// Runs blocking functions on threads of a pool.
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// Option of `blocking`: a cancelled caller does not wait for the result.
struct may_abandon_t {
  explicit may_abandon_t() = default;
};
inline constexpr may_abandon_t may_abandon{};

}  // namespace weir

#include <weir/detail/toolkit/blocking.hpp>

namespace weir {

/// Runs `fn()`, which may block, on a thread of the process-wide blocking pool and returns its
/// value or throws its error. `fn` may capture by reference: its caller waits for it.
///
/// At most 64 run at once; further callers wait in order. Threads end after some seconds without
/// work. Cancels: a call that still waits for a thread is removed at once; a running call is waited
/// for, and the caller is unwound at its next await. Threads: `fn` runs and is destroyed on the
/// other thread, which has the signal mask of the program; its result is moved across. In a
/// simulation it runs on the simulation's thread, as a separate step. Errors: errc::empty_job;
/// std::system_error if the system has no thread for it.
template <class F>
auto blocking(F&& fn) {
  using function = std::decay_t<F>;
  static_assert(detail::blocking_function<function>,
                "weir::blocking(fn): fn is called without arguments");
  if (detail::is_empty_callable(fn)) detail::raise_empty_job();
  return detail::make_blocking(false, std::forward<F>(fn));
}

/// The same for a function that owns everything it uses: a cancelled caller is unwound at once, the
/// thread finishes the call, and the result is dropped and counted (event `blocking_abandoned`).
/// From then on the thread does not count against the limit, and `run` does not wait for it.
template <class F, class... Args>
auto blocking(may_abandon_t, F&& fn, Args&&... args) {
  using function = std::decay_t<F>;
  static_assert(std::is_empty_v<function> || detail::is_plain_function<function>,
                "weir::blocking(may_abandon, fn, args...): fn must not capture anything, because "
                "it may outlive its caller; give what it needs as arguments");
  static_assert((!detail::refers_elsewhere<std::decay_t<Args>> && ...),
                "weir::blocking(may_abandon, fn, args...): an argument is a pointer, a reference "
                "or a view, and may outlive what it points to; give a value");
  static_assert(detail::blocking_function<function, std::decay_t<Args>...>,
                "weir::blocking(may_abandon, fn, args...): fn cannot be called with these "
                "arguments; they are given as rvalues");
  if (detail::is_empty_callable(fn)) detail::raise_empty_job();
  return detail::make_blocking(true, std::forward<F>(fn), std::forward<Args>(args)...);
}

}  // namespace weir
