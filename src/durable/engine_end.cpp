// SPDX-License-Identifier: MIT
// How runs end or are blocked, and how that is recorded and reported.
#include "durable/engine_core.hpp"

#include <cstdio>

#include "core/error.hpp"
#include "durable/step_job.hpp"

namespace weir::detail {

namespace {

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

journal::appended engine_core::record_end(durable_run& run) {
  payload_writer payload;
  run.ended_at = wall_now();
  answer_record{run.ended_at, run.outcome->code, run.outcome->text, run.outcome->facts}.write(
      payload);
  return append(run, record_type::run_end, static_cast<std::uint16_t>(run.outcome->how), 0,
                payload.view());
}

journal::appended engine_core::record_shortened_end(durable_run& run) {
  try {
    return record_end(run);
  } catch (const payload_error&) {
    run.outcome->text = shortened(std::move(run.outcome->text));
    return record_end(run);
  }
}

// A result that cannot be written fails the run: its steps are done and must not be repeated.
void engine_core::end_run(durable_run& run) {
  if (run.live->work && run.has_succeeded()) {
    std::string problem = problem_of_sends(*run.live->work);
    if (!problem.empty()) {
      run.block(std::move(problem));
      return stop_blocked(run);
    }
  }
  const std::unique_ptr<turn_work> work = std::move(run.live->work);
  run.outcome = run.take_result();
  --live_;
  journal::appended at{};
  try {
    const bool commits = work && run.outcome->how == command_answer::kind::value;
    at = commits ? record_turn(run, *work) : record_end(run);
  } catch (const error& e) {  // of the disk, or of a send
    const std::string text = shortened("the result of run '" + run.id + "': " + e.what());
    const errc code = errc_of(e);
    run.error = make_error(code, text);
    run.outcome = command_answer{command_answer::kind::error, code, text, {}};
    at = record_end(run);
  }
  (void)note_end(run, at);
}

// The runs that it called are cancelled, but not waited for.
void engine_core::end_blocked(durable_run& run) {
  std::string text("cancelled while it was blocked, so its cleanup did not run");
  if (!run.cancelled_blocked->empty()) text.append(" (").append(*run.cancelled_blocked).append(")");
  text.append("; it was blocked because ").append(run.message);
  run.outcome.emplace();
  run.outcome->how = command_answer::kind::cancelled;
  run.outcome->text = std::move(text);
  if (run.alarm != nullptr) stop_timer(*run.alarm);
  run.alarm.reset();
  if (!note_end(run, record_shortened_end(run))) return;
  std::vector<durable_run*> called;
  for (const auto& [number, other] : runs_)
    if (other->parent == run.number() && !other->ended()) called.push_back(other.get());
  for (durable_run* other : called) cancel_called(*other, 1);
}

bool engine_core::note_end(durable_run& run, journal::appended at) {
  if (at.lsn == never_durable) return false;
  run.end_lsn = at.lsn;
  run.end_place = at.place;
  run.places = {};
  run.resolved = {};
  ending_.push_back(&run);
  if (run.part != nullptr) leave_object(run);
  run.callees.reset();
  const auto callers = std::move(run.callers);
  if (callers == nullptr) return true;
  for (const durable_run::call_link& c : *callers) {
    durable_run* waiting = find(c.run);
    if (waiting == nullptr || waiting->ended()) continue;
    if (waiting->callees != nullptr) waiting->callees->erase({run.number(), c.command});
    if (waiting->live == nullptr || waiting->live->replaying)
      asked_again_.emplace(run.number(), c.run);
    if (waiting->live == nullptr) {
      resume(*waiting);
    } else if (waiting->live->issued.contains(c.command) && !waiting->live->replaying) {
      answer_call(*waiting, c.command, *run.outcome);
    }
  }
  return true;
}

void engine_core::finish_durable_runs() {
  std::erase_if(replaced_, [](const auto& run) { return run->live == nullptr; });
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
    run.state = state_after(run.outcome->how);
    if (run.state != durable::run_state::completed) run.message = run.outcome->text;
    const in_loop outside(host_);
    wake_askers(run);
    run.outcome.reset();
    run.error = nullptr;
    emit(run);
    retire(run);
  }
}

// ------------------------------------------------------------------ blocked runs

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
  if (run.live->jobs > 0) {
    std::vector<core_ref> jobs;
    for (const auto& [key, w] : run.live->issued)
      if (w->job.get() != nullptr) jobs.push_back(w->job);
    for (const core_ref& job : jobs) job_in(job).cancel();
    return;
  }
  run.evict("the run is blocked");
  --live_;
  if (run.successor != nullptr) return leave_to_successor(run);
  if (std::exchange(run.skipped, false)) return resume(run);
  if (run.cancelled_blocked) return end_blocked(run);
  emit_blocked(run);
}

}  // namespace weir::detail
