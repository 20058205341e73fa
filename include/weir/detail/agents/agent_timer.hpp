// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <tuple>
#include <utility>

#include <weir/detail/agents/agent_call.hpp>
#include <weir/detail/core/alarm.hpp>
#include <weir/duration.hpp>

namespace weir::detail {

/// Casts a message later, once or periodically, to the life that was alive when it was armed.
/// Shared by that life and the handle.
class agent_timer : public counted<agent_timer>, private alarm {
 public:
  agent_timer(agent_handle to, duration period, bool repeats) noexcept
      : to_(std::move(to)), period_(period), repeats_(repeats) {}
  /// Any thread: arms it on the agent's loop.
  void start() noexcept;
  /// Any thread: stops further casts.
  void cancel() noexcept;
  /// The agent's loop: arms it, in the current life or the one about to start.
  void start_here() noexcept;
  /// The agent's loop: leaves its life.
  void drop() noexcept;

 protected:
  virtual ~agent_timer() = default;
  virtual envelope* make_message() = 0;

 private:
  friend class counted<agent_timer>;
  void rang() noexcept override;
  void cancel_here() noexcept;

  std::atomic<bool> cancelled_{false};
  agent_handle to_;
  duration period_;
  bool repeats_;
  time_point due_{};
  agent_life* life_ = nullptr;  // null: it is not armed
  agent_timer* before_ = nullptr;
  agent_timer* after_ = nullptr;
};

template <class T, class F>
class timer_of final : public agent_timer {
 public:
  template <class... A>
  timer_of(agent_handle to, duration period, bool repeats, F fn, A&&... args)
      : agent_timer(std::move(to), period, repeats), fn_(fn), args_(std::forward<A>(args)...) {
    if (fn == nullptr) raise_empty_handler();
  }

 private:
  envelope* make_message() override {
    return std::apply(
        [&](const auto&... args) -> envelope* { return new cast_envelope<T, F>(fn_, args...); },
        args_);
  }
  F fn_;
  typename handler<F>::arguments args_;
};

/// Fires once; holds its message from the start.
class single_timer final : public agent_timer {
 public:
  single_timer(agent_handle to, duration delay, envelope* message) noexcept
      : agent_timer(std::move(to), delay, false), message_(message) {}

 private:
  envelope* make_message() override { return message_.release(); }
  envelope_owner<envelope> message_;
};

/// Throws errc::invalid_argument.
void check_period(duration d, std::string_view agent);

}  // namespace weir::detail
