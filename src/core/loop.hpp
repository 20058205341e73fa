// SPDX-License-Identifier: MIT
// The scheduler: one per thread, everything inside it single-threaded.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/context.hpp>
#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/run_seam.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/loop_events.hpp>

#include "core/door.hpp"
#include "core/environment.hpp"
#include "core/event_recorder.hpp"
#include "core/parker.hpp"
#include "core/spinner.hpp"

namespace weir {
class scope;
namespace detail {

struct token_region;
class suspend_wait_base;

/// The running with_token regions of a loop: while one can fire, the loop can be woken.
class token_list {
 public:
  void add(token_region& r) noexcept;
  void remove(token_region& r) noexcept;
  bool can_fire() const noexcept;

 private:
  token_region* first_ = nullptr;
};

/// The suspends of a loop that wait for an answer; on a real loop any thread may answer.
class suspend_list {
 public:
  void add(suspend_wait_base& w) noexcept;
  void remove(suspend_wait_base& w) noexcept;
  bool empty() const noexcept { return first_ == nullptr; }
  /// Ends all of them with errc::abandoned, even those that refused cancellation.
  bool abandon_all() noexcept;

 private:
  suspend_wait_base* first_ = nullptr;
};

/// Ready queue, timers, inbox and parker of one thread.
///
/// Invariants:
/// 1. Fibers are resumed only by `run_strand`; everything else enqueues. So at most one runs.
/// 2. A strand is in the ready queue at most once (`queued`).
/// 3. One turn: ready strands (at most `turn_limit`), then the whole inbox, then I/O if it was not
///    looked at for so many strands, then due timers; if nothing is ready then, the environment
///    parks. A simulated loop makes no turns: the simulation
///    calls the same functions step by step, in its own order.
/// 4. Deadlines fire one pass after the waits' timers of the same instant (see deadline_node).
/// 5. A dead loop (see evict) runs nothing, and nothing it does reaches other loops.
/// 6. A durable run has an inner loop: its own ready queue, clock and home on the thread of its
///    host, which makes its turns and shares door and events with it. It has no inbox and no
///    timers; its waits go through its seam.
///
/// Depth first: the arms of an `all` and the calls of a `parallel_map` do not go through the ready
/// queue, but through a list that the turn of their parent empties before the next ready strand
/// runs. A strand that runs puts its arms in front of this list, in order (`deep_at_`). When the
/// last arm of an `all` ends on this list, its parent is put there, too. So:
/// 7. The list is empty between turns, and holds fibers only.
/// 8. A tree of fibers that do not wait is explored depth first. Everything in the list belongs to
///    parents that are on one path of the tree: a strand is taken from the front, what it adds is
///    its own children or its own parent, and that in front of all others. So O(depth * arms)
///    fibers are alive, at any depth, and no machine stack is used.
/// 9. Fairness: all strands that one turn takes from the list share one budget, and each costs one
///    await of it. When it is used up, the whole list waits as one at the end of the ready queue
///    (`put_off_list`). If its strands were queued one by one instead, each would explore a part of
///    the tree by itself, and 8 would not hold. A strand that has used up a whole budget by itself
///    (`rank` counts it) leaves the list for the ready queue, as on any other turn: otherwise one
///    that polls in a loop would keep its siblings from beginning. So 8 counts such strands as
///    roots of trees of their own.
/// A simulation and a durable run use the ready queue only: there each start is a choice.
class loop {
 public:
  loop(environment& env, std::string name);
  /// An inner loop. REQUIRES: the host outlives it.
  loop(environment& env, loop& host, run_seam& seam);
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;
  ~loop();

  /// The loop of this thread, or null.
  static loop* here() noexcept;
  /// Sets its only tree: `root` is a child of `root_scope`.
  void set_root(scope& root_scope, fiber& root) noexcept {
    root_scope_ = &root_scope;
    root_ = &root;
  }
  /// Makes turns until the root, and everything that other loops started here, has ended.
  void run();
  /// Makes one turn and returns instead of parking: for a loop that has no thread of its own.
  void turn();
  /// Whether the next turn has something to do at once.
  bool needs_turn() const noexcept { return head_ != nullptr || !stops_.empty(); }
  /// Whether the root and everything that other loops started here has ended. When the root has
  /// just ended, cancels the rest.
  bool finished();
  /// Nothing is ready: sleeps until a message, a wake-up or readiness of I/O comes, or the time has
  /// passed (negative: without limit). For environments.
  void sleep(std::int64_t nanoseconds) noexcept;
  /// Delivers what I/O is ready now; false if there is none.
  bool look_at_io() noexcept;
  /// Where it sleeps once it does I/O; null before.
  detail::parker* parker() const noexcept { return outer_->parker.get(); }
  void set_parker(std::unique_ptr<detail::parker> made) noexcept {
    outer_->parker = std::move(made);
  }
  /// Makes it a service loop: being idle is not a deadlock.
  void serve() noexcept { serves_ = true; }
  /// Whether operations of other loops may run here.
  bool serves_others() const noexcept {
    return serves_ || door_->remote_children.load(std::memory_order_relaxed) > 0;
  }
  /// Counts answers due from other loops and threads; while there are any, this one can be woken.
  void expect_answer(int more) noexcept { answers_due_ += more; }

  void push(strand& s) noexcept {
    s.queued = true;
    s.next = nullptr;
    *end_ = &s;
    end_ = &s.next;
  }
  bool nothing_ready() const noexcept { return head_ == nullptr; }
  /// O(n), for manually advanced clocks. The depth-first list counts as one.
  std::uint64_t count_ready() const noexcept {
    std::uint64_t n = deep_ == nullptr ? 0 : 1;
    for (const strand* s = head_; s != nullptr; s = s->next) ++n;
    return n;
  }

  /// Whether the arms that the running strand starts go to the depth-first list.
  bool starts_deep() const noexcept { return depth_first_ && !current->special; }
  /// Puts `s` behind what the running strand has put on the depth-first list before.
  void push_deep(strand& s) noexcept {
    s.queued = true;
    s.next = *deep_at_;
    *deep_at_ = &s;
    deep_at_ = &s.next;
  }
  /// Whether the running strand has put something there.
  bool has_deep() const noexcept { return deep_at_ != &deep_; }
  /// The running strand was the last that `parent` waited for.
  void push_parent(strand& parent) noexcept {
    if (!deep_run_ || parent.special) return push(parent);
    if (parent.rank < full_budget_) return push_deep(parent);
    parent.rank = 0;
    push(parent);
  }
  /// The running strand gives up its turn, usually because its budget is used up.
  void push_again(strand& s) noexcept {
    if (s.special || !(deep_run_ || deep_ != nullptr)) return push(s);
    const int used = budget_ - std::max<int>(s.budget, 0);
    if (!deep_run_ || s.rank + used < full_budget_) return push_deep(s);
    s.rank = 0;
    push(s);
  }

  // The steps of a turn, for run() and for a simulation.

  /// Takes the strand that has been ready longest; null if there is none.
  strand* take_ready() noexcept {
    strand* first = head_;
    if (first == nullptr) return nullptr;
    head_ = first->next;
    if (head_ == nullptr) end_ = &head_;
    return first;
  }
  void run_strand(strand& s);
  /// Frees `s`: at once or, if it is queued, on its turn. `s` may have outlived the loop that
  /// queued it.
  static void free(special_strand& s) noexcept;
  /// Inner loops: runs ready strands, at most `limit`. True if none is left.
  bool drain(int limit);
  /// Calls request_stop() for cancelled contexts, before those are unwound.
  void request_stops() noexcept;
  /// Delivers the oldest message; false if there is none.
  bool deliver_one() noexcept;
  bool has_messages() const noexcept {
    return outer_->put_off != nullptr || door_->messages.has_messages();
  }
  /// Checks for signals, late answers and an overdue root; `idle`: nothing is ready anywhere.
  void look_around(bool idle);
  /// Fires due timers; `order` chooses among waits due at the same time. False if none was due.
  bool fire_timers(chooser* order = nullptr) noexcept;
  /// The clock has changed: now() reads it again.
  void clock_moved() noexcept { now_read_ = false; }
  /// When to wake up if nothing else happens; time_point::max(): never.
  time_point next_look() const noexcept {
    const time_point timer = next_timer();
    return outer_->root_overdue_at ? std::min(timer, *outer_->root_overdue_at) : timer;
  }
  /// Cancels everything; `force`: at once, without grace.
  void cancel_everything(const char* message, bool force);
  /// Destroys all fibers immediately, as if the process had died: no defers, no catch edges, no
  /// messages. Iterative, children before parents. REQUIRES: nothing of this loop runs.
  void evict(const reason_ref& why);
  bool dead() const noexcept { return dead_; }
  /// The run of an inner loop; null for other loops.
  run_seam* seam() const noexcept { return seam_; }
  loop* host() const noexcept { return host_; }
  /// The inner loops of this one, in order of creation.
  loop* first_inner() const noexcept { return outer_ ? outer_->first_inner : nullptr; }
  loop* next_inner() const noexcept { return next_inner_; }

  time_point now() {
    if (!now_read_) {
      now_ = env_.now();
      now_read_ = true;
    }
    return now_;
  }
  /// Reads the clock again in the middle of a step.
  time_point fresh_now() {
    now_read_ = false;
    return now();
  }
  environment& env() noexcept { return env_; }
  door& own_door() noexcept { return *door_; }
  const door_ref& shared_door() const noexcept { return door_; }
  /// The door of another loop, null if that has ended; remembers the last ones.
  door_ref find_door(std::uint32_t index, std::uint32_t serial);
  /// Keeps the door of another loop until the next call: for a message that, once it is posted, may
  /// free what refers to the door. Answers mostly go to the same loop, and count no reference then.
  door& keep(const door_ref& there) noexcept {
    if (kept_door_ != there) kept_door_ = there;
    return *kept_door_;
  }
  std::uint32_t index() const noexcept { return index_; }
  std::uint32_t serial() const noexcept { return serial_; }
  scope_id next_scope_id() noexcept { return ++last_scope_id_; }
  scope* root_scope() noexcept { return root_scope_; }

  std::uint32_t next_order() noexcept { return ++last_order_; }
  void arm_timer(timer_node& node, std::uint64_t when) noexcept;
  void cancel_timer(timer_node& node) noexcept;
  void arm_deadline(deadline_node& node, time_point when, std::uint32_t order) noexcept;
  void cancel_deadline(deadline_node& node) noexcept;
  /// A deadline for internal use, not counted by live().
  void arm_watch(deadline_node& node, time_point when) noexcept;

  /// Real loops only: polls for a short time before sleeping, if messages came since it last did so
  /// in vain, and while that pays.
  bool spin_for_messages() noexcept;
  /// Calls request_stop() in the next turn, outside any fiber.
  void request_stop_later(std::stop_source source) { stops_.push_back(std::move(source)); }

  /// Answers pending dump requests; postpones all other messages.
  void answer_dumps() noexcept;

  void emit(std::string_view name, std::string_view object, std::uint64_t number = 0,
            scope_id scope = 0, const std::exception_ptr& error = nullptr) noexcept {
    events_->emit(host_ == nullptr ? now() : host_->now(), name, object, number, scope, error,
                  true);
  }
  /// The error belongs to another loop: observers see it, the recorder does not keep it, so that
  /// the destination loop holds the last reference.
  void emit_passing(std::string_view name, std::string_view object, std::uint64_t number,
                    const std::exception_ptr& error) noexcept {
    events_->emit(now(), name, object, number, 0, error, false);
  }
  event_recorder& events() noexcept { return *events_; }
  token_list& token_regions() noexcept { return tokens_; }
  suspend_list& suspends() noexcept { return suspends_; }
  /// The time of the first timer, or an earlier time.
  time_point next_timer() const noexcept;

  /// Number of times that a strand has run so far.
  std::uint64_t steps() const noexcept { return steps_; }
  /// The same for strands of the ready queue.
  std::uint64_t turns() const noexcept { return steps_ - deep_steps_; }
  /// The report of a deadlock; empty if there was none.
  const std::string& deadlock() const noexcept { return outer_->deadlock; }

  /// The grace for the root's cleanup is over: forces the rest to end, then prints what is left.
  void root_grace_over() {
    if (outer_ != nullptr) outer_->root_overdue_at = now();
  }
  bool is_root(const fiber& f) const noexcept { return root_ == &f; }
  void set_handles_signals(bool yes, duration grace) noexcept {
    handles_signals_ = yes;
    outer_->root_grace = grace;
  }

 private:
  /// What an inner loop does not have: there is one for each durable run in memory.
  struct outer_part {
    timer_wheel timers{false};
    timer_wheel deadlines{true};
    time_point last_pass = time_point::min();
    std::unique_ptr<detail::parker> parker;
    std::uint64_t steps_at_io = 0;  // when I/O was last looked at
    std::uint64_t late_seen = 0;
    spinner spins;
    int interrupts_seen = 0;
    duration root_grace{};
    std::optional<time_point> root_overdue_at;
    std::string deadlock;
    message* put_off = nullptr;  // taken by answer_dumps, to be delivered before the inbox
    message** put_off_end = &put_off;
    event_recorder events;
    loop* first_inner = nullptr;
    loop* last_inner = nullptr;
  };

  struct put_off_list;

  void close() noexcept;
  void run_ready();
  void look_outside();
  void run_deep();
  void run_one(strand& s);
  void begin_turn(strand& s) noexcept;
  void run_special(special_strand& s);
  void let_stray(special_strand& s) noexcept;
  static void free_stray(special_strand& s) noexcept;
  bool step(strand& s);
  enum class next_step : std::uint8_t { resume, again, stop };
  next_step prepare_step(strand& s);
  static bool begin(fiber& f);
  bool finish_base(strand& s);
  bool start_parked(strand& s);
  void collect_messages() noexcept;
  void take_inbox() noexcept;
  void look_at_signals(bool idle);
  void look_at_late_answers() noexcept;
  void park();
  void give_up();
  bool can_wake() const noexcept;
  void cancel_root(cancel_reason why, bool force);
  void root_overdue(bool idle);

  environment& env_;
  strand* head_ = nullptr;
  strand** end_ = &head_;      // where the next one is added
  strand* deep_ = nullptr;     // the depth-first list
  strand** deep_at_ = &deep_;  // where the running strand adds to it
  std::int16_t budget_;        // of the next strand
  std::int16_t full_budget_;
  bool depth_first_ = false;
  bool deep_run_ = false;  // the running strand was taken from the list
  int turn_limit_;
  int answers_due_ = 0;
  bool now_read_ = false;
  bool handles_signals_ = false;
  bool root_is_overdue_ = false;
  bool dead_ = false;
  bool serves_ = false;
  bool ending_ = false;
  bool closed_ = false;
  bool had_messages_ = false;
  time_point now_{};
  std::uint32_t last_order_ = 0;
  std::uint32_t index_ = 0;
  std::uint32_t serial_ = 0;
  scope_id last_scope_id_ = 0;
  scope* root_scope_ = nullptr;
  fiber* root_ = nullptr;
  door_ref door_;
  static constexpr std::size_t doors_kept = 8;
  std::unique_ptr<std::array<door_ref, doors_kept>> known_doors_;  // by index; none at first
  door_ref kept_door_;
  std::vector<std::stop_source> stops_;
  token_list tokens_;
  suspend_list suspends_;
  special_strand* strays_ = nullptr;
  std::uint64_t steps_ = 0;
  std::uint64_t deep_steps_ = 0;
  std::unique_ptr<outer_part> outer_;  // null: it is an inner loop
  event_recorder* events_;
  run_seam* seam_ = nullptr;
  loop* host_ = nullptr;
  loop* previous_inner_ = nullptr;
  loop* next_inner_ = nullptr;
};

inline loop* loop::here() noexcept { return current_loop; }

/// Throws errc::would_deadlock: a generator pulled outside of any loop would have to wait.
[[noreturn]] void raise_nothing_wakes();

/// RAII: makes `l` the loop of this thread.
class active_loop {
 public:
  explicit active_loop(loop& l) noexcept
      : before_(std::exchange(current_loop, &l)),
        serial_(std::exchange(loop_serial, l.serial())),
        run_(std::exchange(current_run, l.seam())),
        run_serial_(std::exchange(run_serial, l.seam() == nullptr ? 0 : l.serial())) {}
  active_loop(const active_loop&) = delete;
  active_loop& operator=(const active_loop&) = delete;
  ~active_loop() {
    current_loop = before_;
    loop_serial = serial_;
    current_run = run_;
    run_serial = run_serial_;
  }

 private:
  loop* before_;
  std::uint32_t serial_;
  run_seam* run_;
  std::uint32_t run_serial_;
};

/// RAII: makes `l` the current loop while no strand runs: to enter a loop from outside of its own
/// turn, and to return to the one around it.
class in_loop {
 public:
  explicit in_loop(loop& l) noexcept : active_(l), before_(std::exchange(current, nullptr)) {}
  in_loop(const in_loop&) = delete;
  in_loop& operator=(const in_loop&) = delete;
  ~in_loop() { current = before_; }

 private:
  active_loop active_;
  strand* before_;
};

/// True in destructors of frames that a crash destroys: they must have no effect outside.
inline bool in_dead_world() noexcept { return current_loop != nullptr && current_loop->dead(); }
/// A reason that comes from the scope or region numbered `source`.
reason_ref make_reason(cancel_reason why, scope_id source, time_point when);
/// The running loop; throws errc::no_current_fiber outside a fiber.
loop& require_fiber(const char* what);

}  // namespace detail
}  // namespace weir
