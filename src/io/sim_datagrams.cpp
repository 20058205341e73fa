// SPDX-License-Identifier: MIT
#include "io/sim_datagrams.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/loop.hpp"
#include "io/sim_stream.hpp"

namespace weir::detail {

namespace {

/// As with IPv4: what a datagram can carry.
constexpr std::size_t longest = 65'507;
constexpr std::string_view own_address("\x7f\0\0\x01", 4);

}  // namespace

sim_datagrams::sim_datagrams(std::shared_ptr<network_mailbox> mailbox)
    : mailbox_(std::move(mailbox)), local_(endpoint_of(mailbox_->address())) {
  mailbox_->attach(*this);
}

sim_datagrams::~sim_datagrams() {
  require_idle();
  close();
}

datagram_core::arrived sim_datagrams::receive(std::span<std::byte> into) noexcept {
  arrived got;
  const auto next = mailbox_->take();
  got.error = next ? 0 : EAGAIN;
  if (!next) return got;
  got.size = std::min(into.size(), next->bytes.size());
  got.truncated = got.size < next->bytes.size();
  std::memcpy(into.data(), next->bytes.data(), got.size);
  got.from = endpoint_of(next->from);
  return got;
}

// 127.0.0.1 is the loop itself, as for connect.
int sim_datagrams::send(std::span<const std::byte> bytes, const io::endpoint& to) noexcept {
  if (bytes.size() > longest) return EMSGSIZE;
  network_address there;
  there.host = to.type() == io::endpoint::kind::simulated ? std::string(to.bytes())
                                                          : mailbox_->address().host;
  there.port = to.port();
  if (!in_dead_world()) mailbox_->send(there, bytes);
  return 0;
}

const char* sim_datagrams::refuses(const io::endpoint& to) const noexcept {
  const bool own = to.type() == io::endpoint::kind::ip4 && to.bytes() == own_address;
  if (to.type() != io::endpoint::kind::simulated && !own)
    return "is simulated: it sends to endpoint::of_loop(name, port), and to itself as 127.0.0.1";
  if (to.port() == 0) return "cannot send to port 0";
  if (!own && !mailbox_->has_host(to.bytes()))
    return "cannot send there: no loop of this simulation has that name";
  return nullptr;
}

void sim_datagrams::close() noexcept {
  if (!close_waits()) return;
  mailbox_->detach();
  if (!in_dead_world()) mailbox_->close();
}

int sim_datagrams::watch(io_side side) noexcept {
  if (side == io_side::read) mailbox_->watch();
  return 0;
}

bool sim_datagrams::waits(network_side side) const noexcept {
  return side == network_side::read && waiting(io_side::read) != nullptr;
}

}  // namespace weir::detail
