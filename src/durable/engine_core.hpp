// SPDX-License-Identifier: MIT
// The engine without its templates: runs, timers, the journal and the waits on it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/broadcast.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/durable/engine.hpp>
#include <weir/event.hpp>

#include "core/fork_watch.hpp"
#include "core/loop.hpp"
#include "durable/commit_writer.hpp"
#include "durable/ended_runs.hpp"
#include "durable/journal.hpp"
#include "durable/object.hpp"
#include "durable/run.hpp"
#include "durable/run_export.hpp"
#include "durable/run_hold.hpp"
#include "durable/run_index.hpp"
#include "durable/run_record.hpp"
#include "durable/site_table.hpp"
#include "durable/turn_record.hpp"

namespace weir::detail {

/// The LSN of a record that was not appended because the journal has failed: never durable.
inline constexpr std::uint64_t never_durable = ~std::uint64_t{0};

/// How often the engine checks for space while there is none.
inline constexpr duration room_interval = std::chrono::seconds(1);

/// A wall time in the unit of timers.
inline std::uint64_t ticks_of(wall_time t) noexcept {
  return static_cast<std::uint64_t>(t.time_since_epoch().count());
}

/// Waits until a record is durable; throws the error of a failed journal.
class lsn_wait : public simple_wait<lsn_wait, linked_wait> {
 public:
  struct args {
    engine_core* engine;
    std::uint64_t lsn;
  };
  using result = void;
  explicit lsn_wait(args&& a) noexcept : engine_(a.engine), lsn_(a.lsn) {}
  bool try_now() const noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void take() const;

 private:
  friend class engine_core;
  engine_core* engine_;
  std::uint64_t lsn_;
};

/// Waits until the end of a run is durable.
class end_wait : public simple_wait<end_wait, linked_wait> {
 public:
  struct args {
    engine_core* engine;
    std::string_view id;  // outlives the wait
  };
  using result = command_answer;
  explicit end_wait(args&& a) noexcept : engine_(a.engine), id_(a.id) {}
  bool try_now() const noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  /// Throws the original error of a run that ended during the wait.
  command_answer take();

 private:
  friend class engine_core;
  /// Null: it has ended and is out of memory.
  durable_run* unfinished() const noexcept;

  engine_core* engine_;
  std::string_view id_;
  durable_run* run_ = nullptr;  // while it is linked: a run may end before the wait is armed
  std::exception_ptr error_;
  std::optional<command_answer> answer_;
};

/// The options of an engine, with owned strings.
struct engine_setup {
  explicit engine_setup(const durable::engine_options& options);
  std::string path;
  std::int64_t max_resume;
  duration retention;
  bool sync;
  std::int64_t segment_bytes;
  weir::disk* disk;
  std::shared_ptr<const key_ring> keys;  // null: none
  std::int64_t max_live;
  bool report_blocked;
};

/// A strand on the host's loop that does one piece of the engine's work per turn. If the engine
/// ends while it is in the ready queue, the loop frees it.
class work_strand final : public special_strand {
 public:
  using work = void (engine_core::*)();
  work_strand(engine_core& engine, work what, loop& host) noexcept;
  void wake() noexcept;
  bool begin_turn() noexcept override;
  void end_turn() noexcept override {}
  void dispose() noexcept override { delete this; }
  /// Its engine ends. REQUIRES: on the host's loop, or it is not in the ready queue.
  static void drop(work_strand* s) noexcept;
  struct dropper {
    void operator()(work_strand* s) const noexcept { drop(s); }
  };

 private:
  engine_core& engine_;
  work work_;
  loop& host_;
};

/// The runs in memory that wait and have no step under way, parked longest first.
struct parked_list {
  live_run* first = nullptr;
  live_run* last = nullptr;
  void push_back(live_run& run) noexcept;
  void remove(live_run& run) noexcept;
};

/// Invariants:
/// 1. Everything is on the host's loop; another thread only writes batches (commit_writer).
/// 2. A run is in `ready_` at most once (`listed`), if it has something to do and the engine runs.
/// 3. At most `max_resume` runs are being replayed; the others wait in `resuming_`.
/// 4. Once the journal has failed, nothing is appended and no run continues; all waiters get the
///    error.
class engine_core final : public std::enable_shared_from_this<engine_core>, private record_reader {
 public:
  explicit engine_core(engine_setup setup);
  ~engine_core();

  // The service.
  task<> serve();
  pending<gate_wait> service_begun() { return begun_.wait(); }
  void ask_to_close() { closing_.set(); }

  // Operations for users.
  void add_handler(std::string_view name, std::shared_ptr<const handler_base> handler, int version);
  /// Throws errc::invalid_argument if an object cannot have this name and these handlers.
  void require_object_name(std::string_view name,
                           std::initializer_list<durable::object_handler> handlers) const;
  void open();
  struct begun {
    std::string id;
    std::uint64_t lsn;
    std::uint64_t number;
  };
  begun begin_run(run_request request);
  /// What the handles of this run share.
  std::shared_ptr<run_hold> hold(std::uint64_t number);
  /// The last of them is gone.
  void let_go(std::uint64_t number) noexcept;
  struct delivered {
    bool first;
    std::uint64_t lsn;
  };
  delivered resolve(std::string_view id, bool ok, std::string text);
  delivered signal(std::string_view run, std::string_view name, std::string value);
  bool cancel(std::string_view id, std::string_view why = {});
  /// The LSN of the end of a run, 0 if it has not ended. Throws if there is no such run.
  std::uint64_t end_of_known(const std::string& id) {
    const known_run known = require_known(id);
    return known.run == nullptr ? 0 : known.run->end_lsn();
  }
  bool is_durable(std::uint64_t lsn) const noexcept {
    return !running() || journal_->durable_lsn() >= lsn;
  }
  /// The new run. REQUIRES: the end of the other one, if it has ended, is durable.
  begun fork(const std::string& id, std::int64_t at_step, const std::string& new_id);
  /// The LSN of the record.
  std::uint64_t restart(const std::string& id);
  std::uint64_t skip(const std::string& id, std::string_view message);
  /// Replays all runs, or that with this id, and changes nothing.
  durable::replay_report look_at_runs(const char* what, const std::string& id);
  /// The same with a run that was exported to a file, with the one handler of this engine.
  durable::replay_report look_at_export(const exported_run& from);
  std::optional<durable::run_info> get(std::string_view id) const;
  std::vector<durable::run_info> list(const durable::list_options& options) const;
  subscription<durable::run_event> events();
  /// A run that users or other runs may refer to: in memory, or ended and not forgotten.
  struct known_run {
    durable_run* run = nullptr;  // null: it has ended, and `ended` is it, or there is none
    std::optional<ended_run> ended{};
    std::string id{};
    std::string handler{};
    explicit operator bool() const noexcept { return run != nullptr || ended; }
  };
  known_run require_known(std::string_view id);
  /// The recorded end of a run.
  command_answer late_result(record_place end);
  /// Throws errc::not_journaled or wrong_loop if the engine must not be used here.
  void require_here(const char* what) const;
  void require_process(const char* what) const;
  /// "get: the durable engine on 'path'": the beginning of an error.
  std::string text_of_use(const char* what) const;
  void require_open(const char* what) const;
  /// There is no space for the next segment: runs that have begun may continue, new ones are
  /// refused.
  bool lacks_room() const noexcept;
  /// Checks for room again and waits for the result.
  task<> find_room();
  /// Throws errc::journal_full if there is no room.
  void require_room() const;
  pending<lsn_wait> durable(std::uint64_t lsn) { return pending<lsn_wait>({this, lsn}); }
  pending<end_wait> end_of(std::string_view id) { return pending<end_wait>({this, id}); }

  // Called by runs.
  loop& host() noexcept { return host_; }
  wall_time wall_now() { return host_.env().wall_now(); }
  journal::appended append(durable_run& run, record_type type, std::uint16_t flags,
                           std::uint64_t command, const payload_view& payload);
  /// The number of a source line, which the journal is told when it is first used; 0: unknown.
  std::uint32_t site_of(std::source_location at);
  std::string_view site_text(std::uint32_t number) const noexcept { return sites_.text(number); }
  /// The run was recorded as blocked and continues.
  void note_unblocked(durable_run& run);
  /// Appends a completion and delivers it to the run. Throws payload_error if it cannot be written;
  /// then nothing has happened, and `what` is unchanged.
  std::uint64_t deliver_to(durable_run& run, completion&& what);
  /// As `deliver_to`, but an answer that cannot be written is replaced by the error.
  void answer_run(durable_run& run, completion what);
  void deliver_cancel(durable_run& run, completion what);
  void start_timer(queued_timer& t);
  void stop_timer(queued_timer& t) noexcept;
  void start_step(durable_run& run, command_wait& w, const run_history::step_past& past);
  /// The run no longer waits for the step or call: ends it and records the end.
  void give_up(durable_run& run, command_wait& w);
  /// Cancels a run because `command` of its caller was; once.
  void cancel_called(durable_run& callee, std::uint64_t command);
  /// Starts the called run, or attaches to it.
  void start_call(durable_run& run, command_wait& w);
  /// Starts a run without a waiter, unless it exists. Returns errc{}, or why its input could not be
  /// written.
  errc start_sent(const run_request& request, std::string& problem);
  /// Why such a run could not be started; errc{} if it could.
  errc refuses(const run_request& request, std::string& problem);
  durable_run* find(std::uint64_t number) noexcept;
  const std::array<unsigned char, 16>& secret() const noexcept { return secret_; }
  /// It replays runs and changes nothing: they stop where their journal ends.
  bool only_looks() const noexcept { return !opened_; }
  void make_ready(durable_run& run);
  /// It leaves the list of runs that may be suspended.
  void unpark(durable_run& run) noexcept;
  bool running() const noexcept { return open_ && !broken_; }
  /// Throws the error of a journal that has failed.
  void require_running() const;

  /// Forgets what is due and replaces everything by a snapshot; throws why it could not.
  /// REQUIRES: open. For tools: handlers need not be there.
  task<> compact_all();

  /// A step ended without an answer: its run is blocked, the engine ends or the journal has failed.
  void step_lost(durable_run& run) noexcept;

  // Called by the writer.
  void commit_done(std::unique_ptr<journal_batch> batch, std::exception_ptr error) noexcept;

 private:
  friend class lsn_wait;
  friend class end_wait;
  using run_map = std::map<std::uint64_t, durable_run>;

  void see(const record_head& head, std::string_view payload, std::uint64_t lsn,
           record_place place) override;
  void see_start(const record_head& head, std::string_view payload, std::uint64_t lsn,
                 record_place place);
  void see_end(durable_run& run, const record_head& head, std::string_view payload,
               std::uint64_t lsn, record_place place);
  durable_run* seen(std::uint64_t number) noexcept;
  /// What a record, other than start and end, says about its run.
  void note_record(durable_run& run, const record_head& head, std::string_view payload,
                   std::uint64_t lsn, record_place place);
  void recovered();
  void prepare_recovery();
  void forget_recovery() noexcept;
  durable_run& make_run(std::uint64_t number, const start_record& from);
  /// Not yet in `runs_`.
  run_map::node_type new_run(std::uint64_t number);
  void describe(durable_run& run, const start_record& from);
  void add_to_index(durable_run& run);
  void remove_from_index(durable_run& run);
  known_run find_known(std::string_view id) const;
  /// Returns null if the journal has failed.
  durable_run* start_run(const run_request& request, std::uint64_t parent, std::uint64_t command);
  known_run attached(const run_request& request) const;
  /// The records of a run, from its start on, without its end.
  std::vector<exported_record> records_of(const known_run& known);
  /// Appends the record that starts a run.
  journal::appended append_start(const record_head& head, const payload_writer& payload);
  void take_place(durable_run& old, durable_run& next);
  /// Which life of its run begins with the start at this place.
  std::uint32_t life_of(record_place start);
  void cancel_called_by(std::uint64_t number);
  /// Takes a run that stops existing out of all lists, and lets its next life begin.
  void leave_to_successor(durable_run& run);
  std::string look_at(const std::vector<exported_record>& records, const exported_run* exported,
                      durable::replay_difference& found);
  /// The parts of a new start, except the run that waits for it.
  start_record new_start(const run_request& request, const std::string& id);
  /// A start was recorded: the run exists from now on.
  durable_run& add_run(std::uint64_t number, const start_record& start, journal::appended at,
                       std::uint64_t bytes);
  /// The start of a run, which is at this place: a record of its own, or a part of a turn. It
  /// refers to `payload`, or is valid until the next call.
  start_record read_start(std::uint64_t number, record_place place, std::string& payload) const;

  // Objects.
  std::string key_of(const known_run& run) const;
  /// Gives a run of an object its part in it. REQUIRES: from.kind is not plain.
  void enter_object(durable_run& run, const start_record& from);
  void join(durable_run& run, inbox_place place);
  /// The delay of a turn is over: it joins its inbox, which is recorded.
  void join_late(durable_run& run);
  /// Whether a run must wait for its turn. Records that a turn begins which had to wait.
  bool waits_for_turn(durable_run& run);
  /// It has not begun, and cannot yet: it is delayed or waits for its turn.
  static bool is_queued(const durable_run& run) noexcept;
  /// A run begins again: it gets the place of its earlier life in the inbox.
  void pass_turn(durable_run& old, durable_run& next);
  /// The run has ended; the next turn may begin.
  void leave_object(durable_run& run);
  /// Removes it if nothing refers to it and it has no state.
  void forget_if_empty(durable_object& object);
  /// Ends a cancelled run that is queued: it never begins.
  void end_queued(durable_run& run, std::string why);
  /// Why the sends of a turn cannot be started; empty: they can.
  std::string problem_of_sends(const turn_work& work) const;
  journal::appended record_turn(durable_run& run, const turn_work& work);
  void see_turn(const record_head& head, std::string_view payload, std::uint64_t lsn,
                record_place place);
  void see_sends(const turn_record& turn, std::string_view payload, std::uint64_t lsn,
                 record_place place);
  void see_object_state(std::string_view payload);
  /// The end of a snapshot: what it lists was forgotten, and the states of objects follow.
  void see_compacted(std::string_view payload);
  void see_turn_event(durable_run& run, const record_head& head, std::string_view payload);
  /// What get and list say of a run.
  std::string message_of_run(const durable_run& run) const;
  const handler_base* code_of(const durable_run& run) const;
  /// Null if there is none.
  const handler_base* newest_code(std::string_view handler) const;
  std::uint32_t newest_version(std::string_view handler) const;
  void resume(durable_run& run);
  /// It is delayed, and its time has not come. Setting the clock back does not affect a run that
  /// has begun.
  bool waits_to_begin(const durable_run& run);
  void set_alarm(durable_run& run, std::uint64_t when, std::uint64_t order);
  void begin_resumed();
  run_history load(durable_run& run, std::string& input);
  void work_on_runs();
  void work_on_one();
  void drive(durable_run& run);
  void end_run(durable_run& run);
  journal::appended record_end(durable_run& run);
  /// The same; a message that cannot be written is shortened.
  journal::appended record_shortened_end(durable_run& run);
  void block_run(durable_run& run, std::string why);
  void stop_blocked(durable_run& run);
  void emit_blocked(durable_run& run);
  /// For readers of the journal; an engine finds out by itself.
  void note_blocked(durable_run& run);
  /// What the journal says of a run that may be blocked; empty: it does not say that it is.
  std::string recorded_block(const durable_run& run);
  /// Ends a cancelled blocked run without its cleanup. REQUIRES: not in memory.
  void end_blocked(durable_run& run);
  /// Its end was recorded. Returns false if it was not, because the journal has failed.
  bool note_end(durable_run& run, journal::appended at);
  void replayed(durable_run& run);
  void has_recovered(durable_run& run);
  /// Its start is durable, so it may be reported.
  bool is_known(const durable_run& run) const noexcept;
  static void refuse(durable_run& run, const command_wait& w, errc code, std::string why);
  /// The run that a call starts or attaches to.
  static run_request request_of(const durable_run& run, const command_wait& w);
  static void note_caller(durable_run& callee, durable_run& run, std::uint64_t command);
  static void forget_caller(durable_run& callee, durable_run& run, std::uint64_t command);
  /// Whether `run` would wait for itself if it waited for `callee`; `circle` receives the cycle.
  bool closes_circle(const durable_run& run, const durable_run& callee, std::string& circle);
  /// The same for a call that starts a run, which would wait for its turn.
  bool closes_circle(const durable_run& run, const run_request& request, std::string& circle);
  void answer_call(durable_run& run, std::uint64_t command, const command_answer& how);
  /// Answers a call with the result of an ended run; blocks the caller if it cannot be read.
  template <class F>
  void answer_with(durable_run& run, const command_wait& w, const std::string& callee, F result);
  void park(durable_run& run);
  void suspend_some();
  /// A command of it cannot be recorded: it is replayed after a while, to try it again.
  void set_aside(durable_run& run);
  void finish_durable_runs();

  // Ended runs: engine_retention.cpp.
  /// Its end is durable and reported: from now on only the index knows it. Frees `run`, at the
  /// latest when the queue of ready runs gets to it.
  void retire(durable_run& run);
  static ended_run entry_of(const durable_run& run, record_place end, wall_time at) noexcept;
  /// REQUIRES: it has ended.
  static ended_run entry_of(const durable_run& run) noexcept {
    return entry_of(run, run.end_part->place, run.end_part->at);
  }
  /// Reads what the index does not have; nullopt if the run has another id.
  std::optional<known_run> read_ended(std::uint64_t number, std::string_view id) const;
  known_run ended_with_id(std::string_view id) const;
  known_run ended_with_key(std::string_view handler, std::string_view idempotency) const;
  /// An unended run that may still ask for the result of this one; 0: none.
  std::uint64_t holder_of(const ended_run& run);
  /// Forgets the runs whose retention is over, some at a time.
  void forget_due();
  void forget(const ended_run& run);
  void release_held(std::uint64_t holder);
  bool is_due(const ended_run& run, wall_time now) const noexcept;
  /// It does not exist for users any more, though its entry may still be there: its retention is
  /// over, and no run may ask for its result.
  bool is_over(const ended_run& run) const;
  /// A run begins again: its handles belong to its next life.
  void pass_hold(std::uint64_t from, std::uint64_t to);
  /// A run starts with the id or the idempotency key of runs that are over.
  void forget_predecessors(const start_record& start);
  void arm_forgetting();
  void note_reused(const start_record& start, std::uint64_t number, record_place place);
  /// It is not known any more, and its records are garbage.
  void drop(const ended_run& run);
  void settle_reused_ids();
  void emit(const durable_run& run);
  durable::run_info info_of(const durable_run& run) const;
  durable::run_info info_of(const ended_run& run) const;
  void flush();
  /// Appended records must be written to the disk.
  void want_flush() noexcept;
  /// A turn of the pump is over; if a flush waits for it, it may begin now.
  void run_has_gone_first() noexcept;
  void wake_durable() noexcept;
  static void wake_askers(durable_run& run) noexcept;
  void start_waiting_steps() noexcept;
  std::uint64_t record(durable_run& run, const completion& what);
  void hand_over(durable_run& run, completion&& what);
  void break_down(std::exception_ptr error) noexcept;
  // Compaction: engine_compaction.cpp.
  /// Begins one if most of what it would replace is garbage.
  void consider_compaction();
  void begin_compaction(std::uint64_t last_segment);
  /// Appends the states of some objects; the compaction goes on to its end after the last of them.
  void state_some_objects();
  /// Has a slice done, if one is under way and it is its turn. Returns whether it has.
  bool compact_some();
  void compaction_ended();
  void look_for_room() noexcept;
  void room_looked_for() noexcept;
  void arm_alarm();
  void fire_due();
  task<> shut_down();
  void close_journal() noexcept;
  std::string new_id();

  struct alarm_clock final : deadline_node, wall_watch {
    explicit alarm_clock(engine_core& e) noexcept : of(e) {}
    void expired() noexcept override { of.fire_due(); }
    void wall_clock_set() noexcept override {
      of.arm_alarm();
      of.arm_forgetting();
    }
    engine_core& of;
  };

  struct forget_clock final : deadline_node {
    explicit forget_clock(engine_core& e) noexcept : of(e) {}
    void expired() noexcept override { of.forget_due(); }
    engine_core& of;
  };

  struct room_clock final : deadline_node {
    explicit room_clock(engine_core& e) noexcept : of(e) {}
    void expired() noexcept override { of.look_for_room(); }
    engine_core& of;
  };

  engine_setup setup_;
  const process_mark process_;
  loop& host_;
  const std::uint32_t host_serial_;
  const std::string host_name_;
  std::uint64_t durable_seen_ = 0;  // the last LSN that waiters were notified of
  scope* steps_ = nullptr;          // of the service, while it runs
  bool open_ = false;
  bool opened_ = false;  // ever
  bool broken_ = false;
  bool ended_ = false;
  std::exception_ptr failure_;
  event begun_;
  event closing_;
  std::map<std::string, std::map<std::uint32_t, std::shared_ptr<const handler_base>>, std::less<>>
      handlers_;
  std::unique_ptr<journal> journal_;
  std::array<unsigned char, 16> secret_{};
  std::unique_ptr<commit_writer> writer_;
  bool committing_ = false;
  std::unique_ptr<journal_batch> stalled_;  // the batch that waits for room
  room_clock room_clock_{*this};            // armed while room is lacking
  event looked_for_room_;
  bool full_ = false;  // room was lacking when it was last looked for; reported
  bool shutting_down_ = false;
  bool flush_wanted_ = false;
  bool flush_put_off_ = false;  // until runs have gone first: the pump is queued, or runs
  int runs_gone_first_ = 0;
  std::uint64_t taken_lsn_ = 0;  // the last LSN that is, or is about to be, on the disk
  run_map runs_;                 // without those that have ended for good
  std::vector<run_map::node_type> replaced_;  // by their next life; freed in a while
  run_index by_id_;
  std::unordered_map<std::string, durable_run*> by_idempotency_;
  std::set<std::string, std::less<>> handler_names_;  // of all runs, also of unknown handlers
  std::uint64_t last_number_ = 0;
  site_table sites_;
  ended_runs past_;
  /// Ended runs whose retention is over, by an unended run that may still ask for their results.
  std::multimap<std::uint64_t, std::uint64_t> held_;
  /// An ended run, and one that waits for its result and was not in memory when it ended: it will
  /// call it again.
  std::set<std::pair<std::uint64_t, std::uint64_t>> asked_again_;
  std::unordered_map<std::uint64_t, held_run> handles_;  // the runs that have some, by number
  forget_clock forget_clock_{*this};
  object_table objects_;
  std::uint64_t last_joined_ = 0;  // the place of the last delayed turn
  /// The turn record that was read last, for the starts in it.
  struct read_turn {
    record_place place = 0;
    std::string payload;
    turn_record read;
  };
  mutable read_turn turn_read_;
  /// Bytes of the records of forgotten runs, by the segment in which they ended.
  std::map<std::uint64_t, std::uint64_t> garbage_;
  std::uint64_t garbage_in_plan_ = 0;   // of these, what the compaction under way will remove
  std::uint64_t compact_after_ = 0;     // the next one replaces a segment after this
  std::uint64_t compacting_up_to_ = 0;  // 0: no compaction is under way
  bool slice_was_last_ = false;         // of the batches
  bool stating_objects_ = false;        // some states are not appended yet
  event compacted_;
  /// Caches of the recovery: runs with recent records, by number, and the memory of ended runs.
  std::vector<durable_run*> seen_;
  std::vector<run_map::node_type> spare_runs_;
  wall_time open_time_{};
  struct reused {
    std::uint64_t older;
    std::uint64_t number;  // of the newer one
    record_place newer;    // where it starts
  };
  std::vector<std::uint64_t> found_;  // a buffer
  std::vector<reused> reused_;  // pairs of runs that seem to have the same id or idempotency key
  std::deque<durable_run*> ready_;
  std::deque<durable_run*> resuming_;
  std::int64_t replaying_ = 0;
  std::int64_t live_ = 0;
  std::size_t to_recover_ = 0;         // runs to be replayed after recovery; timers wait for them
  parked_list parked_;                 // parked longest first
  std::deque<durable_run*> starting_;  // their starts are not durable yet
  std::deque<durable_run*> ending_;    // their ends are not durable yet
  timer_queue timers_;
  alarm_clock alarm_{*this};
  wait_list lsn_waiters_;
  std::vector<core_ref> waiting_steps_;  // until `depends` is durable
  broadcast<durable::run_event> events_;
  std::unique_ptr<work_strand, work_strand::dropper> pump_;
  std::unique_ptr<work_strand, work_strand::dropper> flusher_;
};

}  // namespace weir::detail
