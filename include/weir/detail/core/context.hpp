// SPDX-License-Identifier: MIT
// The machinery of <weir/context.hpp>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <weir/cancel_reason.hpp>
#include <weir/detail/core/frame.hpp>
#include <weir/duration.hpp>
#include <weir/task.hpp>

namespace weir {

class scope;

namespace detail {

struct fiber;
struct generator_base;
struct polite_service;
struct cancel_tree;  // the implementation's view of a context, in src/core/cancel_tree.hpp

enum class region_kind : std::uint8_t {
  fiber,    // a child, up to its end
  scope,    // the body and the children of with_scope, and the root
  arms,     // the children of a combinator
  settle,   // settle, finally: a plain region
  timeout,  // with_timeout, with_deadline
  token,    // with_token
  local,    // with_local
  shield,   // shield: outer cancellation stops here
  cleanup,  // a running defer: shielded too
  stream,   // a generator, inside the region of its consumer
};

/// Something that a context owns until it ends: a defer, a service, a std::stop_source.
/// Popped in reverse order of registration.
struct entry : frame_allocated {
  enum class kind : std::uint8_t { defer, background, stop, bottom };

  explicit entry(kind k) noexcept : what(k) {}
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
  virtual ~entry() = default;
  /// Runs a defer: returns a task to be awaited, or an empty task if it has finished.
  virtual task<> run(const outcome_view&) { return task<>(nullptr); }
  /// The service, of an entry of kind `background`.
  virtual fiber* service() noexcept { return nullptr; }
  /// How that service is asked to stop; null: it is cancelled.
  virtual polite_service* polite() noexcept { return nullptr; }
  /// Called when it has left the stack.
  virtual void discard() noexcept { delete this; }

  entry* below = nullptr;
  entry* above = nullptr;
  kind what;
};

template <class F>
inline constexpr bool takes_view = std::is_invocable_v<F&, const outcome_view&>;

template <class F>
struct defer_entry final : entry {
  static_assert(alignof(F) <= 16, "the function is over-aligned; keep what needs it elsewhere");
  template <class G>
  explicit defer_entry(G&& g) : entry(kind::defer), fn(std::forward<G>(g)) {}
  task<> run(const outcome_view& how) override {
    if constexpr (takes_view<F>) {
      return finish([&]() -> decltype(auto) { return fn(how); });
    } else {
      return finish([&]() -> decltype(auto) { return fn(); });
    }
  }

 private:
  template <class Call>
  static task<> finish(Call&& call) {
    using result = decltype(call());
    if constexpr (is_task<result>) {
      static_assert(std::is_same_v<result, task<>>, "a defer returns void or weir::task<>");
      return call();
    } else {
      static_assert(std::is_void_v<result>, "a defer returns void or weir::task<>");
      call();
      return task<>(nullptr);
    }
  }

  F fn;
};

}  // namespace detail
}  // namespace weir
