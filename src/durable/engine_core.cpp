// SPDX-License-Identifier: MIT
// Operations for users, and waits on the journal.
#include "durable/engine_core.hpp"

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "durable/awakeable_id.hpp"

namespace weir::detail {

namespace {

constexpr std::int64_t events_kept = 1024;

void require_option(bool good, const char* what) {
  if (!good) raise(errc::invalid_argument, std::string("durable engine: ").append(what));
}

std::string idempotency_key(std::string_view handler, std::string_view key) {
  return std::string(handler).append(1, '\0').append(key);
}

}  // namespace

engine_setup::engine_setup(const durable::engine_options& options)
    : path(options.path),
      max_resume(options.max_resume),
      retention(options.retention),
      sync(options.sync == durable::sync::always),
      segment_bytes(options.segment_bytes),
      disk(options.disk),
      max_live(options.max_live),
      report_blocked(options.report_blocked) {
  require_option(!path.empty(), "path is empty; give the directory of the journal");
  require_option(max_resume > 0, "max_resume is not positive; give 1 or more");
  require_option(max_live > 0, "max_live is not positive; give 1 or more");
  require_option(retention >= duration::zero(), "retention is negative; give 0 or more");
  require_option(segment_bytes >= 64 * 1024,
                 "segment_bytes is less than 64 KiB; give that or more");
  require_option(options.encryption_key.empty(),
                 "encryption_key is not supported yet; leave it empty");
}

engine_core::engine_core(engine_setup setup)
    : setup_(std::move(setup)),
      host_(require_fiber("durable::engine")),
      host_serial_(host_.serial()),
      host_name_(host_.own_door().name()),
      events_(events_kept),
      pump_(new work_strand(*this, &engine_core::work_on_runs, host_)),
      flusher_(new work_strand(*this, &engine_core::flush, host_)) {
  host_.env().add_watch(alarm_);
}

engine_core::~engine_core() {
  if (!ended_) host_.env().remove_watch(alarm_);
  if (alarm_.armed()) host_.cancel_deadline(alarm_);
  if (room_clock_.armed()) host_.cancel_deadline(room_clock_);
  forget_timers();
  runs_.clear();
  writer_.reset();
}

// ------------------------------------------------------------------ handlers

void engine_core::add_handler(std::string_view name, std::shared_ptr<const handler_base> handler,
                              int version) {
  require_here("add");
  require_option(!name.empty(), "add: the name of a handler is empty; give it one");
  require_option(version >= 1, "add: the version of a handler is less than 1; give 1 or more");
  auto& versions = handlers_[std::string(name)];
  if (!versions.emplace(static_cast<std::uint32_t>(version), std::move(handler)).second)
    raise(errc::invalid_argument, "durable engine: there is a handler '" + std::string(name) +
                                      "' of version " + std::to_string(version) + " already");
  if (!open_) return;
  for (const auto& [number, run] : runs_)
    if (run->state == durable::run_state::blocked && run->live == nullptr && run->handler == name)
      resume(*run);
}

const handler_base* engine_core::code_of(const durable_run& run) const {
  const auto versions = handlers_.find(run.handler);
  if (versions == handlers_.end()) return nullptr;
  const auto found = versions->second.find(run.version);
  return found == versions->second.end() ? nullptr : found->second.get();
}

std::uint32_t engine_core::newest_version(std::string_view handler) const {
  const auto versions = handlers_.find(handler);
  return versions == handlers_.end() ? 0 : versions->second.rbegin()->first;
}

// ------------------------------------------------------------------ starting

void engine_core::require_process(const char* what) const {
  if (process_.is_here()) return;
  raise(errc::wrong_loop, std::string(what) + ": the durable engine on '" + setup_.path +
                              "' belongs to the process that made it, and this is a forked "
                              "child; end the child with exec or _exit");
}

void engine_core::require_here(const char* what) const {
  if (current_run != nullptr) refuse_in_run("a durable::engine");
  if (ended_) return;  // in any process
  require_process(what);
  if (current_loop_serial() == host_serial_) return;
  raise(errc::wrong_loop, std::string(what) + ": the durable engine on '" + setup_.path +
                              "' belongs to loop '" + host_name_ + "'");
}

void engine_core::require_open(const char* what) const {
  require_here(what);
  if (broken_) std::rethrow_exception(failure_);
  if (open_) return;
  raise(errc::not_open, std::string(what) + ": the durable engine on '" + setup_.path + "' " +
                            (opened_ || ended_ ? "is closed" : "is not open; await open() first"));
}

durable_run* engine_core::attached(const run_request& request) {
  durable_run* found = nullptr;
  if (!request.id.empty()) {
    const auto known = by_id_.find(request.id);
    if (known != by_id_.end()) found = known->second;
  }
  if (found == nullptr && !request.idempotency.empty()) {
    const auto known = by_idempotency_.find(idempotency_key(request.handler, request.idempotency));
    if (known != by_idempotency_.end()) found = known->second;
  }
  return found;
}

errc engine_core::refuses(const run_request& request, std::string& problem) {
  if (const durable_run* there = attached(request)) {
    if (there->handler == request.handler) return errc{};
    problem = "run '" + there->id + "' is one of handler '" + there->handler + "', not of '" +
              request.handler + "'; give another id";
    return errc::id_in_use;
  }
  if (!request.key.empty()) {
    problem = "handler '" + request.handler + "' is no object's, so it has no key";
    return errc::invalid_argument;
  }
  if (newest_version(request.handler) == 0) {
    problem = "no handler '" + request.handler + "' was added to the durable engine on '" +
              setup_.path + "'";
    return errc::unknown_handler;
  }
  return errc{};
}

engine_core::begun engine_core::begin_run(run_request request) {
  require_open("start");
  std::string problem;
  if (const errc refused = refuses(request, problem); refused != errc{}) raise(refused, problem);
  if (durable_run* there = attached(request)) return {there->id, there->start_lsn};
  require_room();
  const durable_run* made = start_run(request, 0, 0);
  require_running();
  return {made->id, made->start_lsn};
}

std::string engine_core::new_id() {
  for (;;) {
    char text[20];
    std::snprintf(text, sizeof text, "r-%016llx",
                  static_cast<unsigned long long>(host_.env().random()));
    if (!by_id_.contains(text)) return text;
  }
}

durable_run& engine_core::make_run(std::uint64_t number, const start_record& from) {
  auto made = std::make_unique<durable_run>(*this, number);
  made->id = from.id;
  made->handler = from.handler;
  made->version = from.version;
  made->seed = from.seed;
  made->started = from.at;
  made->begins = from.begins;
  made->parent = from.parent;
  made->idempotency = from.idempotency;
  last_number_ = std::max(last_number_, number);
  return *runs_.emplace_hint(runs_.end(), number, std::move(made))->second;
}

void engine_core::add_to_index(durable_run& run) {
  by_id_.emplace(run.id, &run);
  if (!run.idempotency.empty())
    by_idempotency_.emplace(idempotency_key(run.handler, run.idempotency), &run);
}

durable_run* engine_core::start_run(const run_request& request, std::uint64_t parent,
                                    std::uint64_t command) {
  const std::string made_id = request.id.empty() ? new_id() : request.id;
  start_record start;
  start.at = wall_now();
  start.begins =
      request.delay > duration::zero()
          ? wall_time(saturating_add(time_point(start.at.time_since_epoch()), request.delay)
                          .time_since_epoch())
          : start.at;
  start.seed = host_.env().random();
  start.version = newest_version(request.handler);
  start.parent = parent;
  start.parent_command = command;
  start.id = made_id;
  start.handler = request.handler;
  start.key = request.key;
  start.idempotency = request.idempotency;
  start.input = request.input;
  payload_writer payload;
  start.write(payload);
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::run_start);
  head.run = last_number_ + 1;
  journal::appended at{};
  try {
    at = journal_->append(head, payload.view());
  } catch (const payload_error&) {
    throw;
  } catch (...) {
    break_down(std::current_exception());
    return nullptr;
  }
  want_flush();
  durable_run& run = make_run(head.run, start);
  add_to_index(run);
  run.start_place = at.place;
  run.start_lsn = run.depends = at.lsn;
  starting_.push_back(&run);
  resume(run);
  return &run;
}

errc engine_core::start_sent(const run_request& request, std::string& problem) {
  try {
    if (attached(request) == nullptr) (void)start_run(request, 0, 0);
    return errc{};
  } catch (const payload_error& e) {
    problem = e.what();
    return static_cast<errc>(e.code().value());
  }
}

// ------------------------------------------------------------------ completions

std::uint64_t engine_core::record(durable_run& run, const completion& what) {
  payload_writer payload;
  if (what.type == record_type::signal) {
    payload.time(what.at).text(what.name).text(what.answer.text);
  } else if (what.type == record_type::fired) {
    payload.time(what.at);
  } else {
    answer_record{what.at, what.answer.code, what.answer.text}.write(payload);
  }
  return append(run, what.type, static_cast<std::uint16_t>(what.answer.how), what.command,
                payload.view())
      .lsn;
}

void engine_core::hand_over(durable_run& run, completion what) {
  if (run.live == nullptr) return resume(run);
  if (what.type == record_type::answer) {
    const auto waiting = run.live->issued.find(what.command);
    if (waiting != run.live->issued.end()) waiting->second->answered = true;
  }
  run.live->inbox.push_back(std::move(what));
  make_ready(run);
}

std::uint64_t engine_core::deliver_to(durable_run& run, completion&& what) {
  const std::uint64_t lsn = record(run, what);
  hand_over(run, std::move(what));
  return lsn;
}

void engine_core::answer_run(durable_run& run, completion what) {
  try {
    record(run, what);
  } catch (const payload_error& e) {
    what.answer.how = command_answer::kind::error;
    what.answer.code = static_cast<errc>(e.code().value());
    what.answer.text = e.what();
    record(run, what);
  }
  hand_over(run, std::move(what));
}

engine_core::delivered engine_core::resolve(std::string_view id, bool ok, std::string text) {
  require_open(ok ? "resolve" : "reject");
  const std::optional<awakeable_ref> of = parse_awakeable_id(id, secret());
  if (!of)
    raise(errc::unknown_awakeable, "'" + std::string(id.substr(0, 64)) +
                                       "' is no awakeable of the journal '" + setup_.path + "'");
  durable_run* run = find(of->run);
  if (run == nullptr || run->ended() || run->resolved.contains(of->command))
    return {false, journal_->last_lsn()};
  if (stalled_) require_room();
  if (ok) run->require_fits_awakeable(of->command, text);
  completion what{record_type::resolved, of->command, wall_now(), {}, {}};
  what.answer.how = ok ? command_answer::kind::value : command_answer::kind::error;
  what.answer.text = std::move(text);
  const std::uint64_t lsn = deliver_to(*run, std::move(what));
  run->resolved.insert(of->command);
  return {true, lsn};
}

engine_core::delivered engine_core::signal(std::string_view run_id, std::string_view name,
                                           std::string value) {
  require_open("signal");
  const auto found = by_id_.find(run_id);
  if (found == by_id_.end() || found->second->ended()) return {false, journal_->last_lsn()};
  if (stalled_) require_room();
  durable_run& run = *found->second;
  run.require_fits_signal(name, value);
  completion what{record_type::signal, 0, wall_now(), std::string(name), {}};
  what.answer.how = command_answer::kind::value;
  what.answer.text = std::move(value);
  const std::uint64_t lsn = deliver_to(run, std::move(what));
  if (run.live != nullptr) ++run.live->signals[std::string(name)].on_their_way;
  return {true, lsn};
}

bool engine_core::cancel(std::string_view id, std::string_view why) {
  require_open("cancel");
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->ended()) return false;
  durable_run& run = *found->second;
  const bool blocked = run.state == durable::run_state::blocked;
  if (blocked && run.cancelled_blocked) return true;
  if (!blocked || run.resuming) {
    completion what{record_type::cancel, 0, wall_now(), {}, {}};
    what.answer.how = command_answer::kind::cancelled;
    what.answer.text = why;
    deliver_cancel(run, std::move(what));
  }
  // A run that is about to be replayed runs its cleanup, unless it is blocked again.
  if (blocked) run.cancelled_blocked = why;
  if (blocked && run.live == nullptr && !run.resuming) end_blocked(run);
  require_running();
  return true;
}

bool engine_core::waits_to_begin(const durable_run& run) {
  return !run.begun && run.begins > run.started && run.begins > wall_now();
}

void engine_core::deliver_cancel(durable_run& run, completion what) {
  if (run.live == nullptr && !run.resuming && waits_to_begin(run))
    what.answer.code = cancelled_early;
  const bool before = std::exchange(run.cancel_asked, true);
  try {
    deliver_to(run, std::move(what));
  } catch (const payload_error&) {
    run.cancel_asked = before;
    throw;
  }
}

bool cancel_run(engine_core& engine, const std::string& id, std::string_view why) {
  return engine.cancel(id, why);
}

// ------------------------------------------------------------------ inspection

durable_run* engine_core::find(std::uint64_t number) noexcept {
  const auto found = runs_.find(number);
  return found == runs_.end() ? nullptr : found->second.get();
}

durable::run_info engine_core::info_of(const durable_run& run) const {
  durable::run_info info;
  info.id = run.id;
  info.handler = run.handler;
  info.version = static_cast<int>(run.version);
  info.state = run.state;
  info.message = run.message;
  return info;
}

std::optional<durable::run_info> engine_core::get(std::string_view id) const {
  require_open("get");
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || !is_known(*found->second)) return std::nullopt;
  return info_of(*found->second);
}

std::vector<durable::run_info> engine_core::list(const durable::list_options& options) const {
  require_open("list");
  std::vector<durable::run_info> found;
  for (const auto& [number, run] : runs_) {
    if (!is_known(*run)) continue;
    if (options.state && run->state != *options.state) continue;
    if (!options.handler.empty() && run->handler != options.handler) continue;
    found.push_back(info_of(*run));
  }
  return found;
}

subscription<durable::run_event> engine_core::events() {
  require_here("events");
  if (ended_)
    raise(errc::not_open, "events: the durable engine on '" + setup_.path + "' is closed");
  return events_.subscribe({.overflow = overflow::drop_oldest});
}

bool engine_core::is_known(const durable_run& run) const noexcept {
  return journal_ != nullptr && run.start_lsn <= journal_->durable_lsn();
}

void engine_core::emit(const durable_run& run) {
  const in_loop outside(host_);
  if (events_.subscribers() == 0 || !is_known(run)) return;
  (void)events_.try_emit(durable::run_event{run.id, run.state, run.message});
}

// ------------------------------------------------------------------ waiting

bool lsn_wait::try_now() const noexcept {
  return !engine_->running() || engine_->journal_->durable_lsn() >= lsn_;
}
void lsn_wait::arm() noexcept {
  engine_->lsn_waiters_.push_back(*this);
  if (lsn_ > engine_->taken_lsn_) engine_->want_flush();
}
cancel_result lsn_wait::withdraw() noexcept {
  engine_->lsn_waiters_.remove(*this);
  return cancel_result::done;
}
void lsn_wait::describe(dump_line& line) const { line.add("the journal"); }
void lsn_wait::take() const {
  const std::uint64_t last =
      engine_->journal_ == nullptr ? engine_->durable_seen_ : engine_->journal_->durable_lsn();
  if (last >= lsn_) return;
  if (engine_->broken_) std::rethrow_exception(engine_->failure_);
  raise(errc::not_open, "the durable engine was closed before this was on the disk");
}

bool end_wait::try_now() const noexcept { return !engine_->running() || run_->final; }
void end_wait::arm() noexcept { run_->askers.push_back(*this); }
cancel_result end_wait::withdraw() noexcept {
  run_->askers.remove(*this);
  return cancel_result::done;
}
void end_wait::describe(dump_line& line) const { line.add("durable run").add_name(run_->id); }

command_answer end_wait::take() {
  if (error_) std::rethrow_exception(error_);
  if (answer_) return std::move(*answer_);
  if (engine_->broken_) std::rethrow_exception(engine_->failure_);
  if (!engine_->open_) raise(errc::not_open, "the durable engine was closed before the run ended");
  return engine_->late_result(*run_);
}

durable_run& engine_core::require_known(std::string_view id) {
  const auto found = by_id_.find(id);
  if (found != by_id_.end()) return *found->second;
  raise(errc::invalid_argument,
        "run '" + std::string(id) + "' is not in the journal '" + setup_.path + "'");
}

command_answer engine_core::late_result(durable_run& run) {
  std::string payload;
  const record_head head = journal_->read(run.end_place, payload);
  const answer_record read = answer_record::read(payload);
  command_answer how;
  how.how = static_cast<command_answer::kind>(head.flags & 0xffU);
  how.text = read.text;
  return how;  // an error always becomes a terminal_error with its message
}

task<std::string> run_result(std::shared_ptr<engine_core> engine, std::string id) {
  engine->require_open("result");
  durable_run& run = engine->require_known(id);
  const command_answer how = co_await engine->end_of(run);
  if (how.how != command_answer::kind::value) raise_answer(how);
  co_return how.text;
}

}  // namespace weir::detail
