// SPDX-License-Identifier: MIT
// The network of a simulated world, and its faults. The sockets of weir::io use it by themselves:
// on a simulated loop, io::listen and io::connect open no port and no descriptor.
//
// A host is a loop, by its name; the loop of world::run is "main". Byte streams lose and reorder
// nothing; what faults do to them is delay. Every random decision is a choice of the simulation, so
// a run that found a bug can be repeated; faults that are off add no choices.
//
// Threads: the simulation's thread only.
#pragma once

#include <string_view>

#include <weir/duration.hpp>

namespace weir {

namespace detail {
class network_state;
}

namespace sim {

/// What happens to each piece that one loop sends to another, or to itself: the bytes of one write,
/// the beginning and the end of a connection. Rates are from 0 (never) to 1 (always). What is under
/// way already is not affected by a change.
struct network_faults {
  /// How long a piece takes.
  duration latency{};
  /// Up to so much longer, at random. The pieces of a stream still arrive in order.
  duration jitter{};
  /// That a piece is lost: a stream sends it again, 200 ms later; a datagram is gone.
  double loss = 0;
  /// That a datagram arrives twice. Streams have no duplicates.
  double duplicate = 0;
};

/// Names are those of loops that the world has or had, and "main"; others are
/// errc::invalid_argument, and nothing changes.
class network {
 public:
  explicit network(detail::network_state& state) noexcept : state_(&state) {}
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  /// Rates outside of [0, 1] and negative durations: errc::invalid_argument, and nothing is set.
  void set(const network_faults& faults);
  /// Cuts two hosts off from each other: what is under way between them, and what they send, waits
  /// for `heal()`; datagrams are lost. Nobody is told. A host cannot be cut off from itself:
  /// errc::invalid_argument.
  void partition(std::string_view a, std::string_view b);
  /// Ends all partitions: what waited is sent on its way again.
  void heal();
  /// Breaks the connections between two hosts, or of one with itself: both ends see
  /// std::errc::connection_reset at once, and what was under way is lost.
  void reset(std::string_view a, std::string_view b);

 private:
  detail::network_state* state_;
};

}  // namespace sim
}  // namespace weir
