// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>

#include "core/door.hpp"

namespace weir::detail {

/// While it exists, SIGINT and SIGTERM are counted for the given loop, and SIGQUIT requests a dump
/// of all loops, printed by the first watched loop that sees the request. The third interrupt
/// aborts the program, even if the loop is stuck. The previous handlers are restored when the last
/// watch is destroyed.
///
/// Nothing is handled before `watch`, so that a program can be refused before it has a loop. Throws
/// errc::busy if a stream has one of these signals.
class signal_watch {
 public:
  signal_watch();
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;
  ~signal_watch();
  /// Call once.
  void watch(door_ref to) noexcept;
  /// Whether SIGQUIT came since the last call on any loop.
  static bool take_dump_request() noexcept;

 private:
  door_ref door_;
  std::size_t place_;
};

/// A signal is handled either for loops (signal_watch) or for streams: claims it for streams, or
/// throws errc::busy. While it is claimed, a signal_watch is refused with errc::busy. Any thread.
void claim_signal(int number);
void unclaim_signal(int number) noexcept;

/// A thread started while this exists has all signals blocked: they are for the program's threads,
/// and a loop with handle_signals gets them anyway.
class no_signals {
 public:
  no_signals() noexcept;
  no_signals(const no_signals&) = delete;
  no_signals& operator=(const no_signals&) = delete;
  ~no_signals();
  /// The mask that the thread it is made on had before.
  const sigset_t& before() const noexcept { return before_; }

 private:
  sigset_t before_;
};

/// On a thread that was started with no_signals: what `program_signals` restores there.
void keep_program_mask(const sigset_t& mask) noexcept;

/// A thread started while this exists has the signal mask of the program, also if a thread of weir
/// that blocks signals starts it: processes inherit the mask of the thread that starts them, and
/// one that is started by a function on this thread must be possible to end.
class program_signals {
 public:
  program_signals() noexcept;
  program_signals(const program_signals&) = delete;
  program_signals& operator=(const program_signals&) = delete;
  ~program_signals();

 private:
  sigset_t before_;
};

}  // namespace weir::detail
