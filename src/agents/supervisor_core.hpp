// SPDX-License-Identifier: MIT
// A supervisor without the types of its children.
//
// Invariants:
// 1. Decisions are made in `advance()`, in the body of run(). Ends and births of lives, alarms,
//    cancellations and most calls of users only leave a note and wake the body. Exceptions:
//    `added()` starts a new child at once if nothing comes before it; terminate_child() and
//    delete_child() stop or remove a slot at once.
// 2. A slot has at most one life. The next one begins after the fiber of the last one has ended
//    with all its cleanup; `lives_` has exactly the fibers that have not.
// 3. An end is *expected* iff the slot was asked to stop before the end is processed (`slot::why`).
//    Only unexpected ends are judged: restart kind, intensity, significance. An end finds its slot
//    by its fiber, so that of an earlier life finds none.
// 4. There is at most one plan: the first start, the start of children added later, a group
//    restart, or the end. Its cursor is a slot of the list or null. Outside a plan, slots are
//    started and stopped individually.
// 5. The counts change only in `shift`, and when a slot is linked or removed.
// 6. After each life the agent is notified what follows: another life, none for now, or none ever.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <weir/detail/core/alarm.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/future.hpp>
#include <weir/policy/backoff.hpp>
#include <weir/supervisor.hpp>

#include "core/takedown.hpp"

namespace weir::detail {

class request_list;
class supervisor_core;
struct supervisor_region;

using supervisor_handle = std::shared_ptr<supervisor_core>;

// ------------------------------------------------------------------ requests

class request_wait;

/// A caller's wait for a supervisor's action. Lives in the frame of the caller.
class request {
 public:
  enum class aim : std::uint8_t { started, stopped, ended };
  request(request_list& list, aim what, std::string_view whose) noexcept;
  request(const request&) = delete;
  request& operator=(const request&) = delete;
  ~request();

 private:
  friend class request_list;
  friend class request_wait;
  void settle(const std::exception_ptr& error) noexcept;

  request_list* list_;  // null: it is settled
  aim what_;
  std::string_view whose_;
  request_wait* waiting_ = nullptr;
  std::exception_ptr error_;
  request* previous_ = nullptr;
  request* next_ = nullptr;
};

class request_list {
 public:
  request_list() noexcept = default;
  request_list(const request_list&) = delete;
  request_list& operator=(const request_list&) = delete;
  bool empty() const noexcept { return first_ == nullptr; }
  /// Settles all requests for `what`.
  void settle(request::aim what, const std::exception_ptr& error = nullptr) noexcept;

 private:
  friend class request;
  request* first_ = nullptr;
};

class request_wait : public simple_wait<request_wait> {
 public:
  static constexpr bool home_bound = true;
  using args = request*;
  using result = void;
  explicit request_wait(request*&& of) noexcept : of_(of) {}
  bool try_now() const noexcept { return of_->list_ == nullptr; }
  void arm() noexcept { of_->waiting_ = this; }
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return of_->error_ != nullptr; }
  void take() const;

 private:
  friend class request;
  request* of_;
};

/// Wakes the body of run().
class wake_wait : public simple_wait<wake_wait> {
 public:
  static constexpr bool home_bound = true;
  using args = supervisor_core*;
  using result = void;
  explicit wake_wait(supervisor_core*&& of) noexcept : of_(of) {}
  bool try_now() noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  void take() const noexcept {}

 private:
  friend class supervisor_core;
  supervisor_core* of_;
};

// ------------------------------------------------------------------ children

/// How a life ended.
struct life_end {
  enum class kind : std::uint8_t { value, error, cancelled } how = kind::value;
  std::exception_ptr error;
};

/// A child: its specification and its current life.
class slot final : public birth_listener, public alarm {
 public:
  enum class kind : std::uint8_t { agent, task, supervisor };
  enum class phase : std::uint8_t { none, starting, running, stopping, zombie };
  /// What follows once it has no life. While it is starting: why it is being started.
  enum class intent : std::uint8_t { none, start, restart };
  enum class cause : std::uint8_t { none, group, terminated, shutdown };

  slot(supervisor_core& owner, const child_options& options, kind what);
  std::string_view name() const noexcept { return name_.view(); }
  bool temporary() const noexcept { return restart == weir::restart::temporary; }
  void born() noexcept override;

  supervisor_core& of;
  const kind what;
  const weir::restart restart;
  const bool significant;
  bool is_static = false;  // kept across restarts of its supervisor
  phase now = phase::none;
  intent then = intent::none;
  cause why = cause::none;        // why it was asked to stop
  bool due : 1 = false;           // carry out `then` as soon as it has no life, outside a plan
  bool manual : 1 = false;        // started by restart_child
  bool cut_off : 1 = false;       // it was cancelled
  bool escalated : 1 = false;     // its supervisor gave up while it was alive or due to start
  bool end_notified : 1 = false;  // invariant 6: its agent has been notified that no life follows
  // Pending notes.
  bool was_born = false;
  bool is_gone = false;
  bool has_rung = false;
  weir::ending ending = weir::ending::cancelled;
  const duration limit;
  const delay_rules delays;
  const duration reset_after;
  delay_sequence delay;
  const std::source_location site;
  time_point begun{};
  std::uint64_t order = 0;
  std::uint64_t lives = 0;
  std::uint64_t restarts = 0;
  core_ref life;              // the fiber
  std::exception_ptr unmade;  // why no fiber could be made
  request_list requests;

  agent_handle agent;
  std::unique_ptr<repeatable> work;
  supervisor_handle nested;

  slot* previous = nullptr;  // in the order in which they were added
  slot* next = nullptr;

 private:
  friend class slot_queue;
  void rang() noexcept override;

  kept_name name_;
  class slot_queue* queue_ = nullptr;
  slot* queued_before_ = nullptr;
  slot* queued_after_ = nullptr;
};

/// Slots with pending notes, first come, first served.
class slot_queue {
 public:
  slot_queue() noexcept = default;
  slot_queue(const slot_queue&) = delete;
  slot_queue& operator=(const slot_queue&) = delete;
  bool empty() const noexcept { return first_ == nullptr; }
  /// No effect if the slot is in a queue already.
  void push(slot& s) noexcept;
  slot* pop() noexcept;
  static void remove(slot& s) noexcept;

 private:
  slot* first_ = nullptr;
  slot* last_ = nullptr;
};

/// The restarts within the last `within`.
class restart_window {
 public:
  bool has_room(time_point now, std::int64_t most, duration within) noexcept;
  /// Records a failure. Returns false if it exceeds the restart limit.
  bool charge(time_point now, const std::exception_ptr& error, std::int64_t most, duration within);
  /// The errors in the window, oldest first; at most the last 1000.
  std::vector<std::exception_ptr> errors() const;
  std::size_t size() const noexcept { return stamps_.size(); }
  void clear() noexcept;

 private:
  struct failed_life {
    time_point when;
    std::exception_ptr error;
  };
  void forget_first() noexcept;

  static constexpr std::size_t most_errors = 1000;
  std::deque<time_point> stamps_;
  std::deque<failed_life> failed_;
};

// ------------------------------------------------------------------ the supervisor

class supervisor_core {
 public:
  explicit supervisor_core(const supervisor_options& options);
  supervisor_core(const supervisor_core&) = delete;
  supervisor_core& operator=(const supervisor_core&) = delete;
  ~supervisor_core();

  // ---- Operations for users.

  void check_home(bool needs_loop);
  std::string_view name() const noexcept { return name_.view(); }
  void check_child(const child_options& options, slot::kind what) const;
  agent_setup setup_of(const child_options& options) const;
  slot& add(const child_options& options, slot::kind what);
  /// Called when the slot is complete.
  void added(slot& s);
  void check_nesting(const supervisor_core& inner) const;
  void nest(supervisor_core& around) noexcept { parent_ = &around; }
  void listen(std::unique_ptr<crash_listener> listener) {
    listeners_.push_back(std::move(listener));
  }
  std::vector<child_info> which_children() const;
  child_counts count_children() const noexcept;
  static task<> run(const supervisor_handle& self, birth_listener* listener);
  static task<> restart_child(supervisor_handle self, std::string child);
  static task<> terminate_child(supervisor_handle self, std::string child);
  static task<> delete_child(supervisor_handle self, std::string child);
  static task<> stop(supervisor_handle self);

  // ---- Notes. They run no user code.

  void note(slot& s) noexcept;
  void wake() noexcept;
  void child_gone(fiber& f) noexcept;
  void asked_to_end() noexcept;

  // ---- One run().

  void enter(supervisor_region& r, birth_listener* listener);
  task<> supervise();
  /// No child is left and the body has ended, in whatever way.
  void life_over() noexcept;
  /// The loop has crashed.
  void abandon() noexcept;
  bool was_cancelled() const noexcept { return cancelled_; }

 private:
  friend class slot;
  friend class wake_wait;

  enum class mode : std::uint8_t {
    passive,   // it has never run
    starting,  // the first start
    running,
    stopping,
    resting,  // nested: between two lives, or stopped
    over,
  };
  enum class stage : std::uint8_t { none, stopping, pausing, starting, closing };
  enum class finish : std::uint8_t { none, stopped, cancelled, no_start, gave_up };
  enum class news : std::uint8_t { restarts, rests, ended, escalated };
  struct pause_alarm final : alarm {
    explicit pause_alarm(supervisor_core& owner) noexcept : of(owner) {}
    supervisor_core& of;

   private:
    void rang() noexcept override { of.wake(); }
  };

  std::string text() const;
  std::string text_of_child(std::string_view child) const;
  [[noreturn]] void raise_not_running() const;
  slot& named(std::string_view child);
  bool is_group() const noexcept {
    return strategy_ == strategy::one_for_all || strategy_ == strategy::rest_for_one;
  }
  /// Whether the slot is removed once the child was terminated or has finished.
  bool forgets(const slot& s) const noexcept {
    return s.temporary() || strategy_ == strategy::dynamic;
  }
  void require_running() const;
  void refuse_busy(const slot& s, const char* what) const;

  // The list.
  void link(slot& s) noexcept;
  /// Deletes the slot and notifies its agent how it ended.
  void remove(slot& s) noexcept;
  /// Deletes all slots; `nested` receives the handles of the nested supervisors.
  void remove_all(std::vector<supervisor_handle>& nested);
  void forget_plans(slot& s, errc why) noexcept;
  /// Fails the requests that wait for its start.
  void refuse_start(slot& s, errc why) noexcept;
  static bool is_active(const slot& s) noexcept;
  static bool keeps_running(const slot& s) noexcept;
  void shift(slot& s, slot::phase now, slot::intent then) noexcept;
  static child_state state_of(const slot& s) noexcept;

  // Decisions.
  bool advance();
  void look_at(slot& s);
  bool waits_for_starts(const slot& s) const noexcept;
  void judge_held() noexcept;
  void drive();
  bool stop_range(slot::cause why) noexcept;
  bool start_range();
  void all_started() noexcept;
  void begin_group(slot& trigger, duration delay);
  void plan_starts(std::uint64_t from, std::uint64_t until) noexcept;
  void begin_end(finish why, std::exception_ptr failure);
  void start_life(slot& s);
  void start_if_due(slot& s);
  fiber* make_life(slot& s);
  void begin_stop(slot& s, slot::cause why) noexcept;
  void ask_to_stop(slot& s) noexcept;
  void cancel_life(slot& s) noexcept;
  cancel_kind kind_of_stop(slot::cause why) const noexcept;
  void quiet(slot& s) noexcept;
  void started(slot& s) noexcept;
  void gone(slot& s);
  void rung(slot& s);
  void judge(slot& s, const life_end& end, bool had_started);
  static bool is_clean(const slot& s, const life_end& end) noexcept;
  bool will_restart(const slot& s, const life_end& end, slot::cause why, slot::intent then);
  void notify_crash(const slot& s, const life_end& end, bool restarts) noexcept;
  void leave(slot& s);
  void give_up();
  const takedown_ref& record();
  void blame_all(const takedown_ref& why) noexcept;
  std::exception_ptr error_of(const slot& s, const life_end& end) const;
  static life_end end_of(slot& s);

  // Notifications of agents.
  static void notify(slot& s, news what, bool keeps = false) noexcept;
  void notify_all(news what) noexcept;
  void shut(slot& s) noexcept;

  kept_name name_;
  const strategy strategy_;
  const auto_shutdown auto_shutdown_;
  const std::int64_t max_restarts_;
  const duration within_;
  const std::source_location site_;
  home home_;
  supervisor_core* parent_ = nullptr;

  mode mode_ = mode::passive;
  stage stage_ = stage::none;
  finish finish_ = finish::none;
  bool awake_ = false;
  bool cancelled_ = false;
  bool stop_asked_ = false;
  supervisor_region* region_ = nullptr;
  birth_listener* listener_ = nullptr;  // notified when all children have started
  wake_wait* waiting_ = nullptr;
  std::exception_ptr failure_;
  slot* cursor_ = nullptr;
  std::uint64_t from_ = 0;  // the first slot of the plan, by its order
  time_point not_before_{};
  pause_alarm pause_{*this};
  slot_queue notes_;
  slot_queue held_;  // ends to judge once the rest of the group has started
  restart_window window_;
  request_list stops_;
  std::vector<std::unique_ptr<crash_listener>> listeners_;
  takedown_ref record_;  // of this run; made on demand

  slot* first_ = nullptr;
  slot* last_ = nullptr;
  std::uint64_t last_order_ = 0;
  std::unordered_map<std::string_view, slot*> names_;
  std::unordered_map<const fiber*, slot*> lives_;
  std::size_t size_ = 0;
  std::size_t supervisors_ = 0;
  std::size_t active_ = 0;
  std::size_t significant_ = 0;  // significant children that have a life or are about to get one
};

/// The scope of run(): a failing child does not fail it, and when it is cancelled it stops its
/// children in its own order.
struct supervisor_region final : guided_scope {
  struct setup {
    setup(supervisor_handle owner, const std::source_location& site, birth_listener* listener);
    supervisor_handle core;
    birth_listener* listener;
    scope_setup scope;
  };
  supervisor_region(setup&& s, region_kind kind);
  ~supervisor_region();
  void child_failed(fiber&) override {}
  void child_gone(fiber& f) noexcept override { core->child_gone(f); }
  void asked_to_end() noexcept override { core->asked_to_end(); }

  supervisor_handle core;
  bool over = false;
};

void body_ended(supervisor_region& r, outcome_base& out);

}  // namespace weir::detail
