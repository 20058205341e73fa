// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>

#include "core/door.hpp"

namespace weir::detail {

/// While it lives, SIGINT and SIGTERM are counted for the given loop, and SIGQUIT asks for a dump
/// of all loops, which the first loop with a watch that gets to it prints. The third interrupt ends
/// the program at once, also if the loop is stuck. Earlier handlers come back when the last one
/// goes.
class signal_watch {
 public:
  explicit signal_watch(door_ref to);
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;
  ~signal_watch();
  /// Whether SIGQUIT came since this was last asked, by any loop.
  static bool take_dump_request() noexcept;

 private:
  door_ref door_;
  std::size_t place_;
};

/// A thread that is started while this lives gets no signals: they are for the threads of the
/// program, and a loop with handle_signals sees them anyway.
class no_signals {
 public:
  no_signals() noexcept;
  no_signals(const no_signals&) = delete;
  no_signals& operator=(const no_signals&) = delete;
  ~no_signals();

 private:
  sigset_t before_;
};

}  // namespace weir::detail
