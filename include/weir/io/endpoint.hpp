// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir::io {

/// Where a socket is bound, or whom it talks to: an IP address and port, the path of a Unix socket,
/// or, in a simulation, the name of a loop and a port. Trivially copyable.
class endpoint {
 public:
  enum class kind : std::uint8_t { none, ip4, ip6, unix_path, simulated };

  constexpr endpoint() noexcept = default;
  /// A numeric address; anything else, and a port outside of 0 to 65535: errc::invalid_argument.
  endpoint(std::string_view address, int port);
  static endpoint of_path(std::string_view path);
  static endpoint of_loop(std::string_view name, int port);

  /// "1.2.3.4", "::1", the path, or the name of the loop.
  std::string address() const;
  int port() const noexcept { return port_; }
  /// "1.2.3.4:80", "[::1]:80", the path, "server:80"; a Unix socket without a path is "unix".
  std::string str() const;
  kind type() const noexcept { return kind_; }

  friend bool operator==(const endpoint& a, const endpoint& b) noexcept {
    return a.kind_ == b.kind_ && a.port_ == b.port_ && a.scope_ == b.scope_ &&
           a.bytes() == b.bytes();
  }

  // Below: for the library.
  std::string_view bytes() const noexcept { return {bytes_, size_}; }
  std::uint32_t scope() const noexcept { return scope_; }
  static endpoint of_bytes(kind k, std::string_view bytes, int port, std::uint32_t scope = 0);

 private:
  std::uint32_t scope_ = 0;  // the interface of a link-local IPv6 address
  std::uint16_t port_ = 0;
  kind kind_ = kind::none;
  std::uint8_t size_ = 0;
  char bytes_[108] = {};  // as long as the path of a Unix socket may be
};
static_assert(std::is_trivially_copyable_v<endpoint>);

/// The process at the other end of a Unix socket.
struct credentials {
  int pid = 0;
  unsigned uid = 0;
  unsigned gid = 0;
};

}  // namespace weir::io
