// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <weir/detail/core/loop_ref.hpp>

namespace weir {

/// While it exists, an idle loop is not reported as deadlocked, because a plain thread will post to
/// it.
class keep_alive_guard {
 public:
  keep_alive_guard() noexcept = default;
  explicit keep_alive_guard(std::shared_ptr<detail::door> door) noexcept;
  keep_alive_guard(keep_alive_guard&& other) noexcept = default;
  keep_alive_guard& operator=(keep_alive_guard&& other) noexcept;
  ~keep_alive_guard();

 private:
  void let_go() noexcept;
  std::shared_ptr<detail::door> door_;
};

/// A handle to a loop. Trivially copyable, usable on any thread, safe after the loop has ended. In
/// a durable run, outside of steps: errc::not_journaled.
class loop_ref {
 public:
  constexpr loop_ref() noexcept = default;
  constexpr loop_ref(std::uint32_t index, std::uint32_t serial) noexcept
      : index_(index), serial_(serial) {}

  /// Calls `fn` on the loop's thread between two turns, in order of posting. False if the loop has
  /// ended: `fn` is then destroyed without being called. A simulated loop takes messages from its
  /// own thread only (errc::wrong_loop).
  template <class F>
  bool post(F&& fn) const {
    return detail::post_to(
        *this, std::make_unique<detail::posted_function<std::decay_t<F>>>(std::forward<F>(fn)));
  }
  /// True while the loop runs.
  bool alive() const;
  [[nodiscard]] keep_alive_guard keep_alive() const;

  friend bool operator==(const loop_ref&, const loop_ref&) = default;
  std::uint32_t index() const noexcept { return index_; }
  std::uint32_t serial() const noexcept { return serial_; }

 private:
  std::uint32_t index_ = 0;
  std::uint32_t serial_ = 0;
};

/// The loop that runs the calling code. Outside a loop: errc::no_current_fiber.
loop_ref this_loop();

}  // namespace weir
