// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>

#include <weir/detail/io/stream_core.hpp>
#include <weir/io/endpoint.hpp>

#include "sim/network.hpp"

namespace weir::detail {

io::endpoint endpoint_of(const network_address& a);

/// One end of a connection in a simulated network, as a socket. What it does in a dead world has no
/// effect: the network itself resets the connections of a loop that has crashed.
class sim_stream final : public stream_core, private network_user {
 public:
  /// `end` is one of `link`.
  sim_stream(std::shared_ptr<network_link> link, network_end& end);
  ~sim_stream() override;

  /// Whether the connection has been made, or its attempt has failed; then why, or 0.
  bool settled() const noexcept { return end_.settled(); }
  int error() const noexcept { return end_.error(); }

  io_try receive(std::span<std::byte> into) noexcept override;
  io_try send(std::span<const std::byte> bytes) noexcept override;
  int shutdown_write() noexcept override;
  void close() noexcept override;
  io::endpoint peer() const noexcept override { return peer_; }
  io::endpoint local() const noexcept override { return local_; }
  bool hung_up() const noexcept override { return end_.hung_up(); }
  bool has_arrived() noexcept override;

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side) noexcept override {}
  bool waits(network_side side) const noexcept override;
  void told() noexcept override;
  void orphaned() noexcept override { close_waits(); }

  std::shared_ptr<network_link> link_;
  network_end& end_;
  io::endpoint local_;
  io::endpoint peer_;
};

}  // namespace weir::detail
