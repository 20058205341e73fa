// SPDX-License-Identifier: MIT
#include <weir/io/listener.hpp>

#include <cstdio>

#include <sys/socket.h>
#include <sys/stat.h>

#include <netinet/in.h>

#include <weir/detail/core/run_rules.hpp>
#include <weir/io/tls.hpp>

#include "core/loop.hpp"
#include "io/descriptor_acceptor.hpp"
#include "io/open_socket.hpp"
#include "io/sim_transport.hpp"
#include "io/system.hpp"

namespace weir {

namespace detail {

std::string acceptor_core::text() const { return "listener " + local().str(); }

bool acceptable_wait::try_now() noexcept {
  return !may_try() || static_cast<acceptor_core&>(*source_).has_connection();
}

bool accept_wait::try_now() noexcept {
  if (!may_try()) return true;
  try {
    acceptor_core::accepted got = static_cast<acceptor_core&>(*source_).accept();
    if (got.error == EAGAIN) return false;
    if (got.error != 0) return fail(got.error);
    core_ = std::move(got.core);
  } catch (...) {
    return fail(std::current_exception());
  }
  return true;
}

void require_backlog(int backlog) {
  if (backlog < 1)
    raise(errc::invalid_argument, "listen: a backlog of " + std::to_string(backlog) +
                                      " takes no connections; give 1 or more");
}

namespace {

void set_option(int descriptor, int level, int option, int value, const std::string& whose) {
  if (::setsockopt(descriptor, level, option, &value, sizeof value) != 0)
    raise_system(errno, "listen on " + whose);
}

}  // namespace

owned_descriptor open_listening(const io::endpoint& at, int backlog, bool reuse_port) {
  const bool file = at.type() == io::endpoint::kind::unix_path;
  const system_address address = to_system(at);
  const std::string name = at.str();
  owned_descriptor made(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) raise_system(errno, "listen on " + name);
  if (!file) set_option(made.get(), SOL_SOCKET, SO_REUSEADDR, 1, name);
  if (reuse_port) set_option(made.get(), SOL_SOCKET, SO_REUSEPORT, 1, name);
  if (at.type() == io::endpoint::kind::ip6) {
    const std::string_view bytes = at.bytes();
    const bool any = bytes.find_first_not_of('\0') == std::string_view::npos;
    set_option(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, any ? 0 : 1, name);
  }
  // Before it is bound, so that no other user can connect for an instant. Linux takes the mode of
  // the file from that of the descriptor.
  if (file && ::fchmod(made.get(), 0600) != 0) raise_system(errno, "listen on " + name);
  if (::bind(made.get(), address.get(), address.size) != 0 || ::listen(made.get(), backlog) != 0)
    raise_system(errno, "listen on " + name);
  return made;
}

namespace {

io::listener listen_at(const io::endpoint& at, int backlog, bool reuse_port, std::string file,
                       std::shared_ptr<tls_server> tls = nullptr) {
  return io::listener(std::make_unique<descriptor_acceptor>(open_listening(at, backlog, reuse_port),
                                                            std::move(file), std::move(tls)));
}

/// Whether a socket file is left over: no process listens on it.
bool is_dead_socket_file(const io::endpoint& at) noexcept {
  struct stat found{};
  if (::lstat(at.address().c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const owned_descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const system_address address = to_system(at);
  return probe && ::connect(probe.get(), address.get(), address.size) != 0 && errno == ECONNREFUSED;
}

io::listener listen_at_path(const std::string& path) {
  const io::endpoint at = io::endpoint::of_path(path);
  constexpr int backlog = 1024;
  if (is_dead_socket_file(at)) std::remove(path.c_str());
  return listen_at(at, backlog, false, path);
}

}  // namespace
}  // namespace detail

namespace io {

listener::listener(std::unique_ptr<detail::acceptor_core> core) noexcept : core_(std::move(core)) {}

listener& listener::operator=(listener&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

listener::~listener() { close(); }

void listener::close() noexcept {
  if (core_ != nullptr) core_->close();
}

namespace {

task<listener> listen_on(std::string address, int port, int backlog, bool reuse_port,
                         std::shared_ptr<detail::tls_server> tls) {
  detail::require_no_run("listen", address);
  detail::require_port(port, "listen");
  detail::require_backlog(backlog);
  if (detail::require_fiber("listen").env().simulated()) {
    if (tls != nullptr)
      detail::raise(errc::invalid_argument, "listen: a simulation has no TLS; listen without it");
    co_return detail::listen_in_simulation(address, port, backlog);
  }
  co_return detail::listen_at(endpoint(address, port), backlog, reuse_port, {}, std::move(tls));
}

task<listener> listen_on_path(std::string path) {
  detail::require_no_run("listen_unix", path);
  if (detail::require_fiber("listen_unix").env().simulated())
    co_return detail::listen_unix_in_simulation(path);
  co_return detail::listen_at_path(path);
}

}  // namespace

task<listener> listen(listen_options options) {
  return listen_on(std::string(options.address), options.port, options.backlog, options.reuse_port,
                   options.tls == nullptr ? nullptr : options.tls->core());
}

task<listener> listen_unix(std::string_view path) { return listen_on_path(std::string(path)); }

listener adopt_listener(int descriptor) {
  detail::require_real_loop("adopt_listener");
  detail::require_stream_socket(descriptor, "adopt_listener");
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 0)
    detail::raise(errc::invalid_argument,
                  "adopt_listener: descriptor " + std::to_string(descriptor) + " does not listen");
  detail::set_descriptor_flags(descriptor);
  return listener(std::make_unique<detail::descriptor_acceptor>(
      detail::owned_descriptor(descriptor), std::string()));
}

}  // namespace io
}  // namespace weir
