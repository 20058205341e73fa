// SPDX-License-Identifier: MIT
// How the engine drives runs: resuming, driving, ending, suspending, steps.
#include "durable/engine_core.hpp"

#include <cstdio>

#include "core/cancel_tree.hpp"
#include "core/error_notes.hpp"
#include "durable/step_job.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ work strands

work_strand::work_strand(engine_core& engine, work what, loop& host) noexcept
    : engine_(engine), work_(what), host_(host) {
  top = host.root_scope();
}

void work_strand::wake() noexcept {
  if (!queued) host_.push(*this);
}

bool work_strand::begin_turn() noexcept {
  strand* const self = std::exchange(current, nullptr);
  (engine_.*work_)();
  current = self;
  return false;
}

void work_strand::drop(work_strand* s) noexcept { loop::free(*s); }

namespace {

/// How many turns a recovered run may take to come to rest before the timers of all other runs stop
/// waiting for it.
constexpr int recovery_patience = 16;

/// If the blob of a long message cannot be written, the log keeps this many bytes of the message.
constexpr std::size_t short_text_bytes = 4096;

std::string shortened(std::string text) {
  if (text.size() <= short_text_bytes) return text;
  std::size_t end = short_text_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // UTF-8
  text.resize(end);
  return text.append("...");
}

}  // namespace

// ------------------------------------------------------------------ resuming

void engine_core::resume(durable_run& run) {
  if (run.live != nullptr || run.resuming || run.ended() || !open_) return;
  if (!run.cancel_asked && waits_to_begin(run)) {
    if (run.alarm != nullptr) return;
    return set_alarm(run, ticks_of(run.begins), run.start_place);
  }
  if (run.alarm != nullptr) {
    stop_timer(*run.alarm);
    run.alarm.reset();
  }
  run.resuming = true;
  resuming_.push_back(&run);
  pump_->wake();
}

// The run is not in memory: the alarm resumes it.
void engine_core::set_alarm(durable_run& run, std::uint64_t when, std::uint64_t order) {
  run.alarm = std::make_unique<run_timer>();
  run.alarm->run = &run;
  run.alarm->when = when;
  run.alarm->order = order;
  start_timer(*run.alarm);
}

void engine_core::begin_resumed() {
  while (replaying_ < setup_.max_resume && !resuming_.empty()) {
    durable_run& run = *resuming_.front();
    resuming_.pop_front();
    ++replaying_;
    const handler_base* code = code_of(run);
    try {
      if (code == nullptr) {
        block_run(run, "no handler '" + run.handler + "' of version " +
                           std::to_string(run.version) + " was added");
        continue;
      }
      std::string input;
      run_history history = load(run, input);
      run.state = durable::run_state::running;
      run.message.clear();
      ++live_;
      run.begin(*code, std::move(input), std::move(history));
      emit(run);
      make_ready(run);
    } catch (...) {
      std::string why = message_of(std::current_exception());
      if (run.live != nullptr) {  // its input cannot be decoded
        run.discard();
        --live_;
        why.append("; handler '").append(run.handler).append("' was added at ");
        why.append(text_of(code->added)).append(old_code);
      }
      block_run(run, std::move(why));
    }
  }
}

run_history engine_core::load(durable_run& run, std::string& input) {
  run_history past;
  std::string payload;
  journal_->read(run.start_place, payload);
  input = start_record::read(payload).input;
  for (const record_place place : run.places) {
    const record_head head = journal_->read(place, payload);
    const std::uint64_t key = command_key(head.fiber, head.index);
    const auto type = static_cast<record_type>(head.type);
    if (type == record_type::command) {
      const command_record c = command_record::read(payload);
      past.commands.insert_or_assign(
          key, run_history::command{static_cast<command_kind>(head.flags & 0xffU),
                                    std::string(c.name), c.digest, c.number, place});
    } else if (type == record_type::attempt) {
      run_history::step_past& step = past.steps[key];
      ++step.failed;
      step.open = false;
    } else if (type == record_type::intent) {
      past.steps[key].open = true;
    } else if (type == record_type::hurried) {
      payload_reader in(payload);
      const std::uint64_t number = in.number();
      past.hurried[number] = in.number();
    } else if (is_completion(type)) {
      completion what{type, key, {}, {}, {}};
      what.answer.how = static_cast<command_answer::kind>(head.flags & 0xffU);
      payload_reader in(payload);
      if (type == record_type::signal) {
        what.at = in.time();
        what.name = in.text();
        what.answer.text = in.text();
      } else if (type == record_type::fired) {
        what.at = in.time();
      } else {
        const answer_record read = answer_record::read(payload);
        what.at = read.at;
        what.answer.code = read.code;
        what.answer.text = read.text;
      }
      past.completions.push_back(std::move(what));
    }
  }
  return past;
}

// ------------------------------------------------------------------ driving

void engine_core::make_ready(durable_run& run) {
  if (run.listed) return;
  run.listed = true;
  unpark(run);
  ready_.push_back(&run);
  pump_->wake();
}

void engine_core::work_on_runs() {
  if (!running() || steps_ == nullptr || steps_->cancel_requested()) return;
  const in_loop outside(host_);
  begin_resumed();
  if (!ready_.empty()) {
    durable_run& run = *ready_.front();
    ready_.pop_front();
    run.listed = false;
    if (run.live != nullptr && run.state != durable::run_state::blocked) drive(run);
  }
  const bool can_resume = replaying_ < setup_.max_resume && !resuming_.empty();
  if (!ready_.empty() || can_resume) pump_->wake();
}

void engine_core::drive(durable_run& run) {
  durable_run::progress how = durable_run::progress::blocked;
  try {
    how = run.drive();
  } catch (...) {  // a disk error about another run
    if (!running()) return;
    run.block(message_of(std::current_exception()));
  }
  const bool blocked = how == durable_run::progress::blocked;
  if (run.resuming && (!run.live->replaying || blocked)) replayed(run);
  if (!blocked && !run.resuming) run.cancelled_blocked.reset();
  switch (how) {
    case durable_run::progress::more:
      if (run.recovering && ++run.restless_turns == recovery_patience) has_recovered(run);
      return make_ready(run);
    case durable_run::progress::parked:
      return park(run);
    case durable_run::progress::ended:
      return end_run(run);
    case durable_run::progress::blocked:
      return stop_blocked(run);
  }
}

void engine_core::replayed(durable_run& run) {
  run.resuming = false;
  --replaying_;
  has_recovered(run);
}

void engine_core::has_recovered(durable_run& run) {
  if (std::exchange(run.recovering, false) && --to_recover_ == 0) arm_alarm();
}

journal::appended engine_core::record_end(durable_run& run) {
  payload_writer payload;
  answer_record{wall_now(), run.outcome->code, run.outcome->text}.write(payload);
  return append(run, record_type::run_end, static_cast<std::uint16_t>(run.outcome->how), 0,
                payload.view());
}

// A result that cannot be written fails the run: its steps are done and must not be repeated.
void engine_core::end_run(durable_run& run) {
  run.outcome = run.take_result();
  --live_;
  journal::appended at{};
  try {
    at = record_end(run);
  } catch (const payload_error& e) {
    const std::string text = shortened("the result of run '" + run.id + "': " + e.what());
    const auto code = static_cast<errc>(e.code().value());
    run.error = std::make_exception_ptr(error(code, text));
    run.outcome = command_answer{command_answer::kind::error, code, text};
    at = record_end(run);
  }
  (void)note_end(run, at);
}

// The runs that it called are cancelled, but not waited for. A message that cannot be written is
// shortened.
void engine_core::end_blocked(durable_run& run) {
  std::string text("cancelled while it was blocked, so its cleanup did not run");
  if (!run.cancelled_blocked->empty()) text.append(" (").append(*run.cancelled_blocked).append(")");
  text.append("; it was blocked because ").append(run.message);
  run.outcome.emplace();
  run.outcome->how = command_answer::kind::cancelled;
  run.outcome->text = std::move(text);
  if (run.alarm != nullptr) stop_timer(*run.alarm);
  run.alarm.reset();
  journal::appended at{};
  try {
    at = record_end(run);
  } catch (const payload_error&) {
    run.outcome->text = shortened(std::move(run.outcome->text));
    at = record_end(run);
  }
  if (!note_end(run, at)) return;
  std::vector<durable_run*> called;
  for (const auto& [number, other] : runs_)
    if (other->parent == run.number() && !other->ended()) called.push_back(other.get());
  for (durable_run* other : called) {
    if (std::exchange(other->caller_asked, true)) continue;
    completion what{record_type::cancel, 1, wall_now(), {}, {}};
    what.answer.how = command_answer::kind::cancelled;
    what.answer.text = "the run that called it was cancelled";
    deliver_cancel(*other, std::move(what));
  }
}

bool engine_core::note_end(durable_run& run, journal::appended at) {
  if (at.lsn == never_durable) return false;
  run.end_lsn = at.lsn;
  run.end_place = at.place;
  run.places = {};
  run.resolved = {};
  ending_.push_back(&run);
  run.callees.reset();
  const auto callers = std::move(run.callers);
  if (callers == nullptr) return true;
  for (const durable_run::call_link& c : *callers) {
    durable_run* waiting = find(c.run);
    if (waiting == nullptr || waiting->ended()) continue;
    if (waiting->callees != nullptr) waiting->callees->erase({run.number(), c.command});
    if (waiting->live == nullptr) {
      resume(*waiting);
    } else if (waiting->live->issued.contains(c.command) && !waiting->live->replaying) {
      answer_call(*waiting, c.command, *run.outcome);
    }
  }
  return true;
}

void engine_core::finish_durable_runs() {
  const std::uint64_t durable_now = journal_->durable_lsn();
  while (!starting_.empty() && starting_.front()->start_lsn <= durable_now) {
    const durable_run& run = *starting_.front();
    starting_.pop_front();
    emit(run);
  }
  while (!ending_.empty() && ending_.front()->end_lsn <= durable_now) {
    durable_run& run = *ending_.front();
    ending_.pop_front();
    run.final = true;
    switch (run.outcome->how) {
      case command_answer::kind::value:
        run.state = durable::run_state::completed;
        break;
      case command_answer::kind::cancelled:
        run.state = durable::run_state::cancelled;
        run.message = run.outcome->text;
        break;
      default:
        run.state = durable::run_state::failed;
        run.message = run.outcome->text;
    }
    const in_loop outside(host_);
    wake_askers(run);
    run.outcome.reset();
    run.error = nullptr;
    emit(run);
  }
}

// ------------------------------------------------------------------ blocked, parked, suspended

void engine_core::block_run(durable_run& run, std::string why) {
  run.state = durable::run_state::blocked;
  run.message = std::move(why);
  if (run.resuming) replayed(run);
  if (run.cancelled_blocked) return end_blocked(run);
  emit_blocked(run);
}

void engine_core::emit_blocked(const durable_run& run) {
  emit(run);
  host_.emit("run_blocked", run.id);
  if (!setup_.report_blocked) return;
  const std::string line = "weir: durable run '" + run.id + "' of handler '" + run.handler +
                           "' is blocked: " + run.message + "\n";
  std::fputs(line.c_str(), stderr);
}

// Steps refer to the run's frames, so they end first.
void engine_core::stop_blocked(durable_run& run) {
  if (!run.live->jobs.empty()) {
    const auto jobs = run.live->jobs;
    for (const auto& [key, job] : jobs) job->cancel();
    return;
  }
  run.evict("the run is blocked");
  --live_;
  if (run.cancelled_blocked) return end_blocked(run);
  emit_blocked(run);
}

void engine_core::step_lost(durable_run& run) noexcept {
  if (run.state == durable::run_state::blocked && run.live->jobs.empty()) stop_blocked(run);
}

// A run that got a completion while it ran is already ready; a run with steps under way is made
// ready by their answers. Neither is suspended.
void engine_core::park(durable_run& run) {
  unpark(run);
  if (run.listed || !run.may_be_evicted()) return;
  run.parked_at = parked_.insert(parked_.end(), &run);
  if (live_ > setup_.max_live) suspend_some();
}

void engine_core::unpark(durable_run& run) noexcept {
  if (!run.parked_at) return;
  parked_.erase(*run.parked_at);
  run.parked_at.reset();
}

// Suspends the runs that have been parked longest; their next timer or completion resumes them.
void engine_core::suspend_some() {
  for (auto at = parked_.begin(); at != parked_.end() && live_ > setup_.max_live;) {
    durable_run& run = **at;
    ++at;
    ++list_visits;
    const run_timer* first = nullptr;
    for (const auto& [key, t] : run.live->timers)
      if (first == nullptr || by_time()(t.get(), first)) first = t.get();
    const bool sleeps = first != nullptr;
    const std::uint64_t when = sleeps ? first->when : 0;
    const std::uint64_t order = sleeps ? first->order : 0;
    unpark(run);
    // A run whose timer is due would be resumed at once: its timer makes it ready.
    if (sleeps && when <= ticks_of(wall_now())) continue;
    run.evict("suspended to save memory");
    --live_;
    run.state = durable::run_state::suspended;
    if (sleeps) set_alarm(run, when, order);
    emit(run);
  }
}

// ------------------------------------------------------------------ steps

void engine_core::start_step(durable_run& run, command_wait& w,
                             const run_history::step_past& past) {
  if (past.open)
    return refuse(run, w, errc::outcome_unknown,
                  "step_once '" + w.setup().name + "' of run '" + run.id +
                      "' was under way when the process died; whether it was done is not known");
  const in_loop outside(host_);
  auto job = std::make_shared<step_job>(*this, run, w, past);
  run.live->jobs.emplace(w.command, job);
  if (journal_->durable_lsn() >= job->depends()) return job->start(*steps_);
  waiting_steps_.push_back(std::move(job));
  if (waiting_steps_.back()->depends() > taken_lsn_) want_flush();
}

// In the order in which they were issued.
void engine_core::start_waiting_steps() noexcept {
  if (steps_ == nullptr || steps_->cancel_requested()) return;
  const std::uint64_t durable_now = journal_->durable_lsn();
  list_visits += waiting_steps_.size();
  for (const std::shared_ptr<step_job>& job : waiting_steps_)
    if (job->depends() <= durable_now) job->start(*steps_);
  std::erase_if(waiting_steps_, [&](const auto& job) { return job->depends() <= durable_now; });
}

}  // namespace weir::detail
