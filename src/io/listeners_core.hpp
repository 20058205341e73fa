// SPDX-License-Identifier: MIT
// The listening sockets of several loops.
//
// A real one is kept as a plain descriptor, which belongs to no loop: while it is served, the loop
// has a duplicate of its own, which is registered, waited for and closed there. So whoever owns the
// `listeners` touches nothing of another thread. A simulated one is a listener of its loop, and is
// closed there, by a message, because fibers of that loop may wait for it.
#pragma once

#include <memory>
#include <vector>

#include <weir/event.hpp>
#include <weir/io/listener.hpp>
#include <weir/loop_ref.hpp>

#include "io/system.hpp"

namespace weir::detail {

class tls_server;

class listeners_core {
 public:
  struct place {
    loop_ref at;
    owned_descriptor descriptor{};  // empty in a simulation
    io::listener simulated{};
  };

  io::endpoint local{};
  std::vector<place> places;
  std::shared_ptr<tls_server> tls;  // null: connections are not encrypted
  bool closed = false;
  event stop;       // set when it is closed while it is served
  int serving = 0;  // calls of serve, which may use the simulated listeners

  void close() noexcept;
};

}  // namespace weir::detail
