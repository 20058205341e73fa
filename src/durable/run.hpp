// SPDX-License-Identifier: MIT
// One durable run: what the engine knows of it, and its state while it is in memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <weir/detail/core/frame_allocator.hpp>
#include <weir/detail/core/run_seam.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/detail/durable/command.hpp>
#include <weir/detail/durable/handler.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/durable/engine.hpp>
#include <weir/future.hpp>
#include <weir/scope.hpp>

#include "core/loop.hpp"
#include "durable/journal.hpp"
#include "durable/kept_text.hpp"
#include "durable/lazy_map.hpp"
#include "durable/object.hpp"
#include "durable/place_list.hpp"
#include "durable/run_record.hpp"
#include "durable/timer_queue.hpp"

namespace weir::detail {

class durable_run;
class engine_core;

/// A timer of a run in memory. It and the node in the run's frame point to each other while both
/// exist.
struct run_timer : queued_timer, timer_node {
  timer_node& of() const noexcept { return *previous; }
  durable_run* run = nullptr;
  std::uint64_t command = 0;
};

/// What the journal has recorded of a run that is being replayed.
struct run_history {
  struct command {
    command_kind kind;
    std::string name;
    std::uint64_t digest;
    std::uint64_t number;
    record_place place;
    std::optional<std::string> failure{};  // of a send that was skipped
    std::string value{};                   // of `stored`
    std::uint32_t site = 0;                // where it was issued
  };
  struct step_past {
    std::int64_t failed = 0;  // attempts
    bool open = false;        // an intent without an end
  };
  std::unordered_map<std::uint64_t, command> commands;  // not repeated yet
  std::unordered_map<std::uint64_t, step_past> steps;
  circular_buffer<completion> completions;  // not delivered yet
  wall_time begins{};                       // of a turn that had to wait, or joined late
  bool blocked = false;                     // as it says last
  /// By the number of a completion: the number of turns after which the run got it although it had
  /// not come to rest.
  std::map<std::uint64_t, std::uint64_t> hurried;
  /// Answers of weir::patch.
  std::map<std::string, bool, std::less<>> patches;
  /// The ids of awakeables, by command, if they were exported with the run.
  std::map<std::uint64_t, std::string> awakeables;

  /// The next record of the run.
  void add(const record_head& head, std::string_view payload, record_place place);

 private:
  void add_skip(const record_head& head, std::string_view payload, record_place place);
};

/// The command that a run is blocked on.
struct blocked_command {
  std::uint64_t key = 0;
  command_kind kind = command_kind::none;  // as the code has it
  std::string name{};
  std::uint64_t digest = 0;
  std::optional<std::uint64_t> completion{};  // the number of the one that cannot be delivered
};

/// Clock and random numbers of a run: the time of the last completion, numbers from its seed.
class run_environment final : public environment {
 public:
  explicit run_environment(durable_run& run) noexcept : run_(run) {}
  time_point now() override;
  wall_time wall_now() override;
  std::uint64_t random() override;
  void park(loop&, std::optional<time_point>) override {}
  const void* clock() const noexcept override { return this; }
  bool simulated() const noexcept override;
  void frame_failed(const std::exception_ptr& error) noexcept override;
  durable_run& run() const noexcept { return run_; }

 private:
  durable_run& run_;
};

/// The state of a run in memory: its loop, its fibers and what they wait for.
///
/// There may be a million of them, most of which wait for one thing in one fiber. So this has what
/// each of them needs; what some need is in blocks of their own, made when they are first used:
/// `replay` (freed when the run has caught up), `children` and `tables`.
// Too large for the fast path of malloc, hence in the frame cache.
struct live_run : frame_allocated {
  explicit live_run(durable_run& run, loop& host);
  live_run(const live_run&) = delete;
  live_run& operator=(const live_run&) = delete;

  struct fiber_record {
    std::uint32_t id = 0;
    std::uint32_t commands = 0;
    std::uint32_t children = 0;
    std::uint32_t numbers = 0;  // random numbers drawn
  };
  struct signal_box {
    circular_buffer<command_answer> kept;
    wait_list waiting;
    std::size_t on_their_way = 0;  // in the inbox of the run
  };
  struct cell {  // an awakeable or a promise
    std::optional<command_answer> answer;
    wait_list waiting;
    answer_check type = nullptr;  // of an awakeable
  };

  /// In order of commands. Entries come and go with every step.
  template <class T>
  using by_command = lazy_map<std::uint64_t, T>;

  /// The fibers besides that of the handler.
  struct child_table : frame_allocated {
    std::unordered_map<const fiber*, fiber_record> running;
    std::unordered_set<std::uint32_t> ids;  // also of those that have ended
  };
  /// What the fibers wait for besides timers, steps and calls.
  struct wait_tables : frame_allocated {
    std::map<std::string, signal_box, std::less<>> signals;
    std::unordered_map<std::uint64_t, cell> awakeables;
    std::map<std::string, cell, std::less<>> promises;
    std::map<std::string, bool, std::less<>> patches;  // answers of weir::patch
    struct {
      std::map<std::uint64_t, scope*> entered;  // in order
      std::unordered_map<const context*, std::uint64_t> order_of;
      std::uint64_t last = 0;
      std::unordered_set<scope*> asked;  // those that the current cancellation was sent to
    } absorbs;
    std::string deadlock;  // the report; empty: there was none
  };
  struct fresh_command {
    std::uint64_t key;
    command_kind kind;
    std::string name;
    std::uint64_t digest;
    std::uint64_t number;
    std::optional<run_request> sends{};
    std::source_location site{};
    std::string value{};
  };
  struct replay_state : frame_allocated {
    explicit replay_state(run_history from) noexcept : past(std::move(from)) {}
    run_history past;
    std::vector<fresh_command> fresh;  // issued during the replay, not in the journal
    std::unordered_map<std::string, std::string> fresh_sends;  // ids in it, and their handlers
  };
  using completion_list = circular_buffer<completion>;

  /// What is delivered next.
  completion_list* source() noexcept { return replaying ? &replay->past.completions : inbox.get(); }
  completion_list& need_inbox() {
    if (inbox == nullptr) inbox = std::make_unique<completion_list>();
    return *inbox;
  }
  wait_tables& need_tables() {
    if (tables == nullptr) tables = std::make_unique<wait_tables>();
    return *tables;
  }
  bool is_deadlocked() const noexcept { return tables != nullptr && !tables->deadlock.empty(); }

  durable_run& of() const noexcept { return env.run(); }

  run_environment env;
  loop inner;
  std::optional<scope> root_scope;
  core_ref root;
  wall_time clock{};
  fiber_record outside;  // for commands outside of any fiber
  fiber_record handler_fiber;
  std::unique_ptr<child_table> children;  // null: there were none
  std::unique_ptr<wait_tables> tables;    // null: all are empty
  std::unique_ptr<replay_state> replay;   // null: it has caught up with the journal
  by_command<command_wait*> issued;       // steps and calls
  std::uint64_t last_issued = 0;
  std::size_t jobs = 0;  // steps under way: those in `issued` that have one
  by_command<run_timer> timers;
  reason_ref cancelling;
  std::size_t journaled_waits = 0;         // for awakeables and signals
  std::unique_ptr<completion_list> inbox;  // null: nothing came yet
  std::uint64_t delivered = 0;             // completions
  std::uint64_t rested_at = 0;             // turns of the inner loop at the last delivery
  std::source_location handler{};          // its coroutine
  std::source_location last_site{};        // of a command
  std::unique_ptr<turn_work> work;         // of an exclusive handler of an object
  live_run* parked_before = nullptr;       // in the engine's list of runs that may be suspended
  live_run* parked_after = nullptr;
  bool parked = false;
  bool absorbed = false;
  bool replaying = true;
  bool past_end = false;    // the journal has its end
  bool first_life = false;  // the handler was not called before, so it is not past any place
  bool driven = false;
  bool evicting = false;
  bool forced = false;                      // the cleanup after a deadlock was deadlocked, too
  std::unique_ptr<std::string> unrecorded;  // why a command could not be recorded; null: all were
};

/// How a run ended: from its end until it is taken out of memory.
struct run_end : frame_allocated {
  record_place place = 0;
  wall_time at{};
  std::exception_ptr error;               // the original one, until the end is durable
  std::optional<command_answer> outcome;  // until the end is durable
  std::uint64_t lsn = 0;                  // 0: it is not recorded yet
};

/// Resumes a run that is not in memory. A base of the run, so that it needs no pointer to it.
struct run_alarm {
  queued_timer alarm{.is_alarm = true};
};
static_assert(std::is_standard_layout_v<run_alarm>);  // it is where its only member is

/// What most runs never have.
struct rare_part : frame_allocated {
  std::string message;                         // why it is blocked, or has ended so
  std::unordered_set<std::uint64_t> resolved;  // awakeables that have an answer
  std::uint64_t missing = 0;                   // records of a fork that were not read yet
  durable_run* successor = nullptr;            // its next life; it stops existing
  std::optional<blocked_command> blocked_on;   // null: not blocked, or not on a command
  unsigned unrecorded = 0;                     // how often in a row a command was not recorded
  /// It was cancelled for this reason while it was blocked: it ends as soon as its steps have, or
  /// when it is blocked again by the replay that is under way.
  std::optional<std::string> cancelled_blocked;
};

/// A command in a message: "step 'pay'".
std::string command_text(command_kind kind, std::string_view name);
/// Where a command is issued. Timers carry no source location: the line of user code that waits.
std::string command_place(std::source_location site);

/// Advice for a run whose code does not match.
inline constexpr const char* old_code =
    "; nothing is lost: start the program with the code that the run was begun with";

/// The state of a run that ended so.
durable::run_state state_after(command_answer::kind how) noexcept;

/// A run, from its start until it is forgotten.
///
/// Invariants:
/// 1. `live` exists while its frames are in memory. Its strands run only in `drive`, in which its
///    inner loop is the loop of the thread.
/// 2. Completions are delivered in the order of the journal, one at a time; before the next one,
///    what they wake runs until nothing is ready: so a replay takes the same course. Exception: a
///    restless run (`hurried`).
/// 3. While replaying, nothing is started and no command is appended: commands are compared with
///    the journal. Commands that it does not have were lost with its tail, or are new; they are
///    appended when the replay has found all others. Afterwards every command is appended when it
///    is issued. `hurried` is appended during a replay, too, if the journal does not say after how
///    many turns a restless run got a completion.
/// 4. The sends of an exclusive handler of an object, and its changes of stored values, are kept in
///    `work` until it has ended with a value; a call is not.
/// 5. Effects outside the process (the start of a step, a result) wait until `depends` is durable:
///    the last record that decides how the run continues (`steers`).
///
/// There may be millions that are not in memory and wait for a timer or for a message: this has
/// only what each of them needs. What a run in memory needs is in `live`, what an ended one needs
/// in `end_part`, what few have in the rare part. The engine keeps runs inside the nodes of its
/// index.
class durable_run final : public run_seam, public run_alarm {
 public:
  enum class progress { parked, more, ended, blocked, unrecorded };

  durable_run(engine_core& engine, std::uint64_t number) noexcept
      : engine_(engine), number_(number) {}
  durable_run(const durable_run&) = delete;
  durable_run& operator=(const durable_run&) = delete;
  ~durable_run();

  // Set by the engine and the recovery.
  kept_text id;
  kept_text idempotency;
  const std::string* handler_name = nullptr;  // one copy for all runs of the engine
  std::uint32_t version = 1;
  std::uint32_t life = 1;  // how often it was started
  std::uint64_t seed = 0;
  wall_time started{};
  wall_time begins{};
  std::uint64_t parent = 0;
  record_place start_place = 0;
  std::uint64_t start_lsn = 0;
  std::uint64_t depends = 0;  // the LSN of the last record that its future depends on
  place_list places;          // of all records but start and end
  std::uint64_t bytes = 0;    // of all its records, about
  wait_list askers;           // waits for its end
  std::unique_ptr<live_run> live;
  std::unique_ptr<run_end> end_part;  // null: it has not ended
  std::unique_ptr<object_part> part;  // in its object; null: none, or it has ended
  /// A call between this run and another one: that run, and the command of the caller.
  struct call_link {
    std::uint64_t run;
    std::uint64_t command;
    auto operator<=>(const call_link&) const = default;
  };
  using call_links = std::unique_ptr<std::set<call_link>>;  // null: none
  call_links callers;                                       // runs that wait for its end
  call_links callees;  // runs whose ends it waits for; may include ended runs
  durable::run_state state = durable::run_state::suspended;
  std::uint8_t restless_turns = 0;  // during recovery
  bool skipped = false;             // it was blocked, and continues when its steps have ended
  bool begun = false;               // its handler was called, in this open or an earlier one
  bool recovering = false;          // left over from an earlier open
  bool cancel_asked = false;
  bool caller_asked = false;  // by the run that called it
  bool held : 1 = false;      // the steps of its earlier life have not ended
  bool final : 1 = false;     // its end is durable and may be reported
  bool resuming : 1 = false;  // waits for its turn to be replayed, or is being replayed
  bool listed : 1 = false;    // in the engine's queue of runs that have something to do

  std::uint64_t number() const noexcept { return number_; }
  const std::string& handler() const noexcept { return *handler_name; }
  /// Empty for most runs.
  const rare_part& rare() const noexcept {
    static const rare_part none;
    return rare_ == nullptr ? none : *rare_;
  }
  rare_part& need_rare() {
    if (rare_ == nullptr) rare_ = std::make_unique<rare_part>();
    return *rare_;
  }
  void forget_rare() noexcept { rare_.reset(); }
  void set_cancelled_blocked(std::optional<std::string> why) {
    if (why || rare_ != nullptr) need_rare().cancelled_blocked = std::move(why);
  }
  void set_blocked_on(std::optional<blocked_command> on) {
    if (on || rare_ != nullptr) need_rare().blocked_on = std::move(on);
  }
  run_end& need_end() {
    if (end_part == nullptr) end_part = std::make_unique<run_end>();
    return *end_part;
  }
  /// Makes another run of it, which keeps only its memory. REQUIRES: it was only read from a
  /// journal.
  void renew(std::uint64_t number) noexcept;
  bool ended() const noexcept { return end_lsn() != 0; }
  std::uint64_t end_lsn() const noexcept { return end_part == nullptr ? 0 : end_part->lsn; }
  static durable_run& of_alarm(queued_timer& t) noexcept {
    return static_cast<durable_run&>(reinterpret_cast<run_alarm&>(t));
  }
  std::string_view message() const noexcept { return rare().message; }
  void set_message(std::string_view text) {
    if (!text.empty() || rare_ != nullptr) need_rare().message = text;
  }
  /// An unfinished run of an exclusive handler of an object.
  bool takes_turns() const noexcept { return part != nullptr && !part->shared; }
  /// It has the turn of its key. REQUIRES: takes_turns.
  bool has_turn() const noexcept { return part->joined && part->of->inbox.begin()->second == this; }

  /// Makes its in-memory state and its root fiber. REQUIRES: not live.
  void begin(const handler_base& code, std::string input, run_history history);
  /// Continues until nothing is ready or to be delivered, or until its share of the turn is used
  /// up.
  progress drive();
  /// The run cannot continue.
  void block(std::string why);
  /// One of its commands cannot be recorded now: what it does from here on has no effect, until it
  /// is replayed and the command recorded.
  void stop_unrecorded(std::string why);
  /// It is blocked, or stopped because of a command: its code issues no more commands.
  bool stopped() const noexcept {
    return state == durable::run_state::blocked || live->unrecorded != nullptr;
  }
  /// The same, because of the answer to this wait.
  void block_on(const command_wait& w, std::string why);
  /// Frees its in-memory state, in which no fiber is left.
  void discard();
  /// For an engine that changes nothing: continues to the end of the journal. Returns the first
  /// difference, empty if there is none; `end` is how the run ended, if it has. REQUIRES: begun.
  std::string look(const std::optional<command_answer>& end);
  /// Destroys its in-memory state: runs no defer and no catch, and records nothing.
  void evict(const char* why);
  /// No step of it is under way, so it may be evicted.
  bool may_be_evicted() const noexcept { return live != nullptr && live->jobs == 0; }
  /// Whether its root ended with a value. REQUIRES: drive returned `ended`.
  bool has_succeeded() const noexcept;
  /// How its root ended. REQUIRES: drive returned `ended`.
  command_answer take_result();
  /// Records and delivers the answer to a step or call.
  void step_ended(std::uint64_t command, command_answer answer);
  /// The id of a run that this one starts, unless another id was given.
  std::string child_id(std::uint64_t key) const;
  /// The value of weir::step_key in a step.
  std::string step_key(std::uint64_t key) const;
  /// Throws errc::bad_data if the run is known to wait for a value of another type: as awakeable
  /// `command`, or as a signal.
  void require_fits_awakeable(std::uint64_t command, std::string_view value) const;
  void require_fits_signal(std::string_view name, std::string_view value) const;

  // As the seam of its code.
  std::string_view run_id() const noexcept override { return id; }
  void fiber_begins(fiber& f) override;
  void fiber_ended(fiber& f) noexcept override;
  void arm_timer(timer_node& node, std::uint64_t when, bool limit) noexcept override;
  void cancel_timer(timer_node& node) noexcept override;
  bool poll(command_wait& w) override;
  void issue(command_wait& w) override;
  cancel_result withdraw(command_wait& w) noexcept override;
  void handler_begins(std::source_location function) noexcept override;
  awakeable_made make_awakeable(std::string_view name, answer_check type,
                                std::source_location site) override;
  bool settle_promise(std::string_view name, command_answer answer,
                      std::source_location site) override;
  const command_answer* peek_promise(std::string_view name) const override;
  bool patch(std::string_view id, std::source_location site) override;
  std::string send(run_request request, std::source_location site) override;
  std::string_view object_key() const noexcept override;
  void set_stored(std::string_view name, std::optional<std::string> value,
                  std::source_location site) override;
  void enter_absorb(scope& region) override;
  void leave_absorb(scope& region, bool consumed) noexcept override;

  std::uint64_t next_number();  // random
  wall_time clock() const noexcept { return live->clock; }
  loop& host() noexcept;

 private:
  struct issued_command {
    std::uint64_t key = 0;  // 0: it does not match or cannot be recorded, and the run is stopped
    std::uint64_t number = 0;
    record_place place = 0;
    std::optional<std::string> failure{};
    std::string value{};
  };
  live_run::fiber_record& running_fiber();
  issued_command issue(command_kind kind, std::string_view name, std::uint64_t digest,
                       std::uint64_t number, std::source_location site,
                       std::optional<run_request> sends = std::nullopt, std::string value = {});
  /// Answers a wait of kind `stored`; false: the run is stopped.
  bool read_stored(command_wait& w);
  /// nullopt: it cannot be recorded, and the run is stopped.
  std::optional<record_place> record(std::uint64_t key, command_kind kind, const command_record& c);
  progress how_it_stopped() const noexcept {
    return state == durable::run_state::blocked ? progress::blocked : progress::unrecorded;
  }
  /// Of an exclusive handler of an object: started when it ends.
  void keep_send(run_request request);
  /// The handler of a run that this one has sent to, and that is not started yet; null: none.
  const std::string* handler_of_unsent(const std::string& sent) const;
  void block_missing(std::uint64_t key, const run_history::command& left);
  command_wait* signal_wait(std::uint64_t key);
  /// Whether its end is another one than the journal has.
  std::string other_end(const command_answer& end);
  std::string where_it_is(std::uint32_t fiber_id) const;
  /// Where a command was issued that the journal has: a part of a sentence, or nothing.
  std::string recorded_place(std::uint32_t site) const;
  std::string how_it_ended() const;
  /// Gives a wait its answer. If that cannot be decoded, blocks the run and returns false.
  bool give(command_wait& w, const command_answer& answer);

  /// Whether the run gets its next completion now, although it has not come to rest.
  bool hurry();
  bool deliver_next();
  bool matches(const run_history::command& was, command_kind kind, std::string_view name,
               std::uint64_t digest, std::uint64_t key, std::source_location site);
  /// Takes what it needs of it.
  bool deliver(completion& next);
  void deliver_cancel(const completion& what);
  /// The absorbed operations that are not inside another one and not yet cancelled.
  std::vector<scope*> outermost_absorbs() const;
  void cancel_before_begin();
  bool go_live();
  bool waits_for_journal() const noexcept;
  void fail_deadlocked();
  void start(command_wait& w);
  /// The waits for the same object as `w`; null if it waits for a step or a call.
  wait_list* waiters_of(const command_wait& w);
  bool settle_cell(live_run::cell& cell, command_answer answer);

  engine_core& engine_;
  std::uint64_t number_;
  std::unique_ptr<rare_part> rare_;  // null: all of it is empty
};

}  // namespace weir::detail
