// SPDX-License-Identifier: MIT
// Parts of agents that the public templates do not need.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <mutex>
#include <vector>

#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/agents/agent_life.hpp>

#include "agents/mailbox_extra.hpp"
#include "core/door.hpp"
#include "core/loop.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

struct stop_future;

/// A waiter for the end of a life. Shared by the agent and a future, which may be destroyed first.
class stop_ticket final : public message {
 public:
  stop_ticket(stop_future* f, door_ref from) noexcept : future(f), home(std::move(from)) {}
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override { release(); }
  void release() noexcept {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// The life has ended: notifies the future's loop and drops the agent's reference.
  void settle() noexcept;

  std::atomic<std::uint32_t> refs{2};
  stop_future* future;    // used on the future's loop only; null: the future is gone
  bool expected = false;  // its loop expects an answer
  const door_ref home;
};

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

/// A sender that waits for room in a mailbox. Shared by the sender's wait and the message.
class room_ticket final : public message {
 public:
  enum class step : std::uint8_t { waiting, accepted, refused, abandoned };
  room_ticket(mail_send_wait& sender, door_ref from) noexcept
      : home(std::move(from)), waiter(&sender) {}
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override { release(); }
  void release() noexcept {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// Records the decision. Returns false if the sender has given up; then the message's reference
  /// is dropped.
  bool decide(step how, std::exception_ptr why) noexcept;
  /// Notifies the sender of the decision and drops the message's reference.
  void notify() noexcept;
  bool abandoned() const noexcept {
    return phase.load(std::memory_order_acquire) == step::abandoned;
  }

  std::atomic<std::uint32_t> refs{2};
  std::atomic<step> phase{step::waiting};
  std::exception_ptr problem;
  const door_ref home;
  mail_send_wait* waiter;  // used on the sender's loop only
};

/// Guards what several threads may do to an agent besides sending: watching its end, and using its
/// mailbox before it has a home.
std::recursive_mutex& lock_of(const agent_core& a) noexcept;

inline agent_extra& agent_core::extra() const noexcept {
  return static_cast<agent_extra&>(*mail_.get_extra());
}

inline void life_cycle::on(life_event e) noexcept {
  const agent_phase before = phase();
  assert(may_happen(before, e));
  phase_.store(phase_after(before, e),
               e == life_event::finish ? std::memory_order_release : std::memory_order_relaxed);
}

/// A call to make on the agent's loop. REQUIRES: `fn` does not throw.
template <class F>
struct agent_message final : message {
  agent_message(agent_core& a, F f) : agent(agent_handle::share(&a)), fn(std::move(f)) {}
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
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

/// Waits for the end of an agent, from any loop. `waiter` is used on its own loop only.
class end_watch final : public message {
 public:
  explicit end_watch(end_wait_base& w) : home(loop::here()->shared_door()), waiter(&w) {}
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override { delete this; }

  const door_ref home;
  end_wait_base* waiter;  // null: it has been withdrawn
  bool linked = false;    // the rest: behind the agent's lock
  end_watch* before = nullptr;
  end_watch* after = nullptr;
};

/// Removes the agent's name from the registry; false if it was not registered.
bool forget_agent(const agent_core& agent) noexcept;

}  // namespace weir::detail
