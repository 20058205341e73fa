// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/flow/gate.hpp>
#include <weir/name.hpp>

namespace weir {

/// A flag that fibers of one loop can wait for.
///
/// `set` releases all current waiters, even if it is reset before they run. Threads: home loop only
/// (errc::wrong_loop). Cancels: a waiter leaves in O(1). Destroying it while fibers wait aborts
/// with their names.
class event {
 public:
  explicit event(weir::name name = {}) : gate_("event", false, name) {}

  void set() {
    gate_.check();
    gate_.open();
  }
  void reset() {
    gate_.check();
    gate_.shut();
  }
  bool is_set() const noexcept { return gate_.is_open(); }
  /// Waits until it is set; returns at once if it already is.
  [[nodiscard]] detail::pending<detail::gate_wait> wait() {
    gate_.check();
    return detail::pending<detail::gate_wait>({&gate_});
  }

 private:
  detail::gate gate_;
};

}  // namespace weir
