// SPDX-License-Identifier: MIT
// Accepting connections: `listen`, `listen_unix` and the `listener` that they return.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <weir/detail/io/acceptor_core.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/io/socket.hpp>
#include <weir/task.hpp>

namespace weir::io {

class tls_context;

struct listen_options {
  std::string_view address = "127.0.0.1";
  int port = 0;
  int backlog = 1024;
  bool reuse_port = false;
  tls_context* tls = nullptr;  // connections are encrypted with it; <weir/io/tls.hpp>
};

/// A listening socket. Destroying it closes it. Threads: home loop only.
class listener {
 public:
  listener() noexcept = default;
  listener(listener&& other) noexcept = default;
  listener& operator=(listener&& other) noexcept;
  ~listener();

  /// 0 for a Unix socket.
  int port() const noexcept { return local().port(); }
  endpoint local() const noexcept { return core_ == nullptr ? endpoint() : core_->local(); }
  /// The next connection. Cancelled, it has taken none.
  [[nodiscard]] auto accept() {
    if (core_ != nullptr) core_->require_home("listener");
    return detail::pending<detail::accept_wait>({core_.get()});
  }
  /// Ends pending accepts with errc::closed. A Unix socket's file is removed.
  void close() noexcept;
  int native_handle() const noexcept { return core_ == nullptr ? -1 : core_->native_handle(); }

  // Below: for the library.
  explicit listener(std::unique_ptr<detail::acceptor_core> core) noexcept;
  const std::shared_ptr<detail::acceptor_core>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<detail::acceptor_core> core_;
};

/// Listens on a numeric address; "::" takes both families, port 0 picks one. What the system
/// refuses names the address. A port outside of 0 to 65535, a backlog below 1, an address that is
/// no number: errc::invalid_argument.
task<listener> listen(listen_options options = {});
/// Listens at a path, with mode 0600. Replaces a socket file that no process listens on, not a live
/// one (std::errc::address_in_use).
task<listener> listen_unix(std::string_view path);
/// Owns a listening socket from elsewhere, as of socket activation.
listener adopt_listener(int descriptor);

}  // namespace weir::io
