// SPDX-License-Identifier: MIT
// The ends of connections and the ports, as the sockets above them see them.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/loop.hpp"
#include "sim/network.hpp"

namespace weir::detail {

namespace {

/// How often a read gets fewer bytes than it could.
constexpr double short_read_rate = 0.25;

}  // namespace

// ------------------------------------------------------------------ places

void network_place::tell(network_side side, const std::shared_ptr<void>& self) noexcept {
  if (user_ == nullptr || told_ != nullptr || !user_->waits(side)) return;
  told_ = self;
  door_->post(*this);
}

void network_place::come_home() noexcept {
  loop* const here = loop::here();
  if (here != nullptr && here->serial() != serial()) door_ = here->shared_door();
}

void network_place::deliver(loop&) noexcept {
  const std::shared_ptr<void> self = std::exchange(told_, nullptr);
  if (user_ != nullptr) user_->told();
}

void network_place::orphan() noexcept {
  if (network_user* user = std::exchange(user_, nullptr)) user->orphaned();
}

// ------------------------------------------------------------------ ends

network_end& network_end::peer() const noexcept {
  return this == &link_.client ? link_.server : link_.client;
}

network_state* network_end::net() const noexcept { return link_.net_; }

void network_end::tell(network_side side) noexcept {
  network_place::tell(side, link_.shared_from_this());
}

void network_end::tell_all() noexcept {
  tell(network_side::read);
  tell(network_side::write);
  tell(network_side::hangup);
}

void network_end::watch(network_side side) noexcept {
  come_home();
  bool possible = error_ != 0;
  switch (side) {
    case network_side::read:
      possible = possible || unread() > 0 || got_end_;
      break;
    case network_side::write:
      possible = possible || (open_ && under_way_ < network_state::window);
      break;
    case network_side::hangup:
      possible = possible || got_end_;
      break;
  }
  if (possible) tell(side);
}

network_try network_end::receive(std::span<std::byte> into) {
  come_home();
  if (unread() == 0) {
    if (error_ != 0) return {0, error_};
    return {0, got_end_ ? 0 : EAGAIN};
  }
  std::size_t n = std::min(into.size(), unread());
  if (n > 1 && net()->host_.chance(short_read_rate))
    n = 1 + static_cast<std::size_t>(net()->host_.below(n - 1));
  std::memcpy(into.data(), received_.data() + begin_, n);
  begin_ += n;
  if (unread() == 0) {
    received_.clear();
    begin_ = 0;
  } else if (begin_ >= network_state::window) {
    received_.erase(0, std::exchange(begin_, 0));
  }
  net()->put(*this, {.what = kind::taken, .count = n});
  return {n, 0};
}

network_try network_end::send(std::span<const std::byte> bytes) {
  come_home();
  if (error_ != 0) return {0, error_};
  if (sent_end_) return {0, EPIPE};
  const std::size_t n = std::min(bytes.size(), network_state::window - under_way_);
  if (n == 0) return {0, EAGAIN};
  under_way_ += n;
  net()->put(*this, {.what = kind::bytes,
                     .bytes = std::string(reinterpret_cast<const char*>(bytes.data()), n)});
  return {n, 0};
}

int network_end::shutdown_write() {
  if (error_ != 0) return ENOTCONN;
  if (!std::exchange(sent_end_, true)) net()->put(*this, {.what = kind::end});
  return 0;
}

void network_end::close() {
  detach();
  if (net() != nullptr) net()->close(*this, false);
}

void network_end::fail(int error) noexcept {
  error_ = error;
  tell_all();
}

// ------------------------------------------------------------------ ports

std::shared_ptr<network_link> network_port::accept() {
  come_home();
  if (queue_.empty()) return nullptr;
  std::shared_ptr<network_link> first = std::move(queue_.front());
  queue_.pop_front();
  while (!beyond_.empty() && queue_.size() < backlog_) {
    const std::shared_ptr<network_link> waited = std::move(beyond_.front());
    beyond_.pop_front();
    if (waited->server.error() == 0) {
      net_->enqueue(*this, *waited);
    } else {
      net_->close(waited->server, false);  // it was given up
    }
  }
  return first;
}

void network_port::close() {
  detach();
  if (net_ != nullptr) net_->close(*this, false);
}

void network_port::watch() noexcept {
  come_home();
  if (!queue_.empty()) tell(network_side::read, shared_from_this());
}

}  // namespace weir::detail
