// SPDX-License-Identifier: MIT
// What agents are made of besides what templates need.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include <weir/detail/agent_core.hpp>
#include <weir/detail/agent_life.hpp>

#include "core/door.hpp"
#include "core/loop.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

struct stop_future;

/// Who waits for the end of a life. Shared by the agent and by a future, which may be gone before.
class stop_ticket final : public message {
 public:
  stop_ticket(stop_future* f, door_ref from) noexcept : told(f), home(std::move(from)) {}
  void deliver(loop& here) noexcept override;
  void refuse() noexcept override { release(); }
  void release() noexcept {
    if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// The life has ended. Drops the agent's reference.
  void settle() noexcept;

  std::atomic<std::uint32_t> refs{2};
  stop_future* told;      // the future's loop only; null: it is gone
  bool expected = false;  // its loop counts on an answer
  const door_ref home;
};

/// What few agents need: those with a bounded mailbox, on another loop, in a pool, or asked to
/// stop.
struct agent_extras {
  std::int64_t capacity = unbounded;
  weir::overflow overflow = weir::overflow::reject;
  loop_ref on{};
  bool elsewhere = false;
  std::uint32_t lives = 1;
  std::source_location site;       // where a supervised one was added
  envelope* stop_after = nullptr;  // the last message before the stop
  /// Messages that have a place in the mailbox or stand in line for one.
  std::atomic<std::int64_t> occupied{0};
  // The line of those who wait for room, first come, first served; its loop only.
  envelope* line_first = nullptr;
  envelope* line_last = nullptr;
  std::size_t line_size = 0;
  std::size_t sweep_at = 16;
  std::uint64_t old_mail = 0;     // between two lives: the messages of the time before
  envelope* set_aside = nullptr;  // calls whose handlers were unwound
  std::vector<stop_ticket*> stops;
  // What came before the life that is awaited.
  std::vector<agent_timer*> early_timers;
  bool early_crash = false;
  std::atomic<bool> crash_asked{false};  // of a mailbox that was full: the request is on its way
  end_watch* watches = nullptr;          // behind the lock
  takedown_ref why_ended;                // behind the lock; null: no supervisor gave up
};

/// Who waits for room in a mailbox. Shared by the waiting sender and the message.
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
  /// How it ends, unless the sender has given up: then false, and the message's reference is gone.
  bool decide(step how, std::exception_ptr why) noexcept;
  /// Tells the sender what was decided, and drops the message's reference.
  void tell() noexcept;
  bool abandoned() const noexcept {
    return phase.load(std::memory_order_acquire) == step::abandoned;
  }

  std::atomic<std::uint32_t> refs{2};
  std::atomic<step> phase{step::waiting};
  std::exception_ptr problem;
  const door_ref home;
  mail_send_wait* waiter;  // the sender's loop only
};

/// Guards what several threads may do to one agent besides sending: watching its end, and its
/// mailbox while it has no home.
std::recursive_mutex& lock_of(const agent_core& a) noexcept;

/// A call to be made on the loop of an agent. REQUIRES: `fn` does not throw.
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
  // The loop is gone, and with it everybody else who could touch the agent.
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

/// Waits for the end of an agent, from any loop. The wait is touched on its own loop only.
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

/// Takes the name of an agent out of the registry; false if it is not there.
bool forget_agent(const agent_core& agent) noexcept;

}  // namespace weir::detail
