// SPDX-License-Identifier: MIT
// Several waits as one: the waits of race, any, all, select and with_timeout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>
#include <utility>

#include <weir/cancel_reason.hpp>
#include <weir/detail/core/wait.hpp>

namespace weir {
class scope;
}

namespace weir::detail {

/// Cancels the children of a combinator that is decided.
void cancel_losers(scope& s, cancel_kind kind) noexcept;

/// Counts a value that arrived and is discarded.
void emit_discarded(std::string_view object) noexcept;

/// Starts its arms in order, is notified when each completes, and ends when `decides` returns true:
/// then the others are withdrawn at once, and those that answer `later` or `no` are waited for.
///
/// Invariants:
/// 1. An arm is idle, armed, completed, leaving (answered `no`: it will still complete) or
///    confirming (answered `later`: its next completion is not a result).
/// 2. When the composite is complete, no arm is armed, leaving or confirming.
/// 3. It answers `done` only if every arm can be restarted or has its result.
/// 4. `complete` is called once per start (`ended_`), by the outermost call only (`busy_`).
/// 5. If all arms must complete, each is polled again right before it is armed: earlier arms may be
///    what it waits for. Alternatives are never matched with each other.
class arms_wait : public composite {
 public:
  bool poll() override { return try_arms(); }
  void link() override { arm_rest(); }
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override;
  cancel_result pause() noexcept override;
  bool in_line() const noexcept override;
  void grace_over() noexcept override;
  void arm_completed(arm_link& arm) noexcept override;
  void blockers(blocker_list& list) const override;
  /// Polling an arm threw: that ends the composite, whatever its rule.
  void poll_failed(std::exception_ptr e) noexcept {
    problem_ = std::move(e);
    decided_ = true;
  }

 protected:
  ~arms_wait() = default;
  virtual std::size_t arm_count() const noexcept = 0;
  virtual wait& arm_at(std::size_t i) noexcept = 0;
  virtual arm_link& link_at(std::size_t i) noexcept = 0;
  /// Whether the completion of arm `i` decides the composite.
  virtual bool decides(std::size_t i) noexcept;
  /// Whether one arm that refuses to be cancelled provides a result for the composite.
  virtual bool delivers_after_cancel() const noexcept;
  /// The reason for cancelling the losing children.
  virtual cancel_kind loser_kind() const noexcept;

  /// Polls the arms without arming any. True: decided.
  bool try_arms();
  void arm_rest() noexcept;
  /// The arm that decided.
  std::size_t winner() const noexcept { return winner_; }
  std::size_t completed() const noexcept { return completed_; }
  bool asks_again_ = false;  // all arms must complete: see invariant 5
  /// See poll_failed.
  bool broken() const noexcept { return problem_ != nullptr; }
  void rethrow_problem() const {
    if (broken()) [[unlikely]]
      std::rethrow_exception(problem_);
  }

 private:
  void note_completed(arm_link& arm) noexcept;
  bool ask_again(std::size_t i) noexcept;
  enum class by : std::uint8_t { cancelling, pausing };
  bool withdraw_armed(by how) noexcept;
  void arm_again() noexcept;
  void finish_if_decided() noexcept;

  std::size_t winner_ = 0;
  std::size_t completed_ = 0;
  std::size_t leaving_ = 0;    // arms that are leaving or confirming
  arm_link* asked_ = nullptr;  // the arm whose withdraw() is running
  scope* children_ = nullptr;  // of the combinator: cancelled when it is decided
  std::exception_ptr problem_;
  bool decided_ = false;
  bool spent_ = false;      // an arm answered `later`: it cannot be restarted
  bool cancelled_ = false;  // cancelled: completes when no arm is leaving
  bool ended_ = false;
  bool busy_ = false;
};

}  // namespace weir::detail
