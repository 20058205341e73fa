// SPDX-License-Identifier: MIT
// The scheduler: one per thread, everything inside it single-threaded.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <weir/context.hpp>
#include <weir/detail/fiber.hpp>
#include <weir/detail/frame.hpp>
#include <weir/detail/timer.hpp>
#include <weir/event.hpp>

#include "core/door.hpp"
#include "core/environment.hpp"
#include "core/event_ring.hpp"

namespace weir {
class scope;
namespace detail {

struct token_region;
class suspend_wait_base;

/// The running with_token regions of a loop: as long as one may fire, the loop may go on.
class token_list {
 public:
  void add(token_region& r) noexcept;
  void remove(token_region& r) noexcept;
  bool can_fire() const noexcept;

 private:
  token_region* first_ = nullptr;
};

/// The suspends of a loop that wait for an answer; on a real loop it may come from any thread.
class suspend_list {
 public:
  void add(suspend_wait_base& w) noexcept;
  void remove(suspend_wait_base& w) noexcept;
  bool empty() const noexcept { return first_ == nullptr; }
  /// Ends all of them with errc::abandoned, also those that refused to be cancelled.
  bool abandon_all() noexcept;

 private:
  suspend_wait_base* first_ = nullptr;
};

/// Ready queue, timers, inbox and parker of one thread.
///
/// Invariants:
/// 1. Fibers are resumed only by `run_strand`; everything else enqueues. So at most one runs.
/// 2. A strand is in the ready queue at most once (`queued`).
/// 3. One turn: ready strands (at most `turn_limit`), then the whole inbox, then due timers; if
///    nothing is ready then, the environment parks.
/// 4. Deadlines fire one pass after the waits' timers of the same instant (see deadline_node).
class loop {
 public:
  loop(environment& env, std::string name);
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;
  ~loop();

  /// The loop of this thread, or null.
  static loop* here() noexcept;
  /// Runs until `root`, a child of `root_scope`, has ended.
  void run(scope& root_scope, fiber& root);

  void push(strand& s) noexcept {
    s.queued = true;
    s.next = nullptr;
    if (tail_ == nullptr) {
      head_ = &s;
    } else {
      tail_->next = &s;
    }
    tail_ = &s;
    ++ready_;
  }
  bool nothing_ready() const noexcept { return head_ == nullptr; }

  time_point now() {
    if (!now_read_) {
      now_ = env_.now();
      now_read_ = true;
    }
    return now_;
  }
  /// Reads the clock again, in the middle of a step.
  time_point fresh_now() {
    now_read_ = false;
    return now();
  }
  environment& env() noexcept { return env_; }
  door& own_door() noexcept { return *door_; }
  const door_ref& shared_door() const noexcept { return door_; }
  std::uint32_t index() const noexcept { return index_; }
  std::uint32_t serial() const noexcept { return serial_; }
  scope_id next_scope_id() noexcept { return ++last_scope_id_; }
  scope* root_scope() noexcept { return root_scope_; }

  std::uint32_t next_order() noexcept { return ++last_order_; }
  void arm_timer(timer_node& node, std::uint64_t when) noexcept;
  void cancel_timer(timer_node& node) noexcept;
  void arm_deadline(deadline_node& node, time_point when, std::uint32_t order) noexcept;
  void cancel_deadline(deadline_node& node) noexcept;
  /// A deadline of the library's own, which live() does not count.
  void arm_watch(deadline_node& node, time_point when) noexcept;

  /// Real loops only: looks for messages for a short while before sleeping, if some came lately.
  bool spin_for_messages() noexcept;
  /// Asks a std::stop_source to stop in the next turn, outside any fiber.
  void request_stop_later(std::stop_source source) { stops_.push_back(std::move(source)); }

  /// Answers requests for a dump that have arrived; everything else is put off.
  void answer_dumps() noexcept;

  void emit(std::string_view name, std::string_view object, std::uint64_t number = 0,
            scope_id scope = 0) noexcept {
    events_.emit(now(), name, object, number, scope);
  }
  event_ring& events() noexcept { return events_; }
  token_list& token_regions() noexcept { return tokens_; }
  suspend_list& suspends() noexcept { return suspends_; }
  /// The first timer's time, or one before it.
  time_point next_timer() const noexcept;

  int budget() const noexcept { return budget_; }
  /// Turns of strands so far.
  std::uint64_t steps() const noexcept { return steps_; }
  const std::string& deadlock_tree() const noexcept { return tree_; }
  enum class ending : std::uint8_t { normal, deadlock, livelock };
  ending how_it_ended() const noexcept { return ending_; }

  /// The grace for the cleanup of the root is over; whoever is left is named.
  void root_grace_over() { root_overdue_at_ = now(); }
  bool is_root(const fiber& f) const noexcept { return root_ == &f; }
  void set_handles_signals(bool yes, duration grace) noexcept {
    handles_signals_ = yes;
    root_grace_ = grace;
  }

 private:
  strand* take_ready() noexcept;
  void run_ready();
  void run_strand(strand& s);
  bool step(strand& s);
  bool finish_base(strand& s);
  bool start_parked(strand& s);
  void take_inbox() noexcept;
  void fire_timers() noexcept;
  void request_stops() noexcept;
  void look_at_signals();
  void look_at_late_answers() noexcept;
  void park();
  void give_up(ending how, const char* message);
  bool can_wake() const noexcept;
  void root_overdue();

  environment& env_;
  chooser* choices_;
  strand* head_ = nullptr;
  strand* tail_ = nullptr;
  std::size_t ready_ = 0;
  int budget_;
  bool now_read_ = false;
  bool handles_signals_ = false;
  bool root_is_overdue_ = false;
  ending ending_ = ending::normal;
  time_point now_{};
  time_point last_pass_ = time_point::min();
  std::uint32_t last_order_ = 0;
  std::uint32_t index_ = 0;
  std::uint32_t serial_ = 0;
  scope_id last_scope_id_ = 0;
  int interrupts_seen_ = 0;
  int dumps_seen_ = 0;
  unsigned recent_messages_ = 0;
  duration root_grace_{};
  std::optional<time_point> root_overdue_at_;
  scope* root_scope_ = nullptr;
  fiber* root_ = nullptr;
  door_ref door_;
  message* put_off_ = nullptr;  // taken by answer_dumps, to be delivered before the inbox
  message** put_off_end_ = &put_off_;
  std::vector<std::stop_source> stops_;
  std::string tree_;
  token_list tokens_;
  suspend_list suspends_;
  std::uint64_t late_seen_ = 0;
  std::uint64_t steps_ = 0;
  event_ring events_;
  timer_wheel timers_{false};
  timer_wheel deadlines_{true};
};

/// The loop of this thread; null outside `run`.
extern constinit thread_local loop* current_loop;

inline loop* loop::here() noexcept { return current_loop; }
/// The running loop; throws errc::no_current_fiber outside a fiber.
loop& require_fiber(const char* what);

}  // namespace detail
}  // namespace weir
