// SPDX-License-Identifier: MIT
#include "io/sim_stream.hpp"

#include <cerrno>
#include <utility>

#include "core/loop.hpp"

namespace weir::detail {

io::endpoint endpoint_of(const network_address& a) {
  // The client of a path has neither a path nor a port.
  if (a.port == 0) return io::endpoint::of_bytes(io::endpoint::kind::unix_path, a.path, 0);
  return io::endpoint::of_loop(a.host, a.port);
}

sim_stream::sim_stream(std::shared_ptr<network_link> link, network_end& end)
    : link_(std::move(link)),
      end_(end),
      local_(endpoint_of(end.address())),
      peer_(endpoint_of(end.peer_address())) {
  end_.attach(*this);
}

sim_stream::~sim_stream() {
  require_idle();
  close();
}

io_try sim_stream::receive(std::span<std::byte> into) noexcept {
  const network_try got = end_.receive(into);
  return {got.bytes, got.error};
}

io_try sim_stream::send(std::span<const std::byte> bytes) noexcept {
  const network_try sent = end_.send(bytes);
  return {sent.bytes, sent.error};
}

int sim_stream::shutdown_write() noexcept { return in_dead_world() ? 0 : end_.shutdown_write(); }

void sim_stream::close() noexcept {
  if (!close_waits()) return;
  if (in_dead_world()) {
    end_.detach();
  } else {
    end_.close();
  }
}

bool sim_stream::has_arrived() noexcept {
  std::byte ignored{};
  return read({&ignored, 1}).error != EAGAIN;
}

int sim_stream::watch(io_side side) noexcept {
  end_.watch(static_cast<network_side>(side));
  return 0;
}

bool sim_stream::waits(network_side side) const noexcept {
  return waiting(static_cast<io_side>(side)) != nullptr;
}

void sim_stream::told() noexcept {
  for (const io_side side : {io_side::read, io_side::write, io_side::hangup}) ready(side);
}

}  // namespace weir::detail
