// SPDX-License-Identifier: MIT
#include <weir/io/udp.hpp>

#include <cerrno>
#include <string>

#include <sys/socket.h>

#include <netinet/in.h>

#include <weir/detail/core/run_rules.hpp>

#include "core/loop.hpp"
#include "io/descriptor_datagrams.hpp"
#include "io/sim_transport.hpp"
#include "io/system.hpp"

namespace weir {

namespace detail {

namespace {

datagram_core& datagrams_of(io_source* source) noexcept {
  return static_cast<datagram_core&>(*source);
}

}  // namespace

bool receive_from_wait::try_now() noexcept {
  if (!may_try()) return true;
  if (into_.empty())
    return fail(errc::invalid_argument, "cannot receive into an empty span; give it room");
  const datagram_core::arrived next = datagrams_of(source_).receive(into_);
  if (next.error == EAGAIN) return false;
  if (next.error != 0) return fail(next.error);
  got_ = {next.size, next.truncated, next.from};
  return true;
}

bool send_to_wait::try_now() noexcept {
  if (!may_try()) return true;
  datagram_core& core = datagrams_of(source_);
  if (const char* why = core.refuses(to_)) return fail(errc::invalid_argument, why);
  const int error = core.send(bytes_, to_);
  if (error == EAGAIN) return false;
  return error == 0 || fail(error);
}

namespace {

owned_descriptor bind_datagrams(const io::endpoint& at, bool reuse_port) {
  const system_address address = to_system(at);
  const std::string what = "udp::bind to " + at.str();
  owned_descriptor made(
      ::socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) raise_system(errno, what);
  const auto set = [&](int level, int option, int value) {
    if (::setsockopt(made.get(), level, option, &value, sizeof value) != 0)
      raise_system(errno, what);
  };
  if (reuse_port) set(SOL_SOCKET, SO_REUSEPORT, 1);
  if (at.type() == io::endpoint::kind::ip6) {
    const bool any = at.bytes().find_first_not_of('\0') == std::string_view::npos;
    set(IPPROTO_IPV6, IPV6_V6ONLY, any ? 0 : 1);
  }
  if (::bind(made.get(), address.get(), address.size) != 0) raise_system(errno, what);
  return made;
}

}  // namespace
}  // namespace detail

namespace io {

udp& udp::operator=(udp&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

udp::~udp() = default;

void udp::close() noexcept {
  if (core_ != nullptr) core_->close();
}

namespace {

task<udp> bind_to(std::string address, int port, bool reuse_port, bool tls) {
  detail::require_no_run("udp::bind", address);
  if (tls)
    detail::raise(errc::invalid_argument, "udp::bind: datagrams have no TLS; leave out .tls");
  detail::require_port(port, "udp::bind");
  if (detail::require_fiber("udp::bind").env().simulated())
    co_return detail::bind_in_simulation(address, port);
  auto made = detail::bind_datagrams(endpoint(address, port), reuse_port);
  co_return udp(std::make_unique<detail::descriptor_datagrams>(std::move(made)));
}

}  // namespace

task<udp> udp::bind(listen_options options) {
  return bind_to(std::string(options.address), options.port, options.reuse_port,
                 options.tls != nullptr);
}

}  // namespace io
}  // namespace weir
