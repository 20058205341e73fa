// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/flow/oneshot.hpp>
#include <weir/future.hpp>
#include <weir/outcome.hpp>

namespace weir {

/// One value, or one error, for any number of readers. The first send wins.
///
/// Threads: home loop only (errc::wrong_loop). If it is destroyed unset, all waits for it or for
/// one of its futures fail with errc::abandoned.
template <class T = void>
class oneshot {
 public:
  oneshot() : core_(new detail::oneshot_core<T>) { core_.get()->home = home_.serial(); }
  oneshot(const oneshot&) = delete;
  oneshot& operator=(const oneshot&) = delete;
  ~oneshot() {
    if (!core_.get()->done()) detail::abandon_oneshot(*core_.get());
  }

  /// True if this value was stored; otherwise the arguments are untouched.
  template <class... Args>
    requires std::is_constructible_v<detail::stored_t<T>, Args...>
  bool send(Args&&... args) {
    check();
    if (core_.get()->done()) return false;
    out().emplace(std::forward<Args>(args)...);
    core_.get()->settle_now();
    return true;
  }
  /// As send, with an error. Null: errc::invalid_argument.
  bool fail(std::exception_ptr error) {
    check();
    detail::require_oneshot_error(error);
    if (core_.get()->done()) return false;
    out().set_error(std::move(error));
    core_.get()->settle_now();
    return true;
  }
  /// Waits for the value: `const T&`, which lives as long as the oneshot.
  [[nodiscard]] auto receive() {
    check();
    return detail::pending<detail::reference_wait<T>>(core_);
  }
  bool is_set() const noexcept { return core_.get()->done(); }
  /// May outlive the oneshot.
  [[nodiscard]] weir::future<T> future() {
    check();
    return weir::future<T>(core_);
  }

 private:
  void check() {
    if (!home_.is_here()) [[unlikely]]
      detail::settle_oneshot_home(home_, *core_.get());
  }
  outcome<T>& out() noexcept { return static_cast<detail::oneshot_core<T>*>(core_.get())->out; }
  detail::home home_;
  detail::core_ref core_;
};

}  // namespace weir
