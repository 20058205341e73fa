// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <weir/counting_governor.hpp>
#include <weir/detail/alarm.hpp>
#include <weir/governor.hpp>

namespace weir::detail {

/// As acquire_wait, for a governor that looks at its limit before it grants.
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

/// What the governors have in common whose limit changes by itself: a counting governor that looks
/// at the limit before each grant.
///
/// Invariants:
/// 1. `capacity_ - free_` is what is out, whatever the limit is: a limit that falls revokes
///    nothing, one that rises is granted to those who have waited longest.
/// 2. While somebody waits and time alone can let the first one in, the alarm is set; otherwise
///    there is no timer, and a deadlock is found.
/// 3. The loop's clock is asked on the home loop only. A permit that comes back elsewhere, because
///    that loop has ended, changes no limit.
class adjusting_governor : private counting_governor {
 public:
  /// Waits for a permit, first come, first served. errc::governor_closed after close(),
  /// errc::governor_full beyond max_waiting.
  pending<adjusted_wait> acquire() { return acquire_units(1); }
  /// At once or not at all.
  std::optional<permit> try_acquire() { return try_acquire_units(1); }
  /// As acquire, for at most `d`: timeout_error.
  template <class Rep, class Period>
  auto acquire_for(std::chrono::duration<Rep, Period> d) {
    return with_timeout(d, acquire());
  }
  /// Everybody who waits, and everybody later, gets errc::governor_closed.
  void close();
  /// Calls `fn` each time nothing is active and nobody waits.
  using counting_governor::on_idle;

  /// Permits that could be granted now, if nobody waited.
  std::int64_t available() const noexcept;
  /// Permits that are out.
  using counting_governor::active;
  /// Permits that are waited for.
  using counting_governor::name;
  using counting_governor::waiting;

  template <operation Op>
  auto with(Op&& op) {
    return weir::with(*this, std::forward<Op>(op));
  }
  template <class F>
  auto wrap(F&& fn) {
    return weir::wrap(*this, std::forward<F>(fn));
  }

 protected:
  explicit adjusting_governor(const governor_options& options);
  ~adjusting_governor() override;

  pending<adjusted_wait> acquire_units(std::int64_t weight);
  std::optional<permit> try_acquire_units(std::int64_t weight);
  void give_back(std::int64_t weight) override;
  /// Looks at the limit as of now.
  void refresh() noexcept;
  void grant_waiters() noexcept override;
  std::uint32_t current_home() const noexcept override;
  /// The home check of every call that asks for a permit.
  virtual void require_home();

  /// How many may be out at once.
  void set_limit(std::int64_t limit) noexcept;
  /// How many may be granted, besides those that are out.
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
  /// So many units were granted.
  virtual void granted(std::int64_t) noexcept {}
  /// They were granted to somebody who was cancelled before it saw them, and come back.
  virtual void untaken(std::int64_t) noexcept {}
  /// When time alone may let the first waiter in; time_point::max(): never.
  virtual time_point next_change() const noexcept { return time_point::max(); }
  /// It is used on another loop whose clock shows an earlier time: what is remembered is void.
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
