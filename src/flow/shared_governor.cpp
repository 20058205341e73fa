// SPDX-License-Identifier: MIT
#include "flow/shared_queue.hpp"

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/fatal.hpp"
#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

// ------------------------------------------------------------------ requests

void shared_request_list::push_back(shared_request& r) noexcept {
  r.previous = last;
  r.next = nullptr;
  (last == nullptr ? first : last->next) = &r;
  last = &r;
}

void shared_request_list::remove(shared_request& r) noexcept {
  (r.previous == nullptr ? first : r.previous->next) = r.next;
  (r.next == nullptr ? last : r.next->previous) = r.previous;
}

// ------------------------------------------------------------------ waiting

void shared_wait::arm() { governor_->queue_->enter(*this); }

void shared_wait::answered() noexcept {
  shared_request& r = *std::exchange(request_, nullptr);
  fate_ = r.how;
  r.dispose();
  complete();
}

cancel_result shared_wait::withdraw() noexcept {
  leave();
  return cancel_result::done;
}

void shared_wait::leave() noexcept {
  if (request_ != nullptr) {
    governor_->queue_->leave(*std::exchange(request_, nullptr));
  } else if (fate_ == fate::granted) {
    fate_ = fate::waiting;
    governor_->give_back(weight_);
  }
}

void shared_wait::refuse() const {
  const shared_queue& queue = *governor_->queue_;
  if (fate_ == fate::closed)
    raise(errc::governor_closed, text_of(queue.self()).append(" is closed"));
  raise(errc::governor_full,
        text_of(queue.self())
            .append(" is full: ")
            .append(std::to_string(queue.max_waiting()))
            .append(" requests wait already; try again later or raise max_waiting"));
}

void shared_wait::describe(dump_line& line) const {
  const shared_queue& queue = *governor_->queue_;
  line.add("acquire of governor").add_name(queue.self().name);
  line.add(" (").add(static_cast<std::uint64_t>(queue.active())).add(" of ");
  line.add(static_cast<std::uint64_t>(queue.capacity())).add(" out)");
}

// ------------------------------------------------------------------ the queue

shared_queue::shared_queue(shared_governor& of, std::int64_t capacity,
                           const governor_options& options)
    : of_(of), capacity_(capacity), max_waiting_(options.max_waiting), name_(options.name) {
  require_capacity(capacity);
  if (max_waiting_ < 0)
    raise(errc::invalid_argument,
          text_of(self()).append(": max_waiting is negative; give 0 or more, or unbounded"));
}

// The lock is released before the dump, which asks the governor for numbers.
void shared_queue::require_unused() const {
  std::string text = text_of(self()).append(" destroyed while ");
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t out = capacity_ - free();
    if (requests_ == 0 && out <= 0) return;
    if (requests_ > 0) {
      text.append(std::to_string(requests_)).append(" requests wait for it");
    } else {
      text.append(std::to_string(out)).append(" units are out");
    }
  }
  fatal(text);
}

void shared_queue::require_capacity(std::int64_t capacity) const {
  if (capacity >= 0 && capacity <= std::int64_t{0xffffffff}) return;
  raise(errc::invalid_argument, text_of(self())
                                    .append(": a capacity of ")
                                    .append(std::to_string(capacity))
                                    .append(" is not in 0..4294967295"));
}

std::int64_t shared_queue::free() const noexcept {
  return shared_governor::free_in(of_.word().load(std::memory_order_acquire));
}

// Sets `waits` first: from then on units are taken only under the lock, and every release comes
// here.
void shared_queue::enter(shared_wait& w) {
  auto* made = new shared_request(w.weight_);
  fate how = fate::waiting;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t word =
        of_.word().fetch_or(shared_governor::waits, std::memory_order_acquire);
    if ((word & shared_governor::closed) != 0) {
      how = fate::closed;
    } else if (requests_ == 0 && shared_governor::free_in(word) >= w.weight_) {
      how = fate::granted;
      of_.word().fetch_sub(w.weight_ * shared_governor::unit, std::memory_order_relaxed);
    } else if (requests_ >= max_waiting_) {
      how = fate::full;
    } else {
      made->ask(w);
      made->queued = true;
      requests_in_order_.push_back(*made);
      waiting_ += w.weight_;
      ++requests_;
    }
    note_empty();
  }
  w.fate_ = how;
  if (how != fate::waiting) {
    made->dispose();
    return w.complete();
  }
  w.request_ = made;
}

void shared_queue::note_empty() noexcept {
  if (requests_ == 0) of_.word().fetch_and(~shared_governor::waits, std::memory_order_release);
}

void shared_queue::unlink(shared_request& r) noexcept {
  requests_in_order_.remove(r);
  r.queued = false;
  waiting_ -= r.weight;
  --requests_;
}

void shared_queue::answer_first(fate how, to_do& later) noexcept {
  shared_request& r = *requests_in_order_.first;
  unlink(r);
  r.how = how;
  (void)r.claim();  // a wait leaves under the lock
  later.answered.push_back(r);
}

void shared_queue::grant(to_do& later) noexcept {
  while (requests_ > 0 && requests_in_order_.first->weight <= free()) {
    of_.word().fetch_sub(requests_in_order_.first->weight * shared_governor::unit,
                         std::memory_order_relaxed);
    answer_first(fate::granted, later);
  }
  note_empty();
}

// If a grant is on its way to a waiter that leaves, its units go to the next request.
void shared_queue::leave(shared_request& r) noexcept {
  to_do later;
  {
    const std::lock_guard lock(mutex_);
    if (r.queued) {
      unlink(r);
      r.take_back();
    } else if (r.how == fate::granted) {
      of_.word().fetch_add(r.weight * shared_governor::unit, std::memory_order_release);
    }
    grant(later);
    note_idle(later);
  }
  r.leave();
  later.run();
}

// The last release notifies the idle listeners, unless its units go to a waiting request.
void shared_queue::settle(std::int64_t free_then) noexcept {
  to_do later;
  {
    const std::lock_guard lock(mutex_);
    grant(later);
    if (free_then == capacity_) note_idle(later);
  }
  later.run();
}

void shared_queue::resize(std::int64_t capacity) {
  require_capacity(capacity);
  to_do later;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t more = capacity - capacity_;
    capacity_ = capacity;
    of_.word().fetch_add(more * shared_governor::unit, std::memory_order_relaxed);
    grant(later);
  }
  later.run();
}

void shared_queue::close() noexcept {
  to_do later;
  {
    const std::lock_guard lock(mutex_);
    of_.word().fetch_or(shared_governor::closed, std::memory_order_relaxed);
    while (requests_ > 0) answer_first(fate::closed, later);
    note_empty();
  }
  later.run();
}

void shared_queue::to_do::run() noexcept {
  while (shared_request* r = answered.first) {
    answered.first = r->next;  // read before sending, which may delete it
    r->answer();
  }
  if (idle != nullptr) idle->notify();
}

// ------------------------------------------------------------------ idle listeners and counters

void shared_queue::note_idle(to_do& later) const noexcept {
  if (listeners_ != nullptr && requests_ == 0 && free() == capacity_) later.idle = listeners_;
}

void shared_queue::listener_list::notify() const noexcept {
  for (const auto& listener : all) listener->notify(governor);
}

// Copy on write: another thread may be iterating over the list.
void shared_queue::add_listener(std::unique_ptr<idle_listener> listener) {
  const std::lock_guard lock(mutex_);
  auto more = listeners_ == nullptr ? std::make_shared<listener_list>()
                                    : std::make_shared<listener_list>(*listeners_);
  more->governor = name_.view();
  more->all.push_back(std::move(listener));
  listeners_ = std::move(more);
  of_.word().fetch_or(shared_governor::listens, std::memory_order_relaxed);
}

std::int64_t shared_queue::capacity() const {
  const std::lock_guard lock(mutex_);
  return capacity_;
}

std::int64_t shared_queue::active() const {
  const std::lock_guard lock(mutex_);
  return capacity_ - free();
}

std::int64_t shared_queue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

}  // namespace detail

// ------------------------------------------------------------------ shared_governor

shared_governor::shared_governor(std::int64_t capacity, const governor_options& options)
    : queue_(std::make_unique<detail::shared_queue>(*this, capacity, options)) {
  word().store(capacity * unit, std::memory_order_relaxed);
}

shared_governor::~shared_governor() { queue_->require_unused(); }

void shared_governor::give_back(std::int64_t weight) {
  permit(*this, weight, detail::home_anywhere).release();
}
void shared_governor::settle(std::int64_t free) noexcept { queue_->settle(free); }

void shared_governor::refuse_weight(std::int64_t weight) const {
  detail::raise(errc::invalid_argument, detail::text_of(queue_->self())
                                            .append(": a weight of ")
                                            .append(std::to_string(weight))
                                            .append(" is not positive; ask for 1 or more"));
}

void shared_governor::refuse_here() const { made_.refuse(queue_->self()); }

void shared_governor::resize(std::int64_t capacity) {
  require_here();
  queue_->resize(capacity);
}
void shared_governor::close() {
  require_here();
  queue_->close();
}
void shared_governor::add_listener(std::unique_ptr<detail::idle_listener> listener) {
  require_here();
  queue_->add_listener(std::move(listener));
}

std::int64_t shared_governor::capacity() const {
  require_here();
  return queue_->capacity();
}
std::int64_t shared_governor::active() const {
  require_here();
  return queue_->active();
}
std::int64_t shared_governor::waiting() const {
  require_here();
  return queue_->waiting();
}
std::string_view shared_governor::name() const noexcept { return queue_->self().name; }
std::int64_t shared_governor::available() const {
  require_here();
  const std::int64_t free = free_in(word().load(std::memory_order_relaxed));
  return free > 0 ? free : 0;
}

}  // namespace weir
