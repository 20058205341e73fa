// SPDX-License-Identifier: MIT
// A byte stream over a descriptor of the system.
//
// What the reactor's edges said is kept in flags. `readable_` and `writable_` are false only after
// a try that left nothing: EAGAIN, or fewer bytes than asked for over TCP, where the queue was
// empty then, unless the peer has ever sent urgent data, before which a read stops. An edge makes
// them true again. So an operation that finds its flag false waits without a system call, and one
// that finds it true tries. Before the descriptor is registered the flags are true: the first
// operation that must wait registers it, and epoll reports what is ready at that time.
#pragma once

#include <weir/detail/io/stream_core.hpp>

#include "io/reactor.hpp"
#include "io/system.hpp"

namespace weir::detail {

class descriptor_stream final : public stream_core, private reactor_entry {
 public:
  descriptor_stream(owned_descriptor descriptor, const io::endpoint& peer) noexcept;
  ~descriptor_stream() override;

  io_try receive(std::span<std::byte> into) noexcept override;
  io_try send(std::span<const std::byte> bytes) noexcept override;
  int shutdown_write() noexcept override;
  void close() noexcept override;
  void cut() noexcept override;
  io::endpoint peer() const noexcept override { return peer_; }
  io::endpoint local() const noexcept override { return local_of(descriptor_.get()); }
  std::optional<io::credentials> peer_credentials() const override;
  int native_handle() const noexcept override { return descriptor_.get(); }
  bool hung_up() const noexcept override;
  bool has_arrived() noexcept override;
  void stir() noexcept override;

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side side) noexcept override;
  void happened(reactor& from, std::uint32_t events) noexcept override;

  owned_descriptor descriptor_;
  bool readable_ = true;
  bool writable_ = true;
  bool hung_up_ = false;
  bool urgent_ = false;
  io::endpoint peer_;
};

}  // namespace weir::detail
