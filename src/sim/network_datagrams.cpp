// SPDX-License-Identifier: MIT
// Datagrams of a simulated network.
#include "core/loop.hpp"
#include "sim/network.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ mailboxes

std::optional<network_mailbox::letter> network_mailbox::take() noexcept {
  come_home();
  if (arrived_.empty()) return std::nullopt;
  letter first = std::move(arrived_.front());
  arrived_.pop_front();
  unread_ -= first.bytes.size();
  return first;
}

bool network_mailbox::has_host(std::string_view name) const noexcept {
  return net_ == nullptr || net_->has_host(name);
}

void network_mailbox::send(const network_address& to, std::span<const std::byte> bytes) {
  come_home();
  if (net_ != nullptr) net_->send(*this, to, bytes);
}

void network_mailbox::close() {
  const std::shared_ptr<network_mailbox> keep = shared_from_this();
  if (network_state* const net = std::exchange(net_, nullptr))
    net->mailboxes_.erase(network_state::place_of(address_));
}

void network_mailbox::watch() noexcept {
  come_home();
  if (!arrived_.empty()) tell(network_side::read, shared_from_this());
}

// ------------------------------------------------------------------ the network's part

std::shared_ptr<network_mailbox> network_state::bind(loop& here, int port) {
  network_address at;
  at.host = here.own_door().name();
  at.port = port == 0 ? free_port(at.host) : port;
  if (at.port == 0) return nullptr;
  const auto [where, is_new] = mailboxes_.try_emplace(place_of(at));
  if (!is_new) return nullptr;
  where->second = std::make_shared<network_mailbox>(*this, std::move(at));
  where->second->settle(here.shared_door());
  return where->second;
}

void network_state::send(const network_mailbox& from, const network_address& to,
                         std::span<const std::byte> bytes) {
  if (separated(from.address_.host, to.host)) return;
  datagram d{from.address_, place_of(to), {}};
  d.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (faults_.duplicate > 0 && host_.chance(faults_.duplicate)) send_copy(d);
  send_copy(std::move(d));
}

void network_state::send_copy(datagram d) {
  if (faults_.loss > 0 && host_.chance(faults_.loss)) return;
  const time_point at = delayed();
  if (at <= host_.now()) return arrive(std::move(d));
  datagrams_.emplace(at, std::move(d));
}

void network_state::arrive(datagram d) {
  const auto found = mailboxes_.find(d.to);
  if (found == mailboxes_.end() || separated(d.from.host, d.to.first)) return;
  network_mailbox& to = *found->second;
  if (to.unread_ + d.bytes.size() > window || to.arrived_.size() >= max_letters) return;
  to.unread_ += d.bytes.size();
  to.arrived_.push_back({std::move(d.from), std::move(d.bytes)});
  to.tell(network_side::read, to.shared_from_this());
}

}  // namespace weir::detail
