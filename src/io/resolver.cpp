// SPDX-License-Identifier: MIT
#include "io/resolver.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <netdb.h>

#include <weir/blocking.hpp>

#include "io/system.hpp"

namespace weir::detail {

namespace {

std::optional<io::endpoint> numeric(const std::string& host, int port) {
  unsigned char room[16];
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string inside = brackets ? host.substr(1, host.size() - 2) : host;
  const std::string plain = inside.substr(0, inside.find('%'));
  if (::inet_pton(AF_INET, inside.c_str(), room) != 1 &&
      ::inet_pton(AF_INET6, plain.c_str(), room) != 1)
    return std::nullopt;
  return io::endpoint(inside, port);
}

[[noreturn]] void raise_not_found(const std::string& host, int why, int system) {
  const std::string text = "host '" + host + "' was not found: " +
                           (why == EAI_SYSTEM ? std::strerror(system) : ::gai_strerror(why));
  if (why == EAI_AGAIN || why == EAI_SYSTEM || why == EAI_MEMORY) throw temporary_host_error(text);
  raise(errc::host_not_found, text);
}

/// IPv6, IPv4, IPv6, ..., beginning with the family that the resolver prefers.
std::vector<io::endpoint> alternate(const std::vector<io::endpoint>& found) {
  std::vector<io::endpoint> preferred;
  std::vector<io::endpoint> others;
  for (const io::endpoint& e : found)
    (e.type() == found.front().type() ? preferred : others).push_back(e);
  std::vector<io::endpoint> ordered;
  for (std::size_t i = 0; i < std::max(preferred.size(), others.size()); ++i) {
    if (i < preferred.size()) ordered.push_back(preferred[i]);
    if (i < others.size()) ordered.push_back(others[i]);
  }
  return ordered;
}

std::vector<io::endpoint> look_up(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* first = nullptr;
  const int why = ::getaddrinfo(host.c_str(), nullptr, &hints, &first);
  const int system = errno;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(first, [](addrinfo* list) {
    if (list != nullptr) ::freeaddrinfo(list);
  });
  if (why != 0) raise_not_found(host, why, system);
  std::vector<io::endpoint> found;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    system_address address;
    address.size = at->ai_addrlen;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    const io::endpoint e = from_system(address);
    found.push_back(io::endpoint::of_bytes(e.type(), e.bytes(), port, e.scope()));
  }
  if (found.empty()) raise_not_found(host, EAI_NONAME, 0);
  return alternate(found);
}

}  // namespace

task<std::vector<io::endpoint>> resolve(std::string host, int port) {
  if (host.empty() || host.size() > 253 || host.find('\0') != std::string::npos)
    raise(errc::invalid_argument,
          "connect: '" + host.substr(0, 60) +
              "' is not the name of a host; names have 1 to 253 bytes, and no NUL");
  if (const auto known = numeric(host, port)) co_return std::vector<io::endpoint>{*known};
  co_return co_await blocking(
      may_abandon, [](std::string name, int at) { return look_up(name, at); }, host, port);
}

}  // namespace weir::detail
