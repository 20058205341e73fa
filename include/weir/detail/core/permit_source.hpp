// SPDX-License-Identifier: MIT
// The machinery of <weir/governor/governor.hpp>.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/task.hpp>

namespace weir {

class permit;

namespace detail {

/// The home of permits that any thread releases directly, by an atomic addition.
inline constexpr std::uint32_t home_anywhere = 0xffffffff;

/// Receives released permits.
class permit_source {
 public:
  permit_source() = default;
  permit_source(const permit_source&) = delete;
  permit_source& operator=(const permit_source&) = delete;
  /// On the home loop (or anywhere, for a source without a home).
  virtual void give_back(std::int64_t weight) = 0;
  /// The loop it belongs to now; it rebinds if its home has ended. Called under `home_mutex()`.
  virtual std::uint32_t current_home() const noexcept { return 0; }
  /// For permits at home_anywhere: units were released, and a mark was set. `free` is what was free
  /// then.
  virtual void settle(std::int64_t) noexcept {}

 protected:
  ~permit_source() = default;

  friend class weir::permit;
  /// For permits at home_anywhere, on any thread.
  void add_units(std::int64_t weight) noexcept {
    const std::int64_t word =
        std::atomic_ref(free_).fetch_add(weight * unit, std::memory_order_release);
    if ((word & marks) != 0) [[unlikely]]
      settle((word & ~marks) / unit + weight);
  }
  // For permits at home_anywhere `free_` is atomic, and is units times `unit`, plus marks.
  static constexpr std::int64_t unit = 8;
  static constexpr std::int64_t marks = unit - 1;
  std::int64_t free_ = 0;     // units that may be granted; negative after shrinking
  bool only_counts_ = false;  // no waiter and no idle callback: a release just adds to `free_`
};

template <class F>
class function_source final : public permit_source {
 public:
  template <class G>
  explicit function_source(G&& fn) : fn_(std::forward<G>(fn)) {}
  void give_back(std::int64_t) override {
    F fn = std::move(fn_);
    delete this;
    fn();
  }

 private:
  F fn_;
};

/// Releases a permit that has a home when that takes more than counting: on its home loop, or by
/// one message home; or one of a source that takes permits on any thread. False: its home is a
/// durable run, and the caller is outside it.
bool release_slowly(permit_source& source, std::uint32_t home, std::int64_t weight);
[[noreturn]] void refuse_release();
void report_failed_release() noexcept;

}  // namespace detail
}  // namespace weir
