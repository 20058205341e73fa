// SPDX-License-Identifier: MIT
#include "io/descriptor_datagrams.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include <sys/socket.h>
#include <sys/uio.h>

namespace weir::detail {

namespace {

constexpr std::uint32_t both_edges = EPOLLIN | EPOLLOUT | EPOLLET;

/// What the network answered to a datagram that was sent earlier. The system gives it once, to
/// whatever operation comes next.
bool is_of_earlier_datagram(int error) noexcept {
  switch (error) {
    case EINTR:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case ENOPROTOOPT:
    case EPROTO:
      return true;
    default:
      return false;
  }
}

/// "::ffff:1.2.3.4", by which a socket of both families reaches IPv4.
io::endpoint mapped(const io::endpoint& to) noexcept {
  std::array<char, 16> bytes{};
  bytes[10] = bytes[11] = '\xff';
  std::copy_n(to.bytes().begin(), 4, bytes.begin() + 12);
  return io::endpoint::of_bytes(io::endpoint::kind::ip6, {bytes.data(), bytes.size()}, to.port());
}

bool is_any(const io::endpoint& e) noexcept {
  return e.bytes().find_first_not_of('\0') == std::string_view::npos;
}

}  // namespace

descriptor_datagrams::descriptor_datagrams(owned_descriptor descriptor) noexcept
    : descriptor_(std::move(descriptor)), local_(local_of(descriptor_.get())) {}

descriptor_datagrams::~descriptor_datagrams() {
  require_idle();
  close();
}

datagram_core::arrived descriptor_datagrams::receive(std::span<std::byte> into) noexcept {
  arrived got;
  got.error = EAGAIN;
  if (!readable_) return got;
  system_address from;
  iovec room{into.data(), into.size()};
  msghdr asked{};
  asked.msg_name = from.get();
  asked.msg_iov = &room;
  asked.msg_iovlen = 1;
  ssize_t n = 0;
  do {
    asked.msg_namelen = sizeof from.storage;
    n = ::recvmsg(descriptor_.get(), &asked, 0);
  } while (n < 0 && is_of_earlier_datagram(errno));
  if (n < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      got.error = errno;
    } else {
      readable_ = !registered();
    }
    return got;
  }
  from.size = asked.msg_namelen;
  got.error = 0;
  got.size = static_cast<std::size_t>(n);
  got.truncated = (asked.msg_flags & MSG_TRUNC) != 0;
  got.from = from_system(from);
  return got;
}

int descriptor_datagrams::send(std::span<const std::byte> bytes, const io::endpoint& to) noexcept {
  if (!writable_) return EAGAIN;
  const bool map = local_.type() == io::endpoint::kind::ip6 && to.type() == io::endpoint::kind::ip4;
  const system_address address = to_system(map ? mapped(to) : to);
  for (;;) {
    const ssize_t n = ::sendto(descriptor_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL,
                               address.get(), address.size);
    if (n >= 0) return 0;
    if (is_of_earlier_datagram(errno)) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return errno;
    writable_ = !registered();
    return EAGAIN;
  }
}

const char* descriptor_datagrams::refuses(const io::endpoint& to) const noexcept {
  using kind = io::endpoint::kind;
  if (to.type() != kind::ip4 && to.type() != kind::ip6)
    return "sends to an IP address and a port; give an endpoint that has them";
  if (to.port() == 0) return "cannot send to port 0";
  const bool both = local_.type() == kind::ip6 && is_any(local_);
  if (to.type() != local_.type() && !(both && to.type() == kind::ip4))
    return "was bound to an address of the other family (IPv4, IPv6); '::' takes both";
  return nullptr;
}

void descriptor_datagrams::close() noexcept {
  if (!close_waits()) return;
  unregister(descriptor_.get());
  descriptor_.reset();
}

// As in descriptor_stream: registering comes after a try that would have blocked.
int descriptor_datagrams::watch(io_side side) noexcept {
  const bool first = !registered();
  const int error = reactor::begin_wait(*this, descriptor_.get(), both_edges);
  if (first && error == 0) (side == io_side::read ? readable_ : writable_) = false;
  return error;
}

void descriptor_datagrams::unwatch(io_side) noexcept { reactor::end_wait(); }

void descriptor_datagrams::happened(reactor& from, std::uint32_t events) noexcept {
  const bool broken = (events & (EPOLLHUP | EPOLLERR)) != 0;
  readable_ = readable_ || broken || (events & EPOLLIN) != 0;
  writable_ = writable_ || broken || (events & EPOLLOUT) != 0;
  if (readable_) ready(io_side::read);
  if (from.delivers_to(*this) && writable_) ready(io_side::write);
}

}  // namespace weir::detail
