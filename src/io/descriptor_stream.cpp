// SPDX-License-Identifier: MIT
#include "io/descriptor_stream.hpp"

#include <poll.h>
#include <sys/socket.h>

namespace weir::detail {

namespace {

constexpr std::uint32_t all_edges = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET;

}  // namespace

descriptor_stream::descriptor_stream(owned_descriptor descriptor, const io::endpoint& peer) noexcept
    : descriptor_(std::move(descriptor)), peer_(peer) {}

descriptor_stream::~descriptor_stream() {
  require_idle();
  close();
}

io_try descriptor_stream::receive(std::span<std::byte> into) noexcept {
  if (!readable_) return {0, EAGAIN};
  for (;;) {
    const ssize_t n = ::recv(descriptor_.get(), into.data(), into.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) readable_ = !registered();
      return {0, errno == EWOULDBLOCK ? EAGAIN : errno};
    }
    const auto bytes = static_cast<std::size_t>(n);
    // A Unix socket may return less than it has, and a TCP socket before urgent data; otherwise it
    // does not, but its end may be next.
    if (bytes < into.size() && registered() && !hung_up_ && !urgent_ &&
        peer_.type() != io::endpoint::kind::unix_path)
      readable_ = false;
    return {bytes, 0};
  }
}

io_try descriptor_stream::send(std::span<const std::byte> bytes) noexcept {
  if (!writable_) return {0, EAGAIN};
  for (;;) {
    const ssize_t n = ::send(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return {static_cast<std::size_t>(n), 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      writable_ = !registered();
      return {0, EAGAIN};
    }
    return {0, errno};
  }
}

int descriptor_stream::shutdown_write() noexcept {
  return ::shutdown(descriptor_.get(), SHUT_WR) == 0 ? 0 : errno;
}

void descriptor_stream::close() noexcept {
  if (!close_waits()) return;
  unregister(descriptor_.get());
  descriptor_.reset();
}

/// With a reset.
void descriptor_stream::cut() noexcept {
  const linger at_once{1, 0};
  (void)::setsockopt(descriptor_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

std::optional<io::credentials> descriptor_stream::peer_credentials() const {
  if (peer_.type() != io::endpoint::kind::unix_path) return std::nullopt;
  ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(descriptor_.get(), SOL_SOCKET, SO_PEERCRED, &found, &size) != 0)
    return std::nullopt;
  return io::credentials{found.pid, found.uid, found.gid};
}

bool descriptor_stream::hung_up() const noexcept {
  if (registered() || hung_up_) return hung_up_;
  pollfd asked{descriptor_.get(), POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) > 0;
}

// What the reactor knows may be old, so the system is asked.
bool descriptor_stream::has_arrived() noexcept {
  if (!kept.empty()) return true;
  pollfd asked{descriptor_.get(), POLLIN | POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) != 0;
}

// epoll reports what is ready when a registration is changed, even to what it was.
void descriptor_stream::stir() noexcept {
  if (registered()) (void)reactor::here().change(*this, descriptor_.get(), all_edges);
}

// Registering comes after a try that would have blocked. If that was long ago, epoll reports what
// has come since, so that side need not be tried again before an event says so.
int descriptor_stream::watch(io_side side) noexcept {
  const bool first = !registered();
  const int error = reactor::begin_wait(*this, descriptor_.get(), all_edges);
  if (first && error == 0 && side == io_side::read) readable_ = false;
  if (first && error == 0 && side == io_side::write) writable_ = false;
  return error;
}

void descriptor_stream::unwatch(io_side) noexcept { reactor::end_wait(); }

void descriptor_stream::happened(reactor& from, std::uint32_t events) noexcept {
  const bool broken = (events & (EPOLLHUP | EPOLLERR)) != 0;
  hung_up_ = hung_up_ || broken || (events & EPOLLRDHUP) != 0;
  urgent_ = urgent_ || (events & EPOLLPRI) != 0;
  readable_ = readable_ || broken || (events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP)) != 0;
  writable_ = writable_ || broken || (events & EPOLLOUT) != 0;
  if (readable_) ready(io_side::read);
  if (from.delivers_to(*this) && writable_) ready(io_side::write);
  if (from.delivers_to(*this) && hung_up_) ready(io_side::hangup);
}

}  // namespace weir::detail
