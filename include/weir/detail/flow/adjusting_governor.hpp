// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <weir/detail/core/alarm.hpp>
#include <weir/detail/core/governor_facade.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>

namespace weir::detail {

/// As acquire_wait, for a governor that updates its limit before it grants.
class adjusted_wait : public acquire_wait {
 public:
  explicit adjusted_wait(args&& a) noexcept : acquire_wait(std::move(a)) {}
  bool poll() override { return try_now(); }
  void link() override { arm(); }
  bool try_now();
  void arm() noexcept;
  void describe(dump_line& line) const override;
  permit take();
  ~adjusted_wait();

 private:
  adjusting_governor& of() const noexcept;
};

/// The base of governors with a changing limit: a counting governor that updates the limit before
/// each grant.
///
/// Invariants:
/// 1. `capacity_ - free_` is the number of held units at any limit: a falling limit revokes
///    nothing, a rising limit grants units to the longest waiters.
/// 2. The alarm is set while time alone can admit the first waiter; otherwise there is no timer, so
///    that a deadlock is detected.
/// 3. The loop's clock is read on the home loop only. A permit released elsewhere, because that
///    loop has ended, changes no limit.
class adjusting_governor : private counting_governor, public governor_facade<adjusting_governor> {
 public:
  /// Waits for a permit, first come, first served. errc::governor_closed after close(),
  /// errc::governor_full beyond max_waiting.
  pending<adjusted_wait> acquire() { return acquire_units(1); }
  /// Never waits; empty if no permit can be granted at once.
  std::optional<permit> try_acquire() { return try_acquire_units(1); }
  /// acquire_for(d): as acquire, for at most `d`: timeout_error.
  using governor_facade<adjusting_governor>::acquire_for;
  /// All present and later acquires fail with errc::governor_closed.
  void close();
  /// on_idle(fn): calls `fn` each time it becomes idle: no permit is held and no acquire waits.
  using counting_governor::on_idle;

  /// Permits that are free, not counting claims of waiters.
  std::int64_t available() const noexcept;
  /// Permits that are held.
  using counting_governor::active;
  /// Permits that waiters have requested.
  using counting_governor::name;
  using counting_governor::waiting;

  /// with(op) and wrap(fn): as weir::with and weir::wrap with this governor.
  using governor_facade<adjusting_governor>::with;
  using governor_facade<adjusting_governor>::wrap;

 protected:
  explicit adjusting_governor(const governor_options& options);
  ~adjusting_governor() override;

  pending<adjusted_wait> acquire_units(std::int64_t weight);
  std::optional<permit> try_acquire_units(std::int64_t weight);
  void give_back(std::int64_t weight) override;
  /// Updates the limit as of now.
  void refresh() noexcept;
  void grant_waiters() noexcept override;
  std::uint32_t current_home() const noexcept override;
  /// The home check of every call that asks for a permit.
  virtual void require_home();

  /// Sets how many units may be held at once.
  void set_limit(std::int64_t limit) noexcept;
  /// Sets how many units may be granted beyond those held.
  void set_free(std::int64_t units) noexcept;
  std::int64_t limit_now() const noexcept { return counting_governor::capacity(); }
  std::int64_t first_weight() const noexcept { return first_waiter().weight_; }
  bool anybody_waits() const noexcept { return !waiters_.empty(); }
  /// Whether this is the home loop.
  bool at_home() const noexcept;
  /// The loop's time, or the last time that was seen if this is not the home loop.
  time_point time() const noexcept;
  permit plain_permit(std::int64_t weight) noexcept;

 private:
  friend class adjusted_wait;

  /// Sets the limit as of `now`, by set_limit or set_free.
  virtual void adjust(time_point now) noexcept = 0;
  /// Called when units were granted.
  virtual void granted(std::int64_t) noexcept {}
  /// Called when granted units return because their waiter was cancelled before it took them.
  virtual void untaken(std::int64_t) noexcept {}
  /// When time alone may admit the first waiter; time_point::max(): never.
  virtual time_point next_change() const noexcept { return time_point::max(); }
  /// The governor is used on another loop whose clock is behind: remembered times are invalid.
  virtual void clock_changed(time_point) noexcept {}
  virtual permit make_permit(std::int64_t weight) { return plain_permit(weight); }
  virtual void describe(dump_line& line) const;

  class first_waiters_alarm final : public alarm {
   public:
    explicit first_waiters_alarm(adjusting_governor& of) noexcept : of_(of) {}

   private:
    void rang() noexcept override { of_.grant_waiters(); }
    adjusting_governor& of_;
  };
  void watch() noexcept;

  first_waiters_alarm alarm_{*this};
  time_point latest_ = time_point::min();
};

/// errc::invalid_argument with the kind and the name of a governor, unless `good`.
void require_governor_option(bool good, const char* kind, std::string_view name,
                             const char* problem);

}  // namespace weir::detail
