// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <weir/io/listener.hpp>

#include "sim/network.hpp"

namespace weir::detail {

/// A port of a simulated network, as a listening socket.
class sim_acceptor final : public acceptor_core, private network_user {
 public:
  explicit sim_acceptor(std::shared_ptr<network_port> port);
  ~sim_acceptor() override;

  accepted accept() override;
  bool has_connection() noexcept override { return port_->has_connection(); }
  void close() noexcept override;
  io::endpoint local() const noexcept override { return local_; }

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side) noexcept override {}
  bool waits(network_side side) const noexcept override;
  void told() noexcept override { ready(io_side::read); }
  void orphaned() noexcept override { close_waits(); }

  std::shared_ptr<network_port> port_;
  io::endpoint local_;
};

}  // namespace weir::detail
