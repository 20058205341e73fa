// SPDX-License-Identifier: MIT
// Several waits as one: what race, any, all, select and with_timeout park on.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/detail/wait.hpp>

namespace weir {
class scope;
}

namespace weir::detail {

/// Cancels the children of a combinator that is decided (kind race_lost).
void cancel_losers(scope& s) noexcept;

/// Starts its arms in order, is told when each completes, and ends when `decides` says so: then the
/// others are withdrawn in the same instant, and those that answer `later` or `no` are waited for.
///
/// Invariants:
/// 1. An arm is idle, armed, completed, or leaving (asked, has not confirmed yet).
/// 2. When the composite is complete, no arm is armed or leaving.
class arms_wait : public composite {
 public:
  cancel_result withdraw() noexcept override;
  void arm_completed(arm_link& arm) noexcept override;

 protected:
  ~arms_wait() = default;
  virtual std::size_t arm_count() const noexcept = 0;
  virtual wait& arm_at(std::size_t i) noexcept = 0;
  virtual arm_link& link_at(std::size_t i) noexcept = 0;
  /// Whether the completion of arm `i` ends the whole.
  virtual bool decides(std::size_t i) noexcept;

  /// True if it is complete already.
  bool start_arms();
  bool decided() const noexcept { return decided_; }
  /// The arm that decided.
  std::size_t winner() const noexcept { return winner_; }
  std::size_t completed() const noexcept { return completed_; }
  /// Counts the completed arms other than the winner as discarded values.
  void emit_discarded(std::size_t count) noexcept;

 private:
  void note_completed(arm_link& arm) noexcept;
  void withdraw_rest() noexcept;

  std::size_t winner_ = 0;
  std::size_t completed_ = 0;
  std::size_t leaving_ = 0;
  scope* children_ = nullptr;  // of the combinator: cancelled as soon as it is decided
  bool decided_ = false;
  bool starting_ = false;
  bool cancelled_ = false;  // asked to end: complete when no arm is leaving any more
};

}  // namespace weir::detail
