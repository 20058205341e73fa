// SPDX-License-Identifier: MIT
// The life cycle of an agent: its phases, the events that change them, and the table of both.
//
//                    request     born      handle  pause  wind_up  stop        cut
//   unborn           coming      starting  x       x      x        unborn_s    .
//   unborn_stopped   coming_s    draining  x       x      x        .           .
//   coming           .           starting  x       x      x        coming_s    coming_cut
//   coming_stopped   .           draining  x       x      x        .           coming_cut
//   coming_cut       .           cut       x       x      x        .           .
//   starting         x           x         running idle   ending   draining    cut
//   idle             x           x         running idle   ending   draining    cut
//   running          x           x         running idle   ending   draining    cut
//   ending           x           x         running idle   ending   draining    cut
//   draining         x           x         .       .      .        .           cut
//   drained          x           x         .       .      .        .           cut
//   cut              x           x         .       .      .        .           .
//   between          coming      starting  .       .      .        unborn_s *  .
//   shut             coming      starting  .       .      .        .           .
//   over             .           .         .       .      .        .           .
//
//   . the phase stays    x cannot happen    _s short for _stopped
//   * only before the first life; later there is nothing to stop between two lives
//
// In every phase but `over`, `expect` leads to `between` and `shut` to `shut`. `drained` leads from
// `draining` to `drained`, `end` from the phases with a life to `between`, and `finish` from `shut`
// to `over`, which is final.
//
// Invariants:
// 1. An agent has a life in the phases from `starting` to `cut`, and in no other, except a life
//    that outlived the patience of its supervisor: it is cancelled, and its events change nothing.
// 2. In an agent_pool the phase is that of all lives together: while one of them is ending, another
//    may handle a message.
// 3. A stop that comes before the life applies to that life.
//
// Threads: the phase changes on the agent's loop (or behind its lock while it has no home); any
// thread may read it.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::detail {

/// In this order: before a life, with a life, after a life.
enum class agent_phase : std::uint8_t {
  unborn,          // no life was requested
  unborn_stopped,  // the same, and a stop waits for the first life
  coming,          // a life was requested on another loop
  coming_stopped,  // the same, and a stop waits for the life
  coming_cut,      // the same, and the life will end without constructing its object
  starting,        // a life has begun
  idle,            // it waits for a message
  running,         // it handles messages
  ending,          // it ends because of a crash or cancellation
  draining,        // stop was requested: it ends after the messages queued by then
  drained,         // those have been handled: it ends after its current handler
  cut,             // it ends after its current handler, regardless of the mailbox
  between,         // the life has ended; the owner decides what follows, or starts the next one
  shut,            // no life follows unless the owner revives the agent
  over,            // permanently terminated
};

enum class life_event : std::uint8_t {
  request,  // the owner asks for a life on another loop
  born,     // the first concurrent life has begun
  handle,   // a life takes a message
  pause,    // a life finds the mailbox empty
  wind_up,  // a life takes no more messages
  stop,     // stop() was called
  drained,  // no message from before the stop is left in the mailbox
  cut,      // the owner asks the life to end soon
  end,      // the last concurrent life has ended; the owner decides what follows
  expect,   // the owner decided: another life
  shut,     // the owner decided: no other life
  finish,   // the same, permanently
};

constexpr bool is_within(agent_phase p, agent_phase first, agent_phase last) noexcept {
  return p >= first && p <= last;
}
/// A life was requested on another loop and has not begun.
constexpr bool is_coming(agent_phase p) noexcept {
  return is_within(p, agent_phase::coming, agent_phase::coming_cut);
}
/// It has a life that was not asked to end.
constexpr bool is_serving(agent_phase p) noexcept {
  return is_within(p, agent_phase::starting, agent_phase::ending);
}
constexpr bool has_life(agent_phase p) noexcept {
  return is_within(p, agent_phase::starting, agent_phase::cut);
}
constexpr bool is_before_life(agent_phase p) noexcept { return p <= agent_phase::coming_cut; }

/// Whether the table has no x for them.
constexpr bool may_happen(agent_phase p, life_event e) noexcept {
  switch (e) {
    case life_event::request:
    case life_event::born:
      return !has_life(p);
    case life_event::handle:
    case life_event::pause:
    case life_event::wind_up:
    case life_event::end:
      return !is_before_life(p);
    case life_event::drained:
      return p == agent_phase::draining;
    case life_event::finish:
      return p == agent_phase::shut || p == agent_phase::over;
    case life_event::stop:
    case life_event::cut:
    case life_event::expect:
    case life_event::shut:
      break;
  }
  return true;
}

/// The table, one event at a time. REQUIRES: may_happen(p, e).
constexpr agent_phase phase_after(agent_phase p, life_event e) noexcept {
  using enum agent_phase;
  const bool stopped_early = p == unborn_stopped || p == coming_stopped;
  switch (e) {
    case life_event::request:
      if (p == unborn || p == between || p == shut) return coming;
      return p == unborn_stopped ? coming_stopped : p;
    case life_event::born:
      if (p == coming_cut) return cut;
      return p == over ? over : stopped_early ? draining : starting;
    case life_event::handle:
      return is_serving(p) ? running : p;
    case life_event::pause:
      return is_serving(p) ? idle : p;
    case life_event::wind_up:
      return is_serving(p) ? ending : p;
    case life_event::stop:
      if (p == unborn || p == between) return unborn_stopped;
      return p == coming ? coming_stopped : is_serving(p) ? draining : p;
    case life_event::drained:
      return drained;
    case life_event::cut:
      return is_coming(p) ? coming_cut : has_life(p) ? cut : p;
    case life_event::end:
      return has_life(p) ? between : p;
    case life_event::expect:
      return p == over ? over : between;
    case life_event::shut:
      return p == over ? over : shut;
    case life_event::finish:
      break;
  }
  return over;
}

class life_cycle {
 public:
  agent_phase phase() const noexcept { return phase_.load(std::memory_order_relaxed); }
  /// Any thread: what was written before the permanent termination is visible if this is true.
  bool is_over() const noexcept {
    return phase_.load(std::memory_order_acquire) == agent_phase::over;
  }
  /// Lives end after their current handler, if they have not ended.
  bool is_end_due() const noexcept { return phase() >= agent_phase::drained; }
  /// Changes the phase as the table says, and returns it; debug builds assert that the event may
  /// happen.
  agent_phase on(life_event e) noexcept;

 private:
  std::atomic<agent_phase> phase_{agent_phase::unborn};
};

}  // namespace weir::detail
