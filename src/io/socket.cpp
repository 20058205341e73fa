// SPDX-License-Identifier: MIT
#include <weir/io/socket.hpp>

#include <algorithm>
#include <limits>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <weir/detail/core/run_rules.hpp>

#include "core/loop.hpp"
#include "io/descriptor_stream.hpp"
#include "io/open_socket.hpp"
#include "io/system.hpp"

namespace weir {

namespace detail {

void set_no_delay(int descriptor) noexcept {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void set_descriptor_flags(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    raise_system(errno, "descriptor " + std::to_string(descriptor));
}

void require_stream_socket(int descriptor, const char* what) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    raise_system(errno, std::string(what) + ": descriptor " + std::to_string(descriptor));
  if (type != SOCK_STREAM)
    raise(errc::invalid_argument, std::string(what) + ": descriptor " + std::to_string(descriptor) +
                                      " is not a stream socket");
}

void require_real_loop(const char* what) {
  require_no_run(what);
  if (require_fiber(what).env().simulated())
    raise(errc::invalid_argument,
          std::string(what) + ": a simulation has no descriptors; use listen and connect");
}

}  // namespace detail

namespace io {

partial_write::partial_write(std::error_code code, const std::string& what, std::size_t written)
    : error(code, what), written_(written) {}

socket& socket::operator=(socket&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

socket::~socket() = default;

detail::done_already socket::shutdown_write() {
  detail::stream_core* const core = use();
  if (core == nullptr || core->closed())
    detail::raise(errc::closed, "shutdown_write: the socket is closed");
  const int error = core->shutdown_write();
  // The other end has gone already: there is nothing left to tell it.
  if (error != 0 && error != ENOTCONN)
    detail::raise_system(error, "shutdown_write: " + core->text());
  return {};
}

void socket::close() noexcept {
  if (core_ != nullptr) core_->close();
}

endpoint socket::peer() const { return core_ == nullptr ? endpoint() : core_->peer(); }
endpoint socket::local() const { return core_ == nullptr ? endpoint() : core_->local(); }
std::string socket::alpn() const { return core_ == nullptr ? std::string() : core_->alpn(); }
std::optional<credentials> socket::peer_credentials() const {
  return core_ == nullptr ? std::nullopt : core_->peer_credentials();
}

namespace {

stream<std::string> pieces(socket& from, std::size_t n) {
  for (;;) {
    std::string piece(n, '\0');
    const std::size_t got = co_await from.read_some(std::as_writable_bytes(std::span(piece)));
    if (got == 0) co_return;
    piece.resize(got);
    co_yield std::move(piece);
  }
}

/// What is left when the stream has ended without a line end; empty if nothing is.
std::string last_line(socket& from, std::size_t max) {
  const std::string_view rest = from.core()->kept.view();
  std::string line(rest.substr(0, max));
  from.core()->kept.drop(line.size());
  return line;
}

stream<std::string> lines_of(socket& from, std::size_t max) {
  for (;;) {
    std::string line;
    bool ended = false;
    try {
      line = co_await from.read_until("\n", max + 2);
      line.pop_back();
      if (!line.empty() && line.back() == '\r') line.pop_back();
    } catch (const error& e) {
      if (e.code() != errc::end_of_stream) throw;
      ended = true;
    }
    if (ended) line = last_line(from, max + 1);
    if (ended && line.empty()) co_return;
    if (line.size() > max)
      detail::raise(errc::too_long, "lines: " + from.core()->text() + " has a line of more than " +
                                        std::to_string(max) + " bytes");
    co_yield std::move(line);
    if (ended) co_return;
  }
}

}  // namespace

stream<std::string> socket::chunks(std::size_t n) {
  if (n == 0) detail::raise(errc::invalid_argument, "chunks: pieces have 1 byte or more");
  return pieces(*this, n);
}

stream<std::string> socket::lines(std::size_t max) {
  constexpr std::size_t most =
      std::numeric_limits<std::size_t>::max() - 2;  // room for the line end
  return lines_of(*this, std::min(max, most));
}

socket adopt_socket(int descriptor) {
  detail::require_real_loop("adopt_socket");
  detail::require_stream_socket(descriptor, "adopt_socket");
  detail::set_descriptor_flags(descriptor);
  const endpoint peer = detail::peer_of(descriptor);
  if (peer.type() == endpoint::kind::ip4 || peer.type() == endpoint::kind::ip6)
    detail::set_no_delay(descriptor);
  return socket(
      std::make_unique<detail::descriptor_stream>(detail::owned_descriptor(descriptor), peer));
}

}  // namespace io
}  // namespace weir
