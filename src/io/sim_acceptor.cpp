// SPDX-License-Identifier: MIT
#include "io/sim_acceptor.hpp"

#include <cerrno>
#include <utility>

#include "core/loop.hpp"
#include "io/sim_stream.hpp"

namespace weir::detail {

sim_acceptor::sim_acceptor(std::shared_ptr<network_port> port)
    : port_(std::move(port)), local_(endpoint_of(port_->address())) {
  port_->attach(*this);
}

sim_acceptor::~sim_acceptor() {
  require_idle();
  close();
}

acceptor_core::accepted sim_acceptor::accept() {
  std::shared_ptr<network_link> link = port_->accept();
  if (link == nullptr) return {nullptr, EAGAIN};
  network_end& end = link->server;
  return {std::make_unique<sim_stream>(std::move(link), end), 0};
}

void sim_acceptor::close() noexcept {
  if (!close_waits()) return;
  if (in_dead_world()) {
    port_->detach();
  } else {
    port_->close();
  }
}

int sim_acceptor::watch(io_side) noexcept {
  port_->watch();
  return 0;
}

bool sim_acceptor::waits(network_side side) const noexcept {
  return side == network_side::read && waiting(io_side::read) != nullptr;
}

}  // namespace weir::detail
