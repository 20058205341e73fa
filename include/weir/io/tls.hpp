// SPDX-License-Identifier: MIT
// TLS 1.2 and 1.3, by OpenSSL: a socket of `tls_connect`, or of a listener with a `tls_context`,
// has all operations of `io::socket`. No renegotiation, no compression.
//
// Errors of both ends: what the peer or its certificate is refused for is errc::tls_failed, with
// the peer and the reason; an end without close_notify is errc::tls_truncated, never an end of the
// stream. `shutdown_write()` and `close()` send close_notify, at most once, and wait for nothing. A
// record that a cancelled `write_all` had begun counts as written, and the next operation finishes
// it.
#pragma once

#include <memory>
#include <string_view>
#include <type_traits>

#include <weir/io/socket.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// What the connections of a tls_context share. In src/io/tls_settings.hpp.
class tls_server;

}  // namespace weir::detail

namespace weir::io {

/// Files are PEM. `alpn` lists protocols, the preferred one first: "h2,http/1.1".
struct tls_options {
  std::string_view ca_file{};      ///< the authorities to trust; empty: the system's
  std::string_view server_name{};  ///< whose certificate it must be; empty: the host
  std::string_view alpn{};
  std::string_view cert_file{};  ///< what a server that asks for a certificate gets
  std::string_view key_file{};
  bool verify = true;  ///< false: whoever answers is accepted
};
static_assert(std::is_trivially_destructible_v<tls_options>);

/// Connects as io::connect does, and shakes hands. Unless `verify` is false, the certificate must
/// be issued by an authority, be valid now, and have the name or the IP address of the server as
/// a subject alternative name; its common name does not count. Refused: errc::tls_failed. No limit
/// of its own: use with_timeout.
///
/// Files that cannot be read: the system's code; without what they must contain: errc::bad_data.
/// An empty protocol in `alpn`, a certificate without its key, a name that is none, a simulation:
/// errc::invalid_argument. Costs: files are read again only after they have changed.
task<socket> tls_connect(std::string_view host, int port, tls_options options = {});

struct tls_server_options {
  /// The authorities whose certificates clients must have; empty: clients need none.
  std::string_view client_ca{};
  /// A client that offers protocols, but none of these, is refused. Empty: all are accepted.
  std::string_view alpn{};
};
static_assert(std::is_trivially_destructible_v<tls_server_options>);

/// The certificate and key of a server, for `listen_options::tls`. Copies share them. Threads: any.
class tls_context {
 public:
  /// Reads the files: the certificate with its chain, and the key. Errors: see tls_connect.
  static tls_context server(std::string_view cert_file, std::string_view key_file,
                            tls_server_options options = {});

  /// Reads the files again, for connections that are accepted from now on. If that fails it throws,
  /// and what was read before stays.
  void reload();

  // Below: for the library.
  const std::shared_ptr<detail::tls_server>& core() const noexcept { return core_; }

 private:
  explicit tls_context(std::shared_ptr<detail::tls_server> core) noexcept
      : core_(std::move(core)) {}

  std::shared_ptr<detail::tls_server> core_;
};

}  // namespace weir::io
