// SPDX-License-Identifier: MIT
#include "durable/timer_queue.hpp"

#include <functional>

namespace weir::detail {

bool timer_queue::before(const queued_timer& a, const queued_timer& b) noexcept {
  if (a.due != b.due) return a.due < b.due;
  if (a.limit != b.limit) return !a.limit;  // a value wins over a limit
  if (a.order != b.order) return a.order < b.order;
  return std::less<>()(&a, &b);
}

void timer_queue::put(queued_timer& t, std::size_t at) noexcept {
  heap_[at] = &t;
  t.place = static_cast<std::uint32_t>(at + 1);
}

void timer_queue::move_up(queued_timer& t, std::size_t at) noexcept {
  while (at > 0) {
    const std::size_t above = (at - 1) / 2;
    if (!before(t, *heap_[above])) break;
    put(*heap_[above], at);
    at = above;
  }
  put(t, at);
}

void timer_queue::move_down(queued_timer& t, std::size_t at) noexcept {
  for (;;) {
    std::size_t below = 2 * at + 1;
    if (below >= heap_.size()) break;
    if (below + 1 < heap_.size() && before(*heap_[below + 1], *heap_[below])) ++below;
    if (!before(*heap_[below], t)) break;
    put(*heap_[below], at);
    at = below;
  }
  put(t, at);
}

void timer_queue::add(queued_timer& t) {
  heap_.push_back(&t);
  move_up(t, heap_.size() - 1);
}

void timer_queue::remove(queued_timer& t) noexcept {
  const std::size_t at = t.place - 1;
  t.place = 0;
  queued_timer& last = *heap_.back();
  heap_.pop_back();
  if (&last == &t) return;
  if (at > 0 && before(last, *heap_[(at - 1) / 2])) {
    move_up(last, at);
  } else {
    move_down(last, at);
  }
}

void timer_queue::clear() noexcept {
  for (queued_timer* t : heap_) t->place = 0;
  heap_.clear();
}

}  // namespace weir::detail
