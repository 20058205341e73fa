// SPDX-License-Identifier: MIT
// A listening socket, real or simulated, and accepting from it.
#pragma once

#include <memory>
#include <string>

#include <weir/detail/io/source.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/io/socket.hpp>

namespace weir::detail {

/// A listening socket, as `accept` sees it.
class acceptor_core : public io_source {
 public:
  ~acceptor_core() override = default;
  /// Tries to accept. Null with 0 or EAGAIN: no connection waits.
  struct accepted {
    std::unique_ptr<stream_core> core;
    int error = 0;
  };
  virtual accepted accept() = 0;
  /// Whether a connection waits to be accepted; it may be gone by then.
  virtual bool has_connection() noexcept = 0;
  /// Ends waiting accepts; the first of several calls counts.
  virtual void close() noexcept = 0;
  virtual io::endpoint local() const noexcept = 0;
  virtual int native_handle() const noexcept { return -1; }
  std::string text() const override;
};

/// Completes when a connection waits to be accepted, without taking it.
class acceptable_wait : public io_operation<acceptable_wait> {
 public:
  struct args {
    acceptor_core* core;
  };
  using result = void;

  explicit acceptable_wait(args&& a) noexcept : io_operation(a.core, io_side::read, "accept") {}
  bool try_now() noexcept;
  void take() { rethrow(); }
};

/// See io::listener::accept.
class accept_wait : public io_operation<accept_wait> {
 public:
  struct args {
    acceptor_core* core;
  };
  using result = io::socket;

  explicit accept_wait(args&& a) noexcept : io_operation(a.core, io_side::read, "accept") {}
  bool try_now() noexcept;
  io::socket take() {
    rethrow();
    return io::socket(std::move(core_));
  }

 private:
  std::unique_ptr<stream_core> core_;
};

}  // namespace weir::detail
