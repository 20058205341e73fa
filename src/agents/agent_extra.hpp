// SPDX-License-Identifier: MIT
// Parts of agents that the public templates do not need.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <mutex>
#include <vector>

#include <weir/detail/agents/agent_call.hpp>
#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/agents/agent_life.hpp>
#include <weir/detail/core/reply.hpp>

#include "agents/mailbox_extra.hpp"
#include "core/door.hpp"
#include "core/loop.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

/// State that few agents need, allocated on demand: for a bounded mailbox, another loop, a
/// supervisor, a pool, a stop, a watch or an unwound call.
struct agent_extra : agent_mailbox::extra {
  loop_ref on{};
  bool elsewhere = false;
  std::uint32_t lives = 1;
  std::source_location site;  // where a supervised agent was added
  std::vector<stop_ticket*> stops;
  // Requests that arrived before the life that is about to begin.
  std::vector<agent_timer*> early_timers;
  bool early_crash = false;
  std::atomic<bool> crash_asked{false};  // a crash request of a full mailbox is on its way
  end_watch* watches = nullptr;          // behind the lock
  takedown_ref why_ended;                // behind the lock; null: no supervisor gave up
};

/// A sender that waits for room in a mailbox; the message is the answerer.
class room_ticket final : public reply_to<mail_send_wait>, public frame_allocated {
 public:
  void dispose() noexcept override { delete this; }
  /// Records the decision. Returns false if the sender has given up; then it is freed.
  bool decide(std::exception_ptr why) noexcept;

  std::exception_ptr problem;  // null: the message was accepted
};

/// Guards what several threads may do to an agent besides sending: watching its end, and using its
/// mailbox before it has a home.
std::recursive_mutex& lock_of(const agent_core& a) noexcept;

inline agent_extra& agent_core::extra() const noexcept {
  return static_cast<agent_extra&>(*mail_.get_extra());
}

inline agent_phase life_cycle::on(life_event e) noexcept {
  const agent_phase before = phase();
  assert(may_happen(before, e));
  const agent_phase after = phase_after(before, e);
  if (after != before)
    phase_.store(after,
                 e == life_event::finish ? std::memory_order_release : std::memory_order_relaxed);
  return after;
}

// Inline, because every message passes it. While the agent is draining there is a stop mark, so
// without one there is nothing to check.
inline envelope& agent_core::take() noexcept {
  const bool marked = mail_.is_marked();
  envelope& e = mail_.pop();
  if (marked) [[unlikely]]
    check_drained();
  if (mail_.is_bounded()) {
    mail_.give_back_place();
    if (mail_.has_line()) admit_line();
  }
  return e;
}

/// A call to make on the agent's loop. REQUIRES: `fn` does not throw.
template <class F>
struct agent_message final : message, frame_allocated {
  agent_message(agent_core& a, F f) : agent(agent_handle::share(&a)), fn(std::move(f)) {}
  void deliver(loop&) noexcept override {
    fn(*agent.get());
    delete this;
  }
  // The loop has ended, so nothing on it can touch the agent any more.
  void refuse() noexcept override {
    const std::lock_guard lock(lock_of(*agent.get()));
    fn(*agent.get());
    delete this;
  }
  agent_handle agent;
  F fn;
};

template <class F>
void agent_core::at_home(F&& what) noexcept {
  if (is_here()) return what(*this);
  post_home(std::forward<F>(what));
}

template <class F>
void agent_core::post_home(F&& what) noexcept {
  if (!has_home()) {
    const std::lock_guard lock(lock_of(*this));
    if (!has_home()) return what(*this);
  }
  const door_ref there = door_;
  there->post(*new agent_message<std::decay_t<F>>(*this, std::forward<F>(what)));
}

/// Waits for the end of an agent, from any loop. It waits exactly while it is in the agent's list.
class end_watch final : public reply_to<end_wait_base>, public frame_allocated {
 public:
  void dispose() noexcept override { delete this; }

  // Behind the agent's lock.
  end_watch* before = nullptr;
  end_watch* after = nullptr;
};

/// Removes the agent's name from the registry; false if it was not registered.
bool forget_agent(const agent_core& agent) noexcept;

}  // namespace weir::detail
