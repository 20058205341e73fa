// SPDX-License-Identifier: MIT
// Datagrams over a socket of the system.
//
// What the reactor's edges said is kept in flags, as in descriptor_stream.hpp: `readable_` and
// `writable_` are false only after a try that would have blocked.
#pragma once

#include <weir/detail/io/datagram_core.hpp>

#include "io/reactor.hpp"
#include "io/system.hpp"

namespace weir::detail {

class descriptor_datagrams final : public datagram_core, private reactor_entry {
 public:
  explicit descriptor_datagrams(owned_descriptor descriptor) noexcept;
  ~descriptor_datagrams() override;

  arrived receive(std::span<std::byte> into) noexcept override;
  int send(std::span<const std::byte> bytes, const io::endpoint& to) noexcept override;
  const char* refuses(const io::endpoint& to) const noexcept override;
  void close() noexcept override;
  io::endpoint local() const noexcept override { return local_; }
  int native_handle() const noexcept override { return descriptor_.get(); }

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side side) noexcept override;
  void happened(reactor& from, std::uint32_t events) noexcept override;

  owned_descriptor descriptor_;
  io::endpoint local_;
  bool readable_ = true;
  bool writable_ = true;
};

}  // namespace weir::detail
