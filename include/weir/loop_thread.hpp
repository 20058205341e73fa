// SPDX-License-Identifier: MIT
// Threads with a loop: one (loop_thread), or several (runtime).
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/scope.hpp>

namespace weir {

struct loop_thread_options {
  weir::name name{};
};

}  // namespace weir

#include <weir/detail/toolkit/loop_thread.hpp>

namespace weir {

/// A thread with its own loop, for `on`, `spawn_on` and `post`.
///
/// Created with a scope, it is a background child of it: it ends, with everything that runs on it,
/// when the scope pops it, and destroying the handle changes nothing. Created without a scope,
/// outside loops, its destructor cancels and joins. Created on a loop without a scope:
/// errc::would_deadlock. In a simulation it is a simulated loop on the simulation's thread.
class loop_thread {
 public:
  explicit loop_thread(scope& s, const loop_thread_options& options = {})
      : handle_(&s, options.name, "loop_thread") {}
  explicit loop_thread(const loop_thread_options& options = {})
      : handle_(nullptr, options.name, "loop_thread") {}
  loop_thread(const loop_thread&) = delete;
  loop_thread& operator=(const loop_thread&) = delete;

  operator loop_ref() const noexcept { return handle_.ref(); }
  loop_ref ref() const noexcept { return handle_.ref(); }
  bool post(auto&& fn) const { return ref().post(std::forward<decltype(fn)>(fn)); }

 private:
  detail::thread_handle handle_;
};

namespace detail {

template <class F>
task<body_result_with<F, loop_thread>> run_with_loop_thread(kept_name name, F fn) {
  std::optional<loop_thread> t;  // outlives the operations there, which may use it
  auto body = [&](scope& s) -> task<body_result_with<F, loop_thread>> {
    t.emplace(s, loop_thread_options{.name = name.view()});
    co_return co_await fn(*t);
  };
  scope_options around;
  around.name = name.view().empty() ? weir::name("loop_thread") : weir::name(name.view());
  co_return co_await with_scope(around, body);
}

}  // namespace detail

/// Runs `fn(loop_thread&)`; the thread ends with it.
template <class F>
auto with_loop_thread(const loop_thread_options& options, F fn) {
  if constexpr (detail::check_body<F, loop_thread>()) {
    if (detail::is_empty_callable(fn)) detail::raise_empty_job();
    return detail::run_with_loop_thread<F>(detail::kept_name(options.name), std::move(fn));
  } else {
    return detail::refused();
  }
}
template <class F>
auto with_loop_thread(F fn) {
  return with_loop_thread(loop_thread_options{}, std::move(fn));
}

/// The number of hardware threads, at least 1.
std::int64_t hardware_threads() noexcept;

struct runtime_options {
  weir::name name{};
  std::int64_t threads = hardware_threads();
};

/// Several threads with a loop each; owned like a loop_thread.
class runtime {
 public:
  explicit runtime(scope& s, const runtime_options& options = {});
  explicit runtime(const runtime_options& options = {});
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;
  ~runtime();

  std::size_t size() const noexcept { return threads_.size(); }
  /// errc::invalid_argument if there is no such thread.
  loop_ref at(std::size_t index) const;
  /// The loop with the fewest unfinished remote children, parked ones included; the first of
  /// equals.
  loop_ref any() const;

 private:
  void start(scope* owner, const runtime_options& options);
  std::vector<detail::thread_handle> threads_;
  bool outside_ = false;  // of all scopes
};

}  // namespace weir
