// SPDX-License-Identifier: MIT
// What every governor offers beside `acquire` and `try_acquire`, written once.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/governor/governor.hpp>
#include <weir/policy/deadline.hpp>

namespace weir::detail {

/// A function that a governor calls when it becomes idle.
class idle_listener {
 public:
  idle_listener() = default;
  idle_listener(const idle_listener&) = delete;
  idle_listener& operator=(const idle_listener&) = delete;
  virtual ~idle_listener() = default;
  /// Calls it; what it throws becomes the event `observer_failed` of `governor`.
  void notify(std::string_view governor) noexcept;

 private:
  virtual void call() = 0;
};

template <class F>
class idle_function final : public idle_listener {
 public:
  template <class Fn>
  explicit idle_function(Fn&& fn) : fn_(std::forward<Fn>(fn)) {}

 private:
  void call() override { fn_(); }
  F fn_;
};

/// An empty base of the governor `G`. It is public because it must be converted to `G`; the
/// governor names with `using` what it offers of it. `on_idle` needs `G::add_listener`.
template <class G>
class governor_facade {
 public:
  template <class Rep, class Period>
  auto acquire_for(std::chrono::duration<Rep, Period> d) {
    return with_timeout(d, self().acquire());
  }
  template <class Rep, class Period>
  auto acquire_for(std::chrono::duration<Rep, Period> d, std::int64_t weight)
    requires requires(G& g) { g.acquire(weight); }
  {
    return with_timeout(d, self().acquire(weight));
  }
  template <operation Op>
  auto with(Op&& op) {
    return weir::with(self(), std::forward<Op>(op));
  }
  template <class F>
  auto wrap(F&& fn) {
    return weir::wrap(self(), std::forward<F>(fn));
  }
  template <class F>
  void on_idle(F&& fn) {
    self().add_listener(std::make_unique<idle_function<std::decay_t<F>>>(std::forward<F>(fn)));
  }

 private:
  G& self() noexcept { return static_cast<G&>(*this); }
};

/// The same for a governor that refers to another one, and so is used as a constant.
template <class G>
class governor_facade<const G> {
 public:
  template <class Rep, class Period>
  auto acquire_for(std::chrono::duration<Rep, Period> d) const {
    return with_timeout(d, self().acquire());
  }
  template <operation Op>
  auto with(Op&& op) const {
    return weir::with(self(), std::forward<Op>(op));
  }
  template <class F>
  auto wrap(F&& fn) const {
    return weir::wrap(self(), std::forward<F>(fn));
  }

 private:
  const G& self() const noexcept { return static_cast<const G&>(*this); }
};

}  // namespace weir::detail
