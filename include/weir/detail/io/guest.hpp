// SPDX-License-Identifier: MIT
// A loop that is a guest in the event loop of another library (the host), and has no thread of its
// own: the host calls it when there is something to do, and it asks the host to be called again.
//
// Invariants:
// 1. The loop has one thread: the one on which it was made. Calls on other threads end the process
//    (`visit`), because then two threads run the host at the same time.
// 2. Outside of a visit the loop sleeps: nothing is ready, or the host was asked for a turn
//    (`turn_soon`). What can wake it is watched by the host: the reactor's descriptor (weir's own
//    I/O and, through the bell, messages of other threads) and the time of the first timer.
// 3. A visit (`guest_loop::visit`) is the way in. The outermost one makes one turn when it ends, of
//    at most 64 strands, and then restores 2. If more is ready, the next turn is queued behind what
//    the host has queued already. So neither side starves the other: each runs what the other has
//    queued before it runs what it has queued itself in between.
// 4. A fiber may call the host, and the host the guest (a handler that is invoked at once). Such an
//    inner visit makes no turn: the turn that runs continues.
// 5. The loop exists while one of its operations is pending. When the last one has ended, what
//    other loops have started here is cancelled, as at the end of `run`; then it is over, and the
//    host destroys it, unless another operation is started before.
// 6. That nothing is ready is not a deadlock: the host's handlers may do anything.
//
// Why no wake-up is lost: at the end of a turn `door::begin_watch` fails if a message or a ring has
// come meanwhile, and then another turn is asked for. What comes later writes to the bell's
// descriptor, which makes the reactor's descriptor readable. The host's watch of that is level
// triggered when it is begun, and is begun again after each time it has fired. Readiness of weir's
// own descriptors takes the same way. A timer that is due earlier than the time the host was asked
// for is asked for at the end of the turn that armed it: timers are armed by fibers.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <source_location>

#include <weir/cancel_reason.hpp>
#include <weir/duration.hpp>

namespace weir::detail {

class guest_loop;
class outside_wait;
struct fiber;

/// What a guest needs of its host. Called on the loop's thread.
class guest_host {
 public:
  guest_host(const guest_host&) = delete;
  guest_host& operator=(const guest_host&) = delete;
  /// Makes a visit soon, after what is queued already. Asking twice is asking once.
  virtual void turn_soon() noexcept = 0;
  /// Makes a visit at `when`; replaces an earlier wish.
  virtual void wake_at(time_point when) noexcept = 0;
  /// Calls `guest_loop::readable` once, when the descriptor is.
  virtual void watch(int descriptor) noexcept = 0;
  /// The loop is over: destroy it, but not in this call.
  virtual void loop_is_over() noexcept = 0;

 protected:
  guest_host() = default;
  ~guest_host() = default;
};

/// An operation that was started on a guest.
class guest_op {
 public:
  guest_op(const guest_op&) = delete;
  guest_op& operator=(const guest_op&) = delete;
  /// Its fiber has ended. Called between two turns.
  virtual void ended() noexcept = 0;

 protected:
  guest_op() = default;
  ~guest_op() = default;
};

/// See the top of this file. Each function that is not const is a visit.
class guest_loop {
 public:
  /// Throws weir::error if the system has no more descriptors.
  explicit guest_loop(guest_host& host);
  guest_loop(const guest_loop&) = delete;
  guest_loop& operator=(const guest_loop&) = delete;
  /// REQUIRES: over().
  ~guest_loop();

  /// The guest whose loop is the current one of this thread; null outside, and in other loops.
  static guest_loop* here() noexcept;
  guest_host& host() const noexcept { return host_; }
  /// Whether this is the thread of the loop.
  bool is_here() const noexcept;
  /// No operation is pending, and nothing runs.
  bool over() const noexcept;
  /// No operation is pending, and the rest is being cancelled.
  bool ending() const noexcept;

  void turn() noexcept;
  /// The watched descriptor is readable.
  void readable() noexcept;
  /// The time of `wake_at` has come.
  void time_passed() noexcept;
  /// Starts `f`; `op`, if any, is told of its end.
  void start(fiber& f, guest_op* op, std::source_location site) noexcept;
  void cancel(fiber& f, const cancel_reason& why) noexcept;
  /// The wait has its result.
  void complete(outside_wait& w) noexcept;
  void emit(const char* name, const std::exception_ptr& error) noexcept;

  /// Calls `fn(argument)` while the loop is the current one of this thread, without a turn: what
  /// the host runs meanwhile may use the objects of the loop. May throw.
  void make_current(void (*fn)(void*), void* argument);
  /// Handlers of the host have run in `make_current`: asks for a turn if they have made something
  /// ready.
  void host_has_run() noexcept;

  /// The host is destroyed: ends the process with the tree. `guest` may be null; `unstarted`
  /// operations were handed over and have not begun.
  [[noreturn]] static void host_destroyed(guest_loop* guest, std::size_t unstarted) noexcept;

 private:
  class visit;
  class end_watch;
  struct state;
  void settle() noexcept;
  void tell_ended() noexcept;

  guest_host& host_;
  std::unique_ptr<state> state_;
};

}  // namespace weir::detail
