// SPDX-License-Identifier: MIT
// A socket for datagrams, real or simulated, and the operations on it.
//
// Invariants:
// 1. A try moves one whole datagram or none, so a withdrawn wait has left it in its queue.
// 2. What the network says about a datagram that was sent earlier is not an error of the socket,
//    nor of the next operation: it is read and forgotten.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <weir/detail/io/source.hpp>
#include <weir/io/endpoint.hpp>

namespace weir::detail {

class datagram_core : public io_source {
 public:
  ~datagram_core() override = default;

  /// What one try received; `error` is the system's, EAGAIN: no datagram waits.
  struct arrived {
    std::size_t size = 0;
    bool truncated = false;
    int error = 0;
    io::endpoint from{};
  };
  virtual arrived receive(std::span<std::byte> into) noexcept = 0;
  /// An error of the system, or 0; EAGAIN: it would block.
  virtual int send(std::span<const std::byte> bytes, const io::endpoint& to) noexcept = 0;
  /// Null: a datagram can be sent there; otherwise why not.
  virtual const char* refuses(const io::endpoint& to) const noexcept = 0;
  /// Ends waiting operations; the first of several calls counts.
  virtual void close() noexcept = 0;
  virtual io::endpoint local() const noexcept = 0;
  virtual int native_handle() const noexcept { return -1; }
  std::string text() const override { return "udp " + local().str(); }
};

}  // namespace weir::detail

namespace weir::io {

/// A datagram that has arrived.
struct received {
  std::size_t size = 0;    ///< bytes in the span
  bool truncated = false;  ///< the datagram was longer than the span; the rest is lost
  endpoint from{};
};

}  // namespace weir::io

namespace weir::detail {

/// See io::udp::receive_from.
class receive_from_wait : public io_operation<receive_from_wait> {
 public:
  struct args {
    datagram_core* core;
    std::span<std::byte> into;
  };
  using result = io::received;

  explicit receive_from_wait(args&& a) noexcept
      : io_operation(a.core, io_side::read, "receive_from"), into_(a.into) {}
  bool try_now() noexcept;
  io::received take() {
    rethrow();
    return got_;
  }

 private:
  std::span<std::byte> into_;
  io::received got_;
};

/// See io::udp::send_to.
class send_to_wait : public io_operation<send_to_wait> {
 public:
  struct args {
    datagram_core* core;
    std::span<const std::byte> bytes;
    io::endpoint to;
  };
  using result = void;

  explicit send_to_wait(args&& a) noexcept
      : io_operation(a.core, io_side::write, "send_to"), bytes_(a.bytes), to_(a.to) {}
  bool try_now() noexcept;
  void take() { rethrow(); }

 private:
  std::span<const std::byte> bytes_;
  io::endpoint to_;
};

}  // namespace weir::detail
