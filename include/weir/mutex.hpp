// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/name.hpp>

namespace weir {

class mutex;

namespace detail {
class lock_wait;
}

/// Holds a mutex. RAII, movable; unlocking twice does nothing.
class [[nodiscard]] mutex_guard {
 public:
  mutex_guard() noexcept = default;
  mutex_guard(mutex_guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  mutex_guard& operator=(mutex_guard&& other) noexcept {
    mutex_guard old(std::move(*this));
    mutex_ = std::exchange(other.mutex_, nullptr);
    return *this;
  }
  ~mutex_guard() { unlock(); }
  void unlock() noexcept;
  explicit operator bool() const noexcept { return mutex_ != nullptr; }

 private:
  friend class mutex;
  friend class detail::lock_wait;
  explicit mutex_guard(mutex& m) noexcept : mutex_(&m) {}
  mutex* mutex_ = nullptr;
};

}  // namespace weir

#include <weir/detail/flow/lock_wait.hpp>

namespace weir {

/// Mutual exclusion of the fibers of a loop, first come, first served, also across awaits. Not
/// recursive: locking twice in one fiber is a deadlock, and reported as one.
///
/// Unlocking hands over directly to the next waiter: no barging. Threads: home loop only
/// (errc::wrong_loop). Cancels: a waiter leaves in O(1); a cancelled holder unlocks by the
/// destructor of its guard. Destroying it while it is held or fibers wait aborts with its name.
class mutex {
 public:
  explicit mutex(weir::name name = {}) : name_(name) {}
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  ~mutex();

  [[nodiscard]] detail::pending<detail::lock_wait> lock() {
    check();
    return detail::pending<detail::lock_wait>({this});
  }
  /// Never waits; empty if it is locked.
  [[nodiscard]] std::optional<mutex_guard> try_lock();
  bool locked() const noexcept { return locked_; }
  std::string_view name() const noexcept { return name_.view(); }

 private:
  friend class mutex_guard;
  friend class detail::lock_wait;
  void check() {
    if (!home_.is_here()) [[unlikely]]
      settle_home();
  }
  void settle_home();
  void unlock() noexcept;
  void check_unlock() const noexcept;
  void hold(detail::fiber* owner) noexcept;
  detail::object_name self() const noexcept { return {"mutex", name_.view()}; }

  detail::wait_list waiters_;
  detail::fiber* owner_ = nullptr;  // counted; the fiber that locked it, to report deadlock cycles
  detail::home home_;
  bool locked_ = false;
  detail::kept_name name_;
};

inline void mutex_guard::unlock() noexcept {
  if (mutex* held = std::exchange(mutex_, nullptr)) held->unlock();
}

}  // namespace weir
