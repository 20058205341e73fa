// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <weir/detail/core/governor_facade.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/governor/governor.hpp>
#include <weir/name.hpp>

namespace weir {

struct governor_options {
  weir::name name{};
  std::int64_t max_waiting = unbounded;
};

class counting_governor;

}  // namespace weir

#include <weir/detail/core/counting_governor.hpp>

namespace weir {

/// Grants up to `capacity` units at once, strictly first come, first served: no newcomer overtakes
/// a waiter, not even a lighter one; a release hands over directly.
///
/// Threads: home loop only (the loop it was created in, else the first that uses it); permits may
/// be released on any thread. Cancels: a waiter leaves in O(1) and takes nothing. Destroying it
/// while permits are held or fibers wait aborts with its name.
class counting_governor : private detail::permit_source,
                          public detail::governor_facade<counting_governor> {
 public:
  /// 0 <= capacity < 2^32, else errc::invalid_argument; 0 waits until resized.
  explicit counting_governor(std::int64_t capacity, governor_options options = {});
  virtual ~counting_governor();

  /// Waits for `weight` units; for more than the capacity, until a resize allows it.
  /// errc::governor_closed after close(), errc::governor_full beyond max_waiting.
  detail::pending<detail::acquire_wait> acquire(std::int64_t weight = 1);
  /// Never waits; empty if the units cannot be granted at once.
  std::optional<permit> try_acquire(std::int64_t weight = 1);
  /// acquire_for(d, weight = 1): as acquire, for at most `d`: timeout_error.
  using detail::governor_facade<counting_governor>::acquire_for;

  /// Growing grants the new units to waiters; shrinking revokes nothing.
  void resize(std::int64_t capacity);
  /// All present and later acquires fail with errc::governor_closed.
  void close();
  /// on_idle(fn): calls `fn` each time it becomes idle: no permit is held and no acquire waits.
  using detail::governor_facade<counting_governor>::on_idle;

  std::int64_t capacity() const noexcept { return capacity_; }
  /// Units that are free, not counting claims of waiters.
  std::int64_t available() const noexcept { return free_ > 0 ? free_ : 0; }
  /// Units that are held.
  std::int64_t active() const noexcept { return capacity_ - free_; }
  /// Units that waiters have requested.
  std::int64_t waiting() const noexcept { return waiting_; }
  std::string_view name() const noexcept { return name_.view(); }

  /// with(op) and wrap(fn): as weir::with and weir::wrap with this governor.
  using detail::governor_facade<counting_governor>::with;
  using detail::governor_facade<counting_governor>::wrap;

 private:
  friend class detail::acquire_wait;
  friend class detail::adjusting_governor;  // counts in the same way, under a limit that changes
  friend class detail::adjusted_wait;
  friend class detail::governor_facade<counting_governor>;

  void give_back(std::int64_t weight) override;
  std::uint32_t current_home() const noexcept override { return home_.serial(); }
  void check(std::int64_t weight) {
    if (!home_.is_here()) [[unlikely]]
      settle_home(true);
    if (weight < 1) [[unlikely]]
      refuse_weight(weight);
  }
  void settle_home(bool needs_loop) { home_.settle(self(), "use a shared_governor", needs_loop); }
  [[noreturn]] void refuse_weight(std::int64_t weight) const;
  void add_listener(std::unique_ptr<detail::idle_listener> listener);
  /// Grants free units to the longest waiters. Overridden by governors with a changing limit, which
  /// check the limit first.
  virtual void grant_waiters() noexcept;
  void grant_first() noexcept;
  void unlink(detail::acquire_wait& w) noexcept;
  void notify_idle() noexcept;
  void require_capacity(std::int64_t capacity) const;

  /// Updates whether a release needs more than counting.
  void note_interest() noexcept {
    only_counts_ = !adjusts_ && waiters_.empty() && listeners_.empty();
  }
  detail::acquire_wait& first_waiter() const noexcept {
    return static_cast<detail::acquire_wait&>(*waiters_.first());
  }
  detail::object_name self() const noexcept { return {"governor", name_.view()}; }

  std::int64_t capacity_;
  std::int64_t waiting_ = 0;
  std::int64_t requests_ = 0;
  std::int64_t max_waiting_;
  detail::wait_list waiters_;
  detail::home home_;
  bool closed_ = false;
  bool adjusts_ = false;  // it is an adjusting_governor, which sees every release
  detail::kept_name name_;
  std::vector<std::unique_ptr<detail::idle_listener>> listeners_;
};

inline bool detail::acquire_wait::try_now() noexcept {
  if (!governor_->waiters_.empty() || governor_->free_ < weight_ || governor_->closed_)
    return false;
  governor_->free_ -= weight_;
  fate_ = fate::granted;
  return true;
}

inline permit detail::acquire_wait::take() {
  if (fate_ != fate::granted) [[unlikely]]
    refuse();
  fate_ = fate::waiting;
  return permit(*governor_, weight_, governor_->home_.serial());
}

inline detail::acquire_wait::~acquire_wait() {
  if (fate_ == fate::granted) [[unlikely]]
    governor_->give_back(weight_);  // granted, but not taken
}

inline detail::pending<detail::acquire_wait> counting_governor::acquire(std::int64_t weight) {
  check(weight);
  return detail::pending<detail::acquire_wait>({this, weight});
}

}  // namespace weir
