// SPDX-License-Identifier: MIT
// Part of <weir/loop_thread.hpp>, which includes it after the declarations it needs.
#pragma once

#include <memory>
#include <type_traits>

#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

class served_loop;

/// The result type of the coroutine `fn(Owned&)`.
template <class F, class Owned>
using body_result_with = result_t<std::invoke_result_t<F&, Owned&>>;

/// Rejects callables that cannot be the body of with_pool or with_loop_thread.
template <class F, class Owned>
constexpr bool check_body() {
  static_assert(std::is_invocable_v<F&, Owned&>,
                "the body of with_pool takes a weir::pool&, that of with_loop_thread a "
                "weir::loop_thread&");
  if constexpr (std::is_invocable_v<F&, Owned&>) {
    using result = std::remove_cvref_t<std::invoke_result_t<F&, Owned&>>;
    static_assert(is_task<result>,
                  "the body of with_pool or with_loop_thread must return weir::task<T> (make it a "
                  "coroutine)");
    return is_task<result>;
  } else {
    return false;
  }
}

/// A served loop and its owner: a scope, or the handle.
class thread_handle {
 public:
  thread_handle(scope* owner, const weir::name& name, const char* what);
  thread_handle(thread_handle&& other) noexcept = default;
  thread_handle& operator=(thread_handle&& other) noexcept = delete;
  ~thread_handle();
  loop_ref ref() const noexcept;
  /// Cancels the operations running there; the loop ends when they are joined.
  void end() noexcept;

 private:
  std::shared_ptr<served_loop> loop_;
  bool owned_by_scope_;
};

}  // namespace detail
}  // namespace weir
