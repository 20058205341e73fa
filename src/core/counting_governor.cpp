// SPDX-License-Identifier: MIT
#include <weir/governor/counting.hpp>

#include <mutex>
#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/parallel_map.hpp>

#include "core/fatal.hpp"
#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

void raise_both(std::exception_ptr first, std::exception_ptr second) {
  throw error_group({std::move(first), std::move(second)});
}

void require_limit(std::int64_t limit) {
  if (limit < 1)
    raise(errc::invalid_argument, "parallel_map: a limit of " + std::to_string(limit) +
                                      " lets nothing run; give 1 or more");
}

void report_failed_release() noexcept {
  if (loop* here = loop::here())
    here->emit("cleanup_failed", "permit", 0, 0, std::current_exception());
}

namespace {

void release_elsewhere(permit_source& source, std::uint32_t home, std::int64_t weight);

/// Returns a permit to its home loop.
struct release_message final : message {
  release_message(permit_source& s, std::int64_t w) noexcept : source(&s), weight(w) {}
  void deliver(loop& here) noexcept override {
    try {
      source->give_back(weight);
    } catch (...) {
      here.emit("cleanup_failed", "permit", 0, 0, std::current_exception());
    }
    delete this;
  }
  void refuse() noexcept override {
    try {
      release_elsewhere(*source, 0, weight);
    } catch (...) {
      report_failed_release();
    }
    delete this;
  }
  permit_source* source;
  std::int64_t weight;
};

// Releases on the governor's current home. If that has ended, no fiber waits, and the permit is
// released here, under the lock.
void release_elsewhere(permit_source& source, std::uint32_t home, std::int64_t weight) {
  std::unique_lock lock(home_mutex());
  if (const std::uint32_t now = source.current_home(); now != 0) home = now;
  const door_ref there = home == 0 ? nullptr : door_table::find_serial(home);
  if (there == nullptr) return source.give_back(weight);
  lock.unlock();
  there->post(*new release_message(source, weight));
}

}  // namespace

bool release_slowly(permit_source& source, std::uint32_t home, std::int64_t weight) {
  if (home == 0 || home == current_loop_serial()) {
    source.give_back(weight);
  } else if (door_table::is_inner(home)) {
    return false;
  } else {
    release_elsewhere(source, home, weight);
  }
  return true;
}

void refuse_release() { raise_other_run("a permit"); }

void idle_listener::notify(std::string_view governor) noexcept {
  try {
    call();
  } catch (...) {
    if (loop* here = loop::here())
      here->emit("observer_failed", governor, 0, 0, std::current_exception());
  }
}

// ------------------------------------------------------------------ waiting

void acquire_wait::refuse() const {
  const bool closed = fate_ == fate::closed;
  raise(closed ? errc::governor_closed : errc::governor_full,
        text_of(governor_->self()) +
            (closed ? " is closed"
                    : " is full: " + std::to_string(governor_->max_waiting_) +
                          " requests wait already; try again later or raise max_waiting"));
}

void acquire_wait::arm() noexcept {
  fate_ = fate::waiting;
  if (governor_->closed_ || governor_->requests_ >= governor_->max_waiting_) {
    fate_ = governor_->closed_ ? fate::closed : fate::full;
    return complete();
  }
  governor_->waiters_.push_back(*this);
  governor_->waiting_ += weight_;
  ++governor_->requests_;
  governor_->note_interest();
  governor_->grant_waiters();  // another arm of the same composite may have released
}

cancel_result acquire_wait::withdraw() noexcept {
  governor_->unlink(*this);
  governor_->grant_waiters();  // requests behind a heavy one may fit now
  return cancel_result::done;
}

void acquire_wait::describe(dump_line& line) const {
  line.add("acquire of governor").add_name(governor_->name());
  line.add(" (").add(static_cast<std::uint64_t>(governor_->active())).add(" of ");
  line.add(static_cast<std::uint64_t>(governor_->capacity())).add(" out)");
}

}  // namespace detail

// ------------------------------------------------------------------ the governor

counting_governor::counting_governor(std::int64_t capacity, governor_options options)
    : capacity_(capacity), max_waiting_(options.max_waiting), name_(options.name) {
  require_capacity(capacity);
  free_ = capacity;
  only_counts_ = true;
  if (options.max_waiting < 0)
    detail::raise(errc::invalid_argument, detail::text_of(self()) +
                                              ": max_waiting is negative; give 0 or more, or "
                                              "unbounded");
}

counting_governor::~counting_governor() {
  waiters_.require_empty(self());
  if (active() > 0)
    detail::fatal(detail::text_of(self()) + " destroyed while " + std::to_string(active()) +
                  " units are out");
}

void counting_governor::require_capacity(std::int64_t capacity) const {
  if (capacity < 0 || capacity > std::int64_t{0xffffffff})
    detail::raise(errc::invalid_argument, detail::text_of(self()) + ": a capacity of " +
                                              std::to_string(capacity) +
                                              " is not in 0..4294967295");
}

void counting_governor::refuse_weight(std::int64_t weight) const {
  detail::raise(errc::invalid_argument, detail::text_of(self()) + ": a weight of " +
                                            std::to_string(weight) +
                                            " is not positive; ask for 1 or more");
}

std::optional<permit> counting_governor::try_acquire(std::int64_t weight) {
  check(weight);
  if (closed_ || !waiters_.empty() || free_ < weight) return std::nullopt;
  free_ -= weight;
  return permit(*this, weight, home_.serial());
}

void counting_governor::unlink(detail::acquire_wait& w) noexcept {
  waiters_.remove(w);
  waiting_ -= w.weight_;
  --requests_;
  note_interest();
}

void counting_governor::grant_first() noexcept {
  detail::acquire_wait& w = first_waiter();
  unlink(w);
  free_ -= w.weight_;
  w.fate_ = detail::acquire_wait::fate::granted;
  w.complete();
}

void counting_governor::grant_waiters() noexcept {
  while (!waiters_.empty() && first_waiter().weight_ <= free_) grant_first();
}

void counting_governor::give_back(std::int64_t weight) {
  free_ += weight;
  if (!waiters_.empty()) grant_waiters();
  if (free_ == capacity_ && waiters_.empty() && !listeners_.empty()) notify_idle();
}

void counting_governor::notify_idle() noexcept {
  for (std::size_t i = 0; i < listeners_.size(); ++i) listeners_[i]->notify(name_.view());
}

void counting_governor::add_listener(std::unique_ptr<detail::idle_listener> listener) {
  listeners_.push_back(std::move(listener));
  note_interest();
}

void counting_governor::resize(std::int64_t capacity) {
  if (!home_.is_here()) settle_home(false);
  require_capacity(capacity);
  free_ += capacity - capacity_;
  capacity_ = capacity;
  grant_waiters();
}

void counting_governor::close() {
  if (!home_.is_here()) settle_home(false);
  closed_ = true;
  while (!waiters_.empty()) {
    detail::acquire_wait& w = first_waiter();
    unlink(w);
    w.fate_ = detail::acquire_wait::fate::closed;
    w.complete();
  }
}

}  // namespace weir
