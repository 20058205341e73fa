// SPDX-License-Identifier: MIT
// Signals of the system as a stream.
#pragma once

#include <array>
#include <concepts>
#include <span>

#include <weir/stream/stream.hpp>

namespace weir::detail {

stream<int> watch_signals(std::span<const int> numbers);

}  // namespace weir::detail

namespace weir::io {

/// The given signals, as they come, from this call until the stream is destroyed; also those that
/// come before the first pull. Every stream sees every signal. A signal that comes again before it
/// was pulled is merged with the first; different signals keep their order. Waiting for a signal is
/// not a deadlock. Works in a simulation, too, for signals that the program raises itself.
///
/// While a stream exists, the signal does nothing else; when the last one is gone, the earlier
/// disposition is back, unless the program has replaced it meanwhile. Interrupted system calls are
/// restarted.
///
/// A signal that `run` handles (handle_signals): errc::busy; likewise `run` with handle_signals
/// while such a stream exists. Not a signal, SIGKILL, SIGSTOP, and faults (SIGSEGV, SIGBUS, SIGFPE,
/// SIGILL), which would repeat without end: errc::invalid_argument. In a durable run:
/// errc::not_journaled. Threads: pulled on one loop; the signal may arrive on any thread.
template <std::same_as<int>... More>
[[nodiscard]] stream<int> signals(int number, More... more) {
  const std::array<int, 1 + sizeof...(more)> numbers{number, more...};
  return detail::watch_signals(numbers);
}

}  // namespace weir::io
