// SPDX-License-Identifier: MIT
#include <weir/event.hpp>

#include <algorithm>
#include <cstring>

#include "core/event_ring.hpp"
#include "core/loop.hpp"

namespace weir {

event_log recent_events() { return detail::require_fiber("recent_events").events().recent(); }

namespace detail {

// A thread keeps the storage of its last loop: simulations make thousands of loops.
std::unique_ptr<event_ring::storage>& event_ring::spare() noexcept {
  static thread_local std::unique_ptr<storage> kept;
  return kept;
}

event_ring::event_ring() : cells_(std::move(spare())) {
  if (cells_ == nullptr) cells_ = std::make_unique_for_overwrite<storage>();
}

event_ring::~event_ring() { spare() = std::move(cells_); }

void event_ring::emit(time_point when, std::string_view name, std::string_view object,
                      std::uint64_t number, scope_id scope) noexcept {
  cell& c = (*cells_)[emitted_++ % capacity];
  c.name = name.data();  // names of events are literals
  c.name_size = name.size();
  c.object_size = std::min(object.size(), c.object.size());
  if (c.object_size != 0) std::memcpy(c.object.data(), object.data(), c.object_size);
  c.number = number;
  c.when_ns = when.time_since_epoch().count();
  c.scope = scope;
  const event_info info{name, object, number, when, scope};
  for (event_observer* o = observers_; o != nullptr;) {
    event_observer* following = o->next_;
    try {
      o->on(info);
    } catch (...) {
      ++failed_observers_;
    }
    o = following;
  }
}

void event_ring::add(event_observer& observer) noexcept {
  event_observer** at = &observers_;
  while (*at != nullptr) at = &(*at)->next_;  // called in order of subscription
  *at = &observer;
  observer.at_ = at;
}

void event_ring::remove(event_observer& observer) noexcept {
  *observer.at_ = observer.next_;
  if (observer.next_ != nullptr) observer.next_->at_ = observer.at_;
  observer.at_ = nullptr;
  observer.next_ = nullptr;
}

event_log event_ring::recent() const {
  event_log log;
  const std::uint64_t kept = std::min<std::uint64_t>(emitted_, capacity);
  log.dropped = emitted_ - kept;
  log.events.reserve(kept);
  for (std::uint64_t i = emitted_ - kept; i < emitted_; ++i) {
    const cell& c = (*cells_)[i % capacity];
    log.events.push_back({std::string(c.name, c.name_size),
                          std::string(c.object.data(), c.object_size), c.number,
                          time_point(duration(c.when_ns)), c.scope});
  }
  return log;
}

void event_observer::attach() {
  loop& here = require_fiber("on_event");
  home_ = here.serial();
  here.events().add(*this);
}

void event_observer::detach() noexcept {
  // After its loop ended there is nothing left to leave.
  loop* here = loop::here();
  if (at_ != nullptr && here != nullptr && here->serial() == home_) here->events().remove(*this);
}

}  // namespace detail
}  // namespace weir
