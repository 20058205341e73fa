// SPDX-License-Identifier: MIT
#include <weir/mutex.hpp>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/cancel_tree.hpp"
#include "core/fatal.hpp"
#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

lock_wait::lock_wait(args&& a) : mutex_(a.of) { mutex_->check(); }

bool lock_wait::try_now() noexcept {
  if (mutex_->locked_) return false;
  mutex_->hold(current_fiber());
  return holds_ = true;
}

void lock_wait::arm() noexcept {
  if (try_now()) return complete();  // unlocked by another arm of the same composite wait
  mutex_->waiters_.push_back(*this);
}

cancel_result lock_wait::withdraw() noexcept {
  mutex_->waiters_.remove(*this);
  return cancel_result::done;
}

lock_wait::~lock_wait() {
  if (holds_) [[unlikely]]
    mutex_->unlock();
}

void lock_wait::describe(dump_line& line) const {
  line.add("mutex").add_name(mutex_->name());
  if (const fiber* owner = mutex_->owner_; owner != nullptr && !owner->ended)
    line.add(" (held by").add_name(owner->name == nullptr ? "unnamed" : owner->name).add(")");
}

void lock_wait::blockers(blocker_list& list) const {
  if (mutex_->owner_ != nullptr && !mutex_->owner_->ended) list.fibers.push_back(mutex_->owner_);
}

}  // namespace detail

mutex::~mutex() {
  waiters_.require_empty(self());
  if (locked_) detail::fatal(detail::text_of(self()) + " destroyed while it is locked");
}

void mutex::settle_home() { home_.settle(self(), "use a shared_governor of capacity 1", false); }

// Waiters belong to the home loop: waking them from another loop would run them there.
void mutex::check_unlock() const noexcept {
  const detail::door_ref home = detail::door_table::find_serial(home_.serial());
  if (home == nullptr || detail::in_dead_world()) return;
  detail::fatal(detail::text_of(self()) + " of loop '" + home->name() +
                "' unlocked elsewhere; unlock it where it was locked");
}

void mutex::hold(detail::fiber* owner) noexcept {
  locked_ = true;
  owner_ = owner;
  if (owner != nullptr) owner->retain();
}

std::optional<mutex_guard> mutex::try_lock() {
  check();
  if (locked_) return std::nullopt;
  hold(detail::current_fiber());
  return mutex_guard(*this);
}

void mutex::unlock() noexcept {
  if (!home_.is_here()) check_unlock();
  locked_ = false;
  if (detail::fiber* before = std::exchange(owner_, nullptr)) before->release();
  if (waiters_.empty()) return;
  auto& first = static_cast<detail::lock_wait&>(*waiters_.first());
  waiters_.remove(first);
  hold(detail::cancel_tree::fiber_of(*first.waiting_strand()->top));
  first.holds_ = true;
  first.complete();
}

}  // namespace weir
