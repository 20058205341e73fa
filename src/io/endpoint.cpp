// SPDX-License-Identifier: MIT
#include <weir/io/endpoint.hpp>

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include "io/system.hpp"

namespace weir {

namespace detail {

void raise_system(int error, const std::string& what) {
  const std::error_code code(error, std::system_category());
  throw weir::error(code, what + ": " + code.message());
}

void require_port(int port, const char* what) {
  if (port < 0 || port > 65535)
    raise(errc::invalid_argument, std::string(what) + ": a port of " + std::to_string(port) +
                                      " does not exist; give 0 to 65535");
}

system_address to_system(const io::endpoint& e) noexcept {
  system_address a;
  const std::string_view bytes = e.bytes();
  switch (e.type()) {
    case io::endpoint::kind::ip4: {
      sockaddr_in in{};
      in.sin_family = AF_INET;
      in.sin_port = htons(static_cast<std::uint16_t>(e.port()));
      std::memcpy(&in.sin_addr, bytes.data(), sizeof in.sin_addr);
      std::memcpy(&a.storage, &in, sizeof in);
      a.size = sizeof in;
      break;
    }
    case io::endpoint::kind::ip6: {
      sockaddr_in6 in{};
      in.sin6_family = AF_INET6;
      in.sin6_port = htons(static_cast<std::uint16_t>(e.port()));
      in.sin6_scope_id = e.scope();
      std::memcpy(&in.sin6_addr, bytes.data(), sizeof in.sin6_addr);
      std::memcpy(&a.storage, &in, sizeof in);
      a.size = sizeof in;
      break;
    }
    case io::endpoint::kind::unix_path: {
      sockaddr_un un{};
      un.sun_family = AF_UNIX;
      std::memcpy(un.sun_path, bytes.data(), bytes.size());
      std::memcpy(&a.storage, &un, sizeof un);
      a.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes.size() + 1);
      break;
    }
    case io::endpoint::kind::none:
    case io::endpoint::kind::simulated:
      a.size = 0;
      break;
  }
  return a;
}

io::endpoint from_system(const system_address& a) noexcept {
  using kind = io::endpoint::kind;
  if (a.size < sizeof(sa_family_t)) return io::endpoint::of_bytes(kind::unix_path, {}, 0);
  switch (a.storage.ss_family) {
    case AF_INET: {
      sockaddr_in in{};
      std::memcpy(&in, &a.storage, sizeof in);
      return io::endpoint::of_bytes(
          kind::ip4, {reinterpret_cast<const char*>(&in.sin_addr), sizeof in.sin_addr},
          ntohs(in.sin_port));
    }
    case AF_INET6: {
      sockaddr_in6 in{};
      std::memcpy(&in, &a.storage, sizeof in);
      return io::endpoint::of_bytes(
          kind::ip6, {reinterpret_cast<const char*>(&in.sin6_addr), sizeof in.sin6_addr},
          ntohs(in.sin6_port), in.sin6_scope_id);
    }
    case AF_UNIX: {
      sockaddr_un un{};
      std::memcpy(&un, &a.storage, std::min<std::size_t>(sizeof un, a.size));
      const std::size_t room =
          a.size - std::min<std::size_t>(a.size, offsetof(sockaddr_un, sun_path));
      const std::size_t length = ::strnlen(un.sun_path, std::min(room, sizeof un.sun_path));
      return io::endpoint::of_bytes(kind::unix_path, {un.sun_path, length}, 0);
    }
    default:
      return {};
  }
}

io::endpoint local_of(int descriptor) noexcept {
  system_address a;
  if (::getsockname(descriptor, a.get(), &a.size) != 0) return {};
  return from_system(a);
}

io::endpoint peer_of(int descriptor) noexcept {
  system_address a;
  if (::getpeername(descriptor, a.get(), &a.size) != 0) return {};
  return from_system(a);
}

}  // namespace detail

namespace io {

namespace {

using detail::raise;

/// "fe80::1%eth0" has an interface; true if `address` is an IPv6 address.
bool parse_ip6(const std::string& address, in6_addr& out, std::uint32_t& scope) {
  const std::size_t percent = address.find('%');
  if (::inet_pton(AF_INET6, address.substr(0, percent).c_str(), &out) != 1) return false;
  if (percent == std::string::npos) return true;
  scope = ::if_nametoindex(address.c_str() + percent + 1);
  return scope != 0;
}

}  // namespace

endpoint endpoint::of_bytes(kind k, std::string_view bytes, int port, std::uint32_t scope) {
  endpoint e;
  e.kind_ = k;
  e.port_ = static_cast<std::uint16_t>(port);
  e.scope_ = scope;
  e.size_ = static_cast<std::uint8_t>(std::min(bytes.size(), sizeof e.bytes_));
  std::copy_n(bytes.begin(), e.size_, e.bytes_);
  return e;
}

endpoint::endpoint(std::string_view address, int port) {
  detail::require_port(port, "endpoint");
  // The system reads up to a NUL, which cannot be part of an address.
  const std::string text(address.find('\0') == address.npos ? address : std::string_view());
  in_addr four{};
  in6_addr six{};
  std::uint32_t scope = 0;
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) {
    *this = of_bytes(kind::ip4, {reinterpret_cast<const char*>(&four), sizeof four}, port);
  } else if (parse_ip6(text, six, scope)) {
    *this = of_bytes(kind::ip6, {reinterpret_cast<const char*>(&six), sizeof six}, port, scope);
  } else {
    raise(errc::invalid_argument, "endpoint: '" + std::string(address.substr(0, 60)) +
                                      "' is not an address; give numbers such as 127.0.0.1 or ::1");
  }
}

endpoint endpoint::of_path(std::string_view path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path) ||
      path.find('\0') != std::string_view::npos)
    raise(errc::invalid_argument, "the path of a Unix socket has 1 to 107 bytes and no NUL; '" +
                                      std::string(path.substr(0, 120)) + "' has " +
                                      std::to_string(path.size()));
  return of_bytes(kind::unix_path, path, 0);
}

endpoint endpoint::of_loop(std::string_view name, int port) {
  return of_bytes(kind::simulated, name, port);
}

std::string endpoint::address() const {
  char text[INET6_ADDRSTRLEN] = {};
  switch (kind_) {
    case kind::ip4:
      ::inet_ntop(AF_INET, bytes_, text, sizeof text);
      return text;
    case kind::ip6: {
      ::inet_ntop(AF_INET6, bytes_, text, sizeof text);
      char interface[IF_NAMESIZE] = {};
      if (scope_ != 0 && ::if_indextoname(scope_, interface) != nullptr)
        return std::string(text) + "%" + interface;
      return text;
    }
    case kind::none:
    case kind::unix_path:
    case kind::simulated:
      break;
  }
  return std::string(bytes());
}

std::string endpoint::str() const {
  switch (kind_) {
    case kind::none:
      return "nowhere";
    case kind::unix_path:
      return size_ == 0 ? "unix" : address();
    case kind::ip6:
      return "[" + address() + "]:" + std::to_string(port_);
    case kind::ip4:
    case kind::simulated:
      break;
  }
  return address() + ":" + std::to_string(port_);
}

}  // namespace io
}  // namespace weir
