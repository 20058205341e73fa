// SPDX-License-Identifier: MIT
#include <weir/events.hpp>

#include <algorithm>
#include <cstring>

#include <weir/detail/made_in_run.hpp>

#include "core/counters.hpp"
#include "core/event_ring.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir {

event_log recent_events() {
  detail::loop& here = detail::require_fiber("recent_events");
  detail::require_no_run("recent_events");
  return here.events().recent();
}

namespace detail {

// A thread keeps the storage of its last loop: simulations make thousands of loops.
std::unique_ptr<event_ring::storage>& event_ring::spare() noexcept {
  static thread_local std::unique_ptr<storage> kept;
  return kept;
}

event_ring::event_ring() : cells_(std::move(spare())) {
  counters::prepare();
  if (cells_ == nullptr) cells_ = std::make_unique_for_overwrite<storage>();
}

event_ring::~event_ring() { spare() = std::move(cells_); }

void event_ring::emit(time_point when, std::string_view name, std::string_view object,
                      std::uint64_t number, scope_id scope) noexcept {
  const event_info info{name, object, number, when, scope};
  keep(info);
  for (event_observer* o = observers_; o != nullptr;) {
    event_observer* following = o->next_;
    try {
      o->on(info);
    } catch (...) {
      keep({"observer_failed", name, ++failed_observers_, when, scope});
    }
    o = following;
  }
}

void event_ring::keep(const event_info& e) noexcept {
  counters::count(e.object, e.name);
  if (e.name == "cancel") counters::count_cancel(static_cast<cancel_kind>(e.number));
  cell& c = (*cells_)[emitted_++ % capacity];
  c.name = e.name.data();  // names of events are literals
  c.name_size = e.name.size();
  c.object_size = std::min(e.object.size(), c.object.size());
  if (c.object_size != 0) std::memcpy(c.object.data(), e.object.data(), c.object_size);
  c.number = e.number;
  c.when_ns = e.when.time_since_epoch().count();
  c.scope = e.scope;
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
  require_no_run("on_event");
  home_ = here.serial();
  here.events().add(*this);
}

void event_observer::detach() noexcept {
  loop* here = loop::here();
  if (here != nullptr && here->serial() == home_) return here->events().remove(*this);
  // After its loop ended there is nothing left to leave.
  if (door_table::find_serial(home_) != nullptr)
    fatal("the subscription of on_event destroyed on another thread while its loop runs");
}

}  // namespace detail
}  // namespace weir
