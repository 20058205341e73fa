// SPDX-License-Identifier: MIT
// Datagrams over UDP, or over a simulated network.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include <weir/detail/io/datagram_core.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/io/listener.hpp>
#include <weir/task.hpp>

namespace weir::io {

/// A socket that sends and receives datagrams. Each may be lost, come twice or overtake others.
///
/// After `close()`, and if it was moved from, every operation is errc::closed; so are operations
/// that were pending. One receiver and one sender at a time: errc::busy. Destroying it while an
/// operation waits aborts. That no process listens at an address is not reported: neither by the
/// send nor by a later operation. Errors of the system are weir::errors with the system's code,
/// such as std::errc::message_size for a datagram that is too long.
///
/// Cancels: a cancelled receive has taken no datagram, a cancelled send has sent none. Threads:
/// home loop only. Costs: an operation allocates nothing.
class udp {
 public:
  udp() noexcept = default;
  udp(udp&& other) noexcept = default;
  udp& operator=(udp&& other) noexcept;
  ~udp();

  /// Binds a numeric address; "::" takes both families, port 0 picks one. `.backlog` is not used.
  /// What the system refuses names the address. A port outside of 0 to 65535, an address that is no
  /// number, and `.tls`: errc::invalid_argument.
  static task<udp> bind(listen_options options = {});

  /// Sends one datagram, which may be empty. An endpoint without a port, or of another family:
  /// errc::invalid_argument.
  [[nodiscard]] auto send_to(std::span<const std::byte> bytes, const endpoint& to) {
    return detail::pending<detail::send_to_wait>({use(), bytes, to});
  }
  [[nodiscard]] auto send_to(std::string_view text, const endpoint& to) {
    return send_to(std::as_bytes(std::span(text)), to);
  }
  /// The next datagram, as much of it as the span has room for. An empty span:
  /// errc::invalid_argument.
  [[nodiscard]] auto receive_from(std::span<std::byte> into) {
    return detail::pending<detail::receive_from_wait>({use(), into});
  }
  /// Ends pending operations.
  void close() noexcept;

  int port() const noexcept { return local().port(); }
  endpoint local() const noexcept { return core_ == nullptr ? endpoint() : core_->local(); }
  /// -1 if it is closed or simulated.
  int native_handle() const noexcept { return core_ == nullptr ? -1 : core_->native_handle(); }

  // Below: for the library.
  explicit udp(std::unique_ptr<detail::datagram_core> core) noexcept : core_(std::move(core)) {}

 private:
  detail::datagram_core* use() {
    if (core_ != nullptr) core_->require_home("udp");
    return core_.get();
  }

  std::unique_ptr<detail::datagram_core> core_;
};

}  // namespace weir::io
