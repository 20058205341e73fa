// SPDX-License-Identifier: MIT
// The one pump behind map_async, map_async_unordered, buffered, flat_map and the rate stages.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/flow/pump.hpp>
#include <weir/governor/governor.hpp>
#include <weir/scope.hpp>
#include <weir/stream/stream.hpp>

namespace weir::detail {

/// The permits of a pump that needs none.
struct no_permits {};

/// A pump whose child pulls every item of its source and collects results, which the stage gives
/// out one at a time. `State`, which derives from it, is the policy:
///   void collect(item&&, permit&&)     takes an item; without Permits: collect(item&&). It calls
///                                      news.notify() as soon as there is a result
///   pull give(out, owner)              value: a result; end: none now; pending: will notify
///   void clear()                       drops results and their permits
/// and, if it needs them:
///   room()                             without Permits: awaited before each pull
///   static constexpr const char* scope_name   items are worked on in children of `workers()`
///   task<> pull_source()               in place of pull_each(state), in that scope
///   void collected()                   nothing more will be collected
///
/// Invariants:
/// 1. A permit is acquired before each pull, so no item waits outside of the source without one.
/// 2. `fed_` means that no result is left to wait for: the last pull and last worker have ended,
///    or the consumer has come to an error. An error is kept in `failure_` before.
/// 3. The end and the error are delivered only after the child has ended, so that nothing of the
///    stream runs afterwards; the results that are left are dropped before.
template <class S, class State, class Permits = no_permits>
class collecting_pump : public pump_base {
  static constexpr bool governed = !std::is_same_v<Permits, no_permits>;

 public:
  static constexpr bool leaves_pending = true;

  explicit collecting_pump(S stage, Permits permits = {})
      : source(std::move(stage)), permits_(std::move(permits)) {}

  static task<> feed(State& self) {
    try {
      if constexpr (requires { State::scope_name; }) {
        auto body = [&](scope& s) {
          self.workers_ = &s;
          return start_pulling(self);
        };
        co_await with_scope({.name = State::scope_name}, body);
      } else {
        co_await pull_each(self);
      }
    } catch (...) {
      self.failure_ = std::current_exception();
    }
    self.fed_ = true;
    if constexpr (requires { self.collected(); }) self.collected();
    self.news.notify();
  }
  template <class V>
  pull take(std::optional<V>& out, composite& owner) {
    auto& self = static_cast<State&>(*this);
    const pull answer = self.give(out, owner);
    if (answer != pull::end) return answer;
    if (!fed_) return wait_for_news(owner);
    if (!poll_end(owner)) return pull::pending;
    self.clear();
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    return pull::end;
  }

  weir::pipeline<S> source;

 protected:
  ~collecting_pump() = default;

  static task<> pull_each(State& self) {
    for (;;) {
      if constexpr (governed) {
        permit held = co_await self.permits_.governor().acquire();
        auto next = co_await self.source.next();
        if (!next) break;
        self.collect(std::move(*next), std::move(held));
      } else {
        if constexpr (requires { self.room(); }) co_await self.room();
        auto next = co_await self.source.next();
        if (!next) break;
        self.collect(std::move(*next));
      }
    }
  }
  scope& workers() const noexcept { return *workers_; }
  bool fed() const noexcept { return fed_; }
  bool failed() const noexcept { return failure_ != nullptr; }
  /// The consumer has come to an error: everything else is cancelled, and then it is thrown.
  void fail(std::exception_ptr error) noexcept {
    failure_ = std::move(error);
    fed_ = true;
    cancel();
  }

 private:
  static task<> start_pulling(State& self) {
    if constexpr (requires { self.pull_source(); }) {
      return self.pull_source();
    } else {
      return pull_each(self);
    }
  }

  [[no_unique_address]] Permits permits_;
  scope* workers_ = nullptr;
  std::exception_ptr failure_;
  bool fed_ = false;
};

}  // namespace weir::detail
