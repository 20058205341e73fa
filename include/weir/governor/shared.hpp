// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <weir/detail/core/governor_facade.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/detail/flow/shared_governor.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>

namespace weir {

/// As counting_governor, without a home: usable from any loop, and `try_acquire`, `release`,
/// `resize` and `close` from any thread. Strictly first come, first served across all loops.
///
/// One atomic word holds the free units and three marks: has waiters, has idle callbacks, closed.
/// Invariants:
/// 1. While the mark `waits` is set, only the first waiter in the queue gets units, under the lock.
///    Without marks there is no locking: an acquire is one compare-and-swap, a release one
///    addition.
/// 2. A release adds its units first; if it then finds a mark, it takes the lock and grants them.
///    The thread that sets `waits` checks the units once more afterwards: so one of the two sees
///    the other, and no unit stays free while a waiter could take it.
/// 3. A unit counts as held from the moment of the grant, also while the message to the waiter's
///    loop is in flight. A waiter that leaves meanwhile passes it to the next in the queue at once;
///    the message is then ignored.
///
/// Lifetime: it must outlive every call, also a release on another thread that has not returned
/// yet. Cancels: a waiter leaves in O(1) and takes nothing, also while its grant is in flight.
/// While a fiber of a real loop waits, that loop expects an answer from another thread, so a
/// self-deadlock is detected only in a simulation. Destroying it while units are held or acquires
/// wait aborts with its name. Costs: parking takes one small block of the frame cache. A durable
/// run may use only a governor that it created itself, outside of steps, and only that run may use
/// it: errc::not_journaled.
class shared_governor final : private detail::permit_source,
                              public detail::governor_facade<shared_governor> {
 public:
  /// 0 <= capacity < 2^32, else errc::invalid_argument; 0 waits until resized.
  explicit shared_governor(std::int64_t capacity, const governor_options& options = {});
  ~shared_governor();

  /// Waits for `weight` units; for more than the capacity, until a resize allows it.
  /// errc::governor_closed after close(), errc::governor_full beyond max_waiting.
  detail::pending<detail::shared_wait> acquire(std::int64_t weight = 1) {
    if (weight < 1) [[unlikely]]
      refuse_weight(weight);
    return detail::pending<detail::shared_wait>({this, weight});
  }
  /// Never waits; empty if the units cannot be granted at once. Any thread.
  std::optional<permit> try_acquire(std::int64_t weight = 1) {
    if (weight < 1) [[unlikely]]
      refuse_weight(weight);
    require_here();
    if (!take_now(weight)) return std::nullopt;
    return permit(*this, weight, permit_home());
  }
  /// acquire_for(d, weight = 1): as acquire, for at most `d`: timeout_error.
  using detail::governor_facade<shared_governor>::acquire_for;

  /// Growing grants the new units to waiters; shrinking revokes nothing.
  void resize(std::int64_t capacity);
  /// All present and later acquires fail with errc::governor_closed.
  void close();
  /// on_idle(fn): calls `fn` each time it becomes idle (no permit is held and no acquire waits), on
  /// the thread of the last release.
  using detail::governor_facade<shared_governor>::on_idle;

  // The following values may be outdated when the call returns.

  std::int64_t capacity() const;
  /// Units that are free, not counting claims of waiters.
  std::int64_t available() const;
  /// Units that are held.
  std::int64_t active() const;
  /// Units that waiters have requested.
  std::int64_t waiting() const;
  std::string_view name() const noexcept;

  /// with(op) and wrap(fn): as weir::with and weir::wrap with this governor.
  using detail::governor_facade<shared_governor>::with;
  using detail::governor_facade<shared_governor>::wrap;

 private:
  friend class detail::shared_wait;
  friend class detail::shared_queue;
  friend class detail::governor_facade<shared_governor>;

  // The marks in the word; see permit_source.
  static constexpr std::int64_t waits = 1;
  static constexpr std::int64_t closed = 2;
  static constexpr std::int64_t listens = 4;
  static constexpr std::int64_t free_in(std::int64_t word) noexcept { return word >> 3; }
  std::atomic_ref<std::int64_t> word() const noexcept {
    return std::atomic_ref(const_cast<std::int64_t&>(free_));
  }

  bool take_now(std::int64_t weight) noexcept {
    std::int64_t seen = word().load(std::memory_order_relaxed);
    while ((seen & (waits | closed)) == 0 && free_in(seen) >= weight) {
      if (word().compare_exchange_weak(seen, seen - weight * unit, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[likely]]
        return true;
    }
    return false;
  }
  void give_back(std::int64_t weight) override;
  void settle(std::int64_t free) noexcept override;
  [[noreturn]] void refuse_weight(std::int64_t weight) const;
  void require_here() const {
    if (!made_.is_here()) [[unlikely]]
      refuse_here();
  }
  [[noreturn]] void refuse_here() const;
  // Permits of a governor that a run created are released in that run; release_slowly refuses it
  // elsewhere.
  std::uint32_t permit_home() const noexcept {
    return made_.serial() == 0 ? detail::home_anywhere : made_.serial();
  }
  void add_listener(std::unique_ptr<detail::idle_listener> listener);

  std::unique_ptr<detail::shared_queue> queue_;
  detail::made_in_run made_;
};

inline bool detail::shared_wait::try_now() {
  governor_->require_here();
  if (!governor_->take_now(weight_)) return false;
  fate_ = fate::granted;
  return true;
}

inline permit detail::shared_wait::take() {
  if (fate_ != fate::granted) [[unlikely]]
    refuse();
  fate_ = fate::waiting;
  return permit(*governor_, weight_, governor_->permit_home());
}

inline bool detail::shared_wait::fits_run() const noexcept { return governor_->made_.is_here(); }

inline detail::shared_wait::~shared_wait() {
  if (request_ != nullptr || fate_ == fate::granted) [[unlikely]]
    leave();
}

}  // namespace weir
