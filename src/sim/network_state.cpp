// SPDX-License-Identifier: MIT
// What is under way in a simulated network, and what its arrival changes.
#include <algorithm>
#include <cerrno>
#include <iterator>

#include "core/loop.hpp"
#include "sim/network.hpp"

namespace weir::detail {

namespace {

constexpr int first_picked_port = 49'152;
constexpr int picked_ports = 65'536 - first_picked_port;
/// As with timers: the order among equal times is chosen among this many.
constexpr std::size_t equal_limit = 8;

/// Which of the first entries with the same time comes next: a choice, if there are several.
template <class Schedule>
typename Schedule::iterator next_of(Schedule& all, network_host& host) {
  const auto equal = static_cast<std::size_t>(all.count(all.begin()->first));
  const std::size_t options = std::min(equal, equal_limit);
  return std::next(all.begin(),
                   static_cast<std::ptrdiff_t>(options > 1 ? host.choose(options) : 0));
}

}  // namespace

network_state::~network_state() {
  for (auto& [id, link] : links_) {
    link->net_ = nullptr;
    for (network_end* end : {&link->client, &link->server}) end->orphan();
  }
  for (auto& [where, port] : ports_) {
    port->net_ = nullptr;
    port->orphan();
  }
  for (auto& [where, mailbox] : mailboxes_) {
    mailbox->net_ = nullptr;
    mailbox->orphan();
  }
}

// ------------------------------------------------------------------ names

network_state::place network_state::place_of(const network_address& a) {
  return a.path.empty() ? place(a.host, a.port) : place(a.path, -1);
}

network_state::host_pair network_state::pair_of(std::string_view a, std::string_view b) {
  return a < b ? host_pair(a, b) : host_pair(b, a);
}

void network_state::add_host(std::string_view name) {
  if (!has_host(name)) hosts_.emplace(name);
}

// 0 if all are taken.
int network_state::free_port(const std::string& host) {
  for (int i = 0; i < picked_ports; ++i) {
    const int port = first_picked_port + last_port_;
    last_port_ = (last_port_ + 1) % picked_ports;
    if (!ports_.contains({host, port}) && !mailboxes_.contains({host, port})) return port;
  }
  return 0;
}

std::shared_ptr<network_port> network_state::listen(loop& here, network_address at,
                                                    std::size_t backlog) {
  at.host = here.own_door().name();
  if (at.path.empty() && at.port == 0) {
    at.port = free_port(at.host);
    if (at.port == 0) return nullptr;
  }
  const auto [where, is_new] = ports_.try_emplace(place_of(at));
  if (!is_new) return nullptr;
  stale_paths_.erase(at.path);
  where->second = std::make_shared<network_port>(*this, std::move(at), backlog);
  where->second->settle(here.shared_door());
  return where->second;
}

std::shared_ptr<network_link> network_state::connect(loop& here, network_address to) {
  const auto link = std::make_shared<network_link>(*this, ++last_id_);
  links_.emplace(link->id_, link);
  network_end& client = link->client;
  client.closed_ = false;
  client.settle(here.shared_door());
  client.address_.host = here.own_door().name();
  if (to.path.empty()) {
    client.address_.port = free_port(client.address_.host);
  } else {
    const auto listening = ports_.find(place_of(to));
    to.host = listening == ports_.end() ? client.address_.host : listening->second->address_.host;
  }
  link->server.address_ = std::move(to);
  put(client, {.what = kind::open});
  return link;
}

// ------------------------------------------------------------------ the world's part

bool network_state::separated(const std::string& a, const std::string& b) const {
  return !partitions_.empty() && partitions_.contains(pair_of(a, b));
}

bool network_state::separated(const network_end& from) const {
  return separated(from.address_.host, from.peer().address_.host);
}

void network_state::partition(std::string_view a, std::string_view b) {
  partitions_.insert(pair_of(a, b));
}

void network_state::heal() {
  partitions_.clear();
  for (auto& [id, link] : links_) {
    for (network_end* from : {&link->client, &link->server}) {
      if (from->scheduled_) continue;
      for (piece& p : from->lane_)
        if (p.at <= host_.now()) p.at = arrival(p.what);
      schedule(*from);
    }
  }
  deliver_due();
}

void network_state::reset(std::string_view a, std::string_view b) {
  const host_pair both = pair_of(a, b);
  for (auto next = links_.begin(); next != links_.end();) {
    const std::shared_ptr<network_link> link = (next++)->second;
    if (pair_of(link->client.address_.host, link->server.address_.host) != both) continue;
    for (network_end* end : {&link->client, &link->server}) {
      drop_lane(*end);
      if (end->error_ == 0) end->fail(ECONNRESET);
    }
    forget_if_done(*link);
  }
}

void network_state::loop_crashed(std::uint32_t serial) {
  for (auto next = ports_.begin(); next != ports_.end();) {
    const std::shared_ptr<network_port> port = (next++)->second;
    if (port->serial() != serial) continue;
    port->orphan();
    close(*port, true);
  }
  for (auto next = mailboxes_.begin(); next != mailboxes_.end();) {
    const std::shared_ptr<network_mailbox> mailbox = (next++)->second;
    if (mailbox->serial() != serial) continue;
    mailbox->orphan();
    mailbox->close();
  }
  for (auto next = links_.begin(); next != links_.end();) {
    const std::shared_ptr<network_link> link = (next++)->second;
    for (network_end* end : {&link->client, &link->server}) {
      if (end->serial() != serial || end->closed_) continue;
      end->orphan();
      close(*end, true);
    }
  }
}

// ------------------------------------------------------------------ pieces under way

time_point network_state::delayed() {
  const time_point at = saturating_add(host_.now(), faults_.latency);
  if (faults_.jitter <= duration::zero()) return at;
  const auto more = host_.below(static_cast<std::uint64_t>(faults_.jitter.count()) + 1);
  return saturating_add(at, duration(static_cast<duration::rep>(more)));
}

time_point network_state::arrival(kind what) {
  time_point at = delayed();
  // That room has come back is said again by whatever follows: its loss costs nothing.
  if (what != kind::taken && faults_.loss > 0 && host_.chance(faults_.loss))
    at = saturating_add(at, resend);
  return at;
}

void network_state::put(network_end& from, piece p) {
  if (from.error_ != 0) return;
  p.at = arrival(p.what);
  if (from.lane_.empty() && p.at <= host_.now() && !separated(from))
    return arrive(from, std::move(p));
  if (!from.lane_.empty()) {
    piece& before = from.lane_.back();
    if (before.what == kind::taken && p.what == kind::taken && before.at >= p.at) {
      before.count += p.count;
      return;
    }
  }
  from.lane_.push_back(std::move(p));
  schedule(from);
}

void network_state::schedule(network_end& from) {
  if (from.scheduled_ || from.lane_.empty() || separated(from)) return;
  // One that was ready before the piece in front of it has waited for that.
  schedule_.emplace(std::max(from.lane_.front().at, host_.now()), &from);
  from.scheduled_ = true;
}

void network_state::drop_lane(network_end& from) noexcept {
  from.lane_.clear();
  if (!std::exchange(from.scheduled_, false)) return;
  for (auto s = schedule_.begin(); s != schedule_.end(); ++s) {
    if (s->second != &from) continue;
    schedule_.erase(s);
    return;
  }
}

time_point network_state::next() const noexcept {
  const time_point streams = schedule_.empty() ? time_point::max() : schedule_.begin()->first;
  return datagrams_.empty() ? streams : std::min(streams, datagrams_.begin()->first);
}

bool network_state::deliver_due() {
  bool any = false;
  for (;;) {
    const time_point now = host_.now();
    const bool of_stream = !schedule_.empty() && schedule_.begin()->first <= now;
    const bool alone = !datagrams_.empty() && datagrams_.begin()->first <= now;
    if (!of_stream && !alone) return any;
    const bool chosen = alone && (!of_stream || host_.choose(2) == 1);
    any = (chosen ? deliver_datagram() : deliver_piece()) || any;
  }
}

bool network_state::deliver_piece() {
  const auto chosen = next_of(schedule_, host_);
  network_end& from = *chosen->second;
  schedule_.erase(chosen);
  from.scheduled_ = false;
  if (separated(from)) return false;  // held until `heal`
  piece p = std::move(from.lane_.front());
  from.lane_.pop_front();
  const std::shared_ptr<network_link> keep = from.link_.shared_from_this();
  schedule(from);
  arrive(from, std::move(p));
  return true;
}

bool network_state::deliver_datagram() {
  const auto chosen = next_of(datagrams_, host_);
  datagram d = std::move(chosen->second);
  datagrams_.erase(chosen);
  arrive(std::move(d));
  return true;
}

void network_state::arrive(network_end& from, piece p) {
  network_end& to = from.peer();
  const std::shared_ptr<network_link> keep = to.link_.shared_from_this();
  if (to.error_ == 0) {
    switch (p.what) {
      case kind::open:
        open_arrived(to);
        break;
      case kind::opened:
        to.open_ = true;
        to.tell(network_side::write);
        break;
      case kind::refused:
        to.fail(ECONNREFUSED);
        break;
      case kind::bytes:
        bytes_arrived(to, p.bytes);
        break;
      case kind::taken:
        to.under_way_ -= p.count;
        to.tell(network_side::write);
        break;
      case kind::end:
        to.got_end_ = true;
        to.tell(network_side::read);
        to.tell(network_side::hangup);
        break;
      case kind::reset:
        drop_lane(to);
        to.fail(ECONNRESET);
        break;
    }
  }
  forget_if_done(*keep);
}

void network_state::open_arrived(network_end& to) {
  const auto where = ports_.find(place_of(to.address_));
  if (where == ports_.end()) return put(to, {.what = kind::refused});
  network_port& port = *where->second;
  to.closed_ = false;
  to.address_.host = port.address_.host;
  to.settle(port.door());
  if (port.queue_.size() < port.backlog_) {
    enqueue(port, to.link_);
  } else {
    port.beyond_.push_back(to.link_.shared_from_this());
  }
}

void network_state::enqueue(network_port& port, network_link& link) {
  link.server.open_ = true;
  port.queue_.push_back(link.shared_from_this());
  put(link.server, {.what = kind::opened});
  port.tell(network_side::read, port.shared_from_this());
}

void network_state::bytes_arrived(network_end& to, const std::string& bytes) {
  if (to.closed_) return reset(to);
  to.received_.append(bytes);
  to.tell(network_side::read);
}

// ------------------------------------------------------------------ ends of things

// Nothing that comes after it is sent or received.
void network_state::reset(network_end& end) {
  put(end, {.what = kind::reset});
  if (end.error_ == 0) end.error_ = ECONNRESET;
}

void network_state::close(network_end& end, bool crashed) {
  if (std::exchange(end.closed_, true)) return;
  const bool lost_input = end.unread() > 0;
  end.received_.clear();
  end.begin_ = 0;
  if (end.error_ == 0) {
    const bool asking = !end.lane_.empty() && end.lane_.front().what == kind::open;
    if (asking) {
      drop_lane(end);
    } else if (crashed || lost_input || !end.open_) {
      // As with real sockets, what was not yet sent when a reset overtakes it is lost.
      if (lost_input && !end.lane_.empty() && host_.choose(2) == 1) drop_lane(end);
      reset(end);
    } else if (!std::exchange(end.sent_end_, true)) {
      put(end, {.what = kind::end});
    }
  }
  forget_if_done(end.link_);
}

void network_state::close(network_port& port, bool left_behind) {
  const std::shared_ptr<network_port> keep = port.shared_from_this();
  ports_.erase(place_of(port.address_));
  port.net_ = nullptr;
  if (left_behind && !port.address_.path.empty()) stale_paths_.insert(port.address_.path);
  for (const auto& link : std::exchange(port.queue_, {})) close(link->server, true);
  for (const auto& link : std::exchange(port.beyond_, {})) {
    link->server.closed_ = true;
    put(link->server, {.what = kind::refused});
    forget_if_done(*link);
  }
}

void network_state::forget_if_done(network_link& link) noexcept {
  if (!link.client.closed_ || !link.server.closed_) return;
  if (!link.client.lane_.empty() || !link.server.lane_.empty()) return;
  link.net_ = nullptr;
  links_.erase(link.id_);
}

}  // namespace weir::detail
