// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include <weir/detail/io/datagram_core.hpp>

#include "sim/network.hpp"

namespace weir::detail {

/// A mailbox of a simulated network, as a socket for datagrams. Sending does not wait.
class sim_datagrams final : public datagram_core, private network_user {
 public:
  explicit sim_datagrams(std::shared_ptr<network_mailbox> mailbox);
  ~sim_datagrams() override;

  arrived receive(std::span<std::byte> into) noexcept override;
  int send(std::span<const std::byte> bytes, const io::endpoint& to) noexcept override;
  const char* refuses(const io::endpoint& to) const noexcept override;
  void close() noexcept override;
  io::endpoint local() const noexcept override { return local_; }

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side) noexcept override {}
  bool waits(network_side side) const noexcept override;
  void told() noexcept override { ready(io_side::read); }
  void orphaned() noexcept override { close_waits(); }

  std::shared_ptr<network_mailbox> mailbox_;
  io::endpoint local_;
};

}  // namespace weir::detail
