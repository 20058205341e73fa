// SPDX-License-Identifier: MIT
// Agents: objects with a mailbox. Their members are their state, their member functions the
// messages they handle.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>
#include <utility>

#include <weir/detail/agents/agent_call.hpp>
#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/agents/agent_life.hpp>
#include <weir/detail/agents/agent_timer.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/overflow.hpp>
#include <weir/scope.hpp>

namespace weir {

struct agent_options {
  weir::name name{};
  std::int64_t capacity = unbounded;  ///< of the mailbox, without the message being handled
  weir::overflow overflow =
      weir::overflow::reject;  ///< wait, reject, drop_oldest, drop_newest, stop
  loop_ref on{};               ///< the loop it runs on; unset: this loop
  weir::on_error on_error = weir::on_error::reply;
  mailbox on_restart = mailbox::drop;
  std::source_location site = std::source_location::current();
};

/// Returned by `cast_after` and `cast_every`. Destroying it does not cancel the timer. Any thread.
class timer_handle {
 public:
  timer_handle() noexcept = default;
  explicit timer_handle(detail::counted_ref<detail::agent_timer> timer) noexcept
      : timer_(std::move(timer)) {}
  /// Stops further casts; messages already in the mailbox stay there.
  void cancel() {
    detail::require_no_run("timer_handle");
    if (timer_) timer_->cancel();
  }

 private:
  detail::counted_ref<detail::agent_timer> timer_;
};

/// Refers to an agent across restarts. Copyable, usable on any thread, safe after the agent and its
/// loop have ended.
///
/// A message is a member function of `T` and its arguments, which are converted to the parameters'
/// decayed types when it is sent. Messages of one sender are handled in the order sent, one at a
/// time; a handler that returns a task is awaited before the next message. Costs: a cast on the
/// agent's own loop is a message from a free list and no atomic operation (one if the mailbox is
/// bounded); from elsewhere it is one push into the inbox of the agent's loop. In a durable run,
/// outside of steps, agents cannot be created or used: errc::not_journaled.
template <class T>
class agent_ref {
 public:
  explicit agent_ref(detail::agent_handle agent) noexcept : agent_(std::move(agent)) {}
  agent_ref(const agent_ref&) noexcept = default;
  agent_ref& operator=(const agent_ref&) noexcept = default;
  ~agent_ref() = default;

  /// Fire and forget: never waits; reports a full mailbox or an ended agent by its result. Throws
  /// what copying the arguments throws; a null handler is errc::empty_job. Starts a new chain of
  /// calls. A handler that throws crashes the agent.
  template <class F, class... A>
  sent cast(F handler, A&&... args) const {
    if constexpr (detail::check_handler<T, F, A...>()) {
      return reach()->cast(new detail::cast_envelope<T, F>(handler, std::forward<A>(args)...));
    } else {
      return detail::refused();
    }
  }

  /// If the mailbox is full, the overflow policy decides: `wait` waits for room, `drop_oldest`
  /// makes room; otherwise errc::mailbox_full. If the agent has ended, it throws what `call` would
  /// throw.
  template <class F, class... A>
  auto send(F handler, A&&... args) const {
    if constexpr (detail::check_handler<T, F, A...>()) {
      return detail::pending<detail::mail_send_wait>(
          {reach(), new detail::cast_envelope<T, F>(handler, std::forward<A>(args)...)});
    } else {
      return detail::refused();
    }
  }

  /// Sends when it is awaited, and waits for what the handler returns or throws. There is exactly
  /// one answer; if it is not the handler's, it is an agent_error: agent_stopped, agent_restarted,
  /// agent_crashed, mailbox_full, loop_gone, or call_cycle if the agent waits for the caller.
  /// Cancels: a call that is still queued is skipped; a call that is being handled runs to its end,
  /// and its answer is dropped (event `late_reply`). The agent is not cancelled.
  template <class F, class... A>
  auto call(F handler, A&&... args) const {
    if constexpr (detail::check_handler<T, F, A...>()) {
      return detail::pending<detail::call_wait<detail::call_result_t<F>>>(
          {reach(), new detail::call_envelope_of<T, F>(handler, std::forward<A>(args)...)});
    } else {
      return detail::refused();
    }
  }

  /// Casts after `d` to the agent's current life; dropped if that has ended by then, or if there is
  /// none.
  template <class F, class... A>
  timer_handle cast_after(duration d, F handler, A&&... args) const {
    if constexpr (detail::check_handler<T, F, A...>()) {
      return started(new detail::single_timer(
          reach(), d, new detail::cast_envelope<T, F>(handler, std::forward<A>(args)...)));
    } else {
      return {};
    }
  }
  /// Casts every `d`, first after `d`, on a fixed grid; missed casts are skipped. Copies the
  /// arguments.
  template <class F, class... A>
  timer_handle cast_every(duration d, F handler, A&&... args) const {
    if constexpr (detail::check_handler<T, F, A...>()) {
      detail::check_period(d, reach()->name());
      return started(
          new detail::timer_of<T, F>(agent_, d, true, handler, std::forward<A>(args)...));
    } else {
      return {};
    }
  }

  /// Asks the agent to stop after it has handled the queued messages, and returns at once. The
  /// future completes with this life and never fails; a handler that awaits its own agent's future
  /// gets errc::call_cycle. A supervisor restarts a permanent child.
  future<void> stop() const { return reach()->stop(); }
  /// Waits for permanent termination; never throws, however the agent ended.
  [[nodiscard]] auto join() const { return detail::pending<detail::join_agent_wait>({reach()}); }
  /// Waits for permanent termination and returns how it ended; may be called after it ended.
  [[nodiscard]] auto monitor() const { return detail::pending<detail::monitor_wait>({reach()}); }
  agent_info info() const { return reach()->info(); }
  std::string_view name() const noexcept { return agent_->name(); }

  friend bool operator==(const agent_ref& a, const agent_ref& b) noexcept {
    return a.agent_.get() == b.agent_.get();
  }

  // Below: for the library.
  detail::agent_core& core() const noexcept { return *agent_.get(); }

 private:
  const detail::agent_handle& reach() const {
    detail::require_no_run_for("agent", *agent_);
    return agent_;
  }
  static timer_handle started(detail::agent_timer* timer) {
    detail::counted_ref<detail::agent_timer> kept(timer);
    timer->start();
    return timer_handle(std::move(kept));
  }
  detail::agent_handle agent_;
};

}  // namespace weir

#include <weir/detail/agents/agent.hpp>

namespace weir {

/// Creates an agent owned by `s`: a service that is asked to stop, as by `stop()`, when the scope
/// pops it, and is cancelled (kind scope_ended) when the grace expires. It accepts messages at
/// once; `T` is constructed from `args` on the agent's loop before the first message. If the first
/// parameter of the constructor is a `scope&`, it gets the scope of this life, which ends before
/// the object is destroyed. A crash is a failure of `s`.
template <class T, class... A>
agent_ref<T> spawn_agent(scope& s, agent_options options, A&&... args) {
  s.require_open("spawn_agent");
  auto made = detail::make_agent<T>(detail::setup_of(options), std::forward<A>(args)...);
  detail::begin_in(s, made.core(), options.site);
  return made;
}

/// The agent that runs this code, in its constructor or in a handler.
template <class T>
agent_ref<T> self() {
  return agent_ref<T>(detail::agent_handle::share(&detail::current_agent(&detail::type_mark<T>)));
}

}  // namespace weir
