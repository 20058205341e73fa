// SPDX-License-Identifier: MIT
// How runs end or are blocked, and how that is recorded and reported.
#include "durable/engine_core.hpp"

#include <array>
#include <cstdio>

#include "core/error.hpp"
#include "durable/json_text.hpp"
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

/// Ids and messages come from outside: they must not move the cursor of a terminal.
std::string without_controls(std::string_view text) {
  std::string safe;
  std::array<char, 6> room{};
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      safe.append(c == 0x7f ? "\\u007f" : escaped(c, room));
    } else {
      safe.push_back(c);
    }
  }
  return safe;
}

}  // namespace

journal::appended engine_core::record_end(durable_run& run) {
  payload_writer payload;
  run.end_part->at = wall_now();
  const command_answer& how = *run.end_part->outcome;
  answer_record{run.end_part->at, how.code, how.text, how.facts}.write(payload);
  return append(run, record_type::run_end, static_cast<std::uint16_t>(how.how), 0, payload.view());
}

journal::appended engine_core::record_shortened_end(durable_run& run) {
  try {
    return record_end(run);
  } catch (const payload_error&) {
    std::string& text = run.end_part->outcome->text;
    text = shortened(std::move(text));
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
  command_answer result = run.take_result();
  run_end& end = run.need_end();
  end.outcome = std::move(result);
  --live_;
  journal::appended at{};
  try {
    const bool commits = work && end.outcome->how == command_answer::kind::value;
    at = commits ? record_turn(run, *work) : record_end(run);
  } catch (const error& e) {  // of the disk, or of a send
    const std::string text = shortened("the result of run '" + run.id.str() + "': " + e.what());
    const errc code = errc_of(e);
    end.error = make_error(code, text);
    end.outcome = command_answer{command_answer::kind::error, code, text, {}};
    at = record_end(run);
  }
  (void)note_end(run, at);
}

// The runs that it called are cancelled, but not waited for.
void engine_core::end_blocked(durable_run& run) {
  std::string text("cancelled while it was blocked, so its cleanup did not run");
  const std::string& why = *run.rare().cancelled_blocked;
  if (!why.empty()) text.append(" (").append(why).append(")");
  text.append("; it was blocked because ").append(run.message());
  command_answer& how = run.need_end().outcome.emplace();
  how.how = command_answer::kind::cancelled;
  how.text = std::move(text);
  stop_timer(run.alarm);
  if (!note_end(run, record_shortened_end(run))) return;
  std::vector<durable_run*> called;
  for (auto& [number, other] : runs_)
    if (other.parent == run.number() && !other.ended()) called.push_back(&other);
  for (durable_run* other : called) cancel_called(*other, 1);
}

bool engine_core::note_end(durable_run& run, journal::appended at) {
  if (at.lsn == never_durable) return false;
  run.end_part->lsn = at.lsn;
  run.end_part->place = at.place;
  run.places.clear();
  if (!run.rare().resolved.empty()) run.need_rare().resolved = {};
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
      answer_call(*waiting, c.command, *run.end_part->outcome);
    }
  }
  return true;
}

void engine_core::finish_durable_runs() {
  std::erase_if(replaced_, [](const auto& run) { return run.mapped().live == nullptr; });
  const std::uint64_t durable_now = journal_->durable_lsn();
  while (!starting_.empty() && starting_.front()->start_lsn <= durable_now) {
    const durable_run& run = *starting_.front();
    starting_.pop_front();
    emit(run);
  }
  while (!ending_.empty() && ending_.front()->end_lsn() <= durable_now) {
    durable_run& run = *ending_.front();
    ending_.pop_front();
    run.final = true;
    run.state = state_after(run.end_part->outcome->how);
    if (run.state != durable::run_state::completed) run.set_message(run.end_part->outcome->text);
    const in_loop outside(host_);
    wake_askers(run);
    run.end_part->outcome.reset();
    run.end_part->error = nullptr;
    emit(run);
    retire(run);
  }
}

// ------------------------------------------------------------------ blocked runs

void engine_core::block_run(durable_run& run, std::string why) {
  run.state = durable::run_state::blocked;
  run.set_message(why);
  if (run.resuming) replayed(run);
  if (run.rare().cancelled_blocked) return end_blocked(run);
  emit_blocked(run);
}

// The newest record that is not from outside decides: a blocked run issues no commands.
std::string engine_core::recorded_block(const durable_run& run) {
  std::vector<record_place> places;
  run.places.for_each([&](record_place place) { places.push_back(place); });
  std::string payload;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const record_head head = journal_->read(*place, payload);
    const auto type = static_cast<record_type>(head.type);
    if (type == record_type::blocked)
      return blocked_record::is_block(head.flags) ? std::string(blocked_record::read(payload).why)
                                                  : std::string();
    if (type == record_type::command) break;
  }
  return {};
}

// An engine without handlers does not run the program, so it says nothing about it. A run that is
// blocked for the same reason at every open is recorded once.
void engine_core::note_blocked(durable_run& run) {
  if (!running() || handlers_.empty()) return;
  const std::string why = shortened(std::string(run.message()));
  std::string known;
  try {
    known = recorded_block(run);
  } catch (const error&) {
    known.clear();  // its records cannot be read, which may be why it is blocked
  }
  if (known == why) return;
  payload_writer payload;
  blocked_record{wall_now(), why}.write(payload);
  append(run, record_type::blocked, blocked_record::blocks, 0, payload.view());
}

void engine_core::note_unblocked(durable_run& run) {
  payload_writer payload;
  blocked_record{wall_now(), {}}.write(payload);
  append(run, record_type::blocked, blocked_record::ends, 0, payload.view());
}

void engine_core::emit_blocked(durable_run& run) {
  note_blocked(run);
  emit(run);
  host_.emit("run_blocked", run.id);
  if (!setup_.report_blocked) return;
  const std::string line = "weir: durable run '" + run.id.str() + "' of handler '" + run.handler() +
                           "' is blocked: " + std::string(run.message());
  std::fputs(without_controls(line).append("\n").c_str(), stderr);
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
  if (run.rare().successor != nullptr) return leave_to_successor(run);
  if (std::exchange(run.skipped, false)) return resume(run);
  if (run.rare().cancelled_blocked) return end_blocked(run);
  emit_blocked(run);
}

}  // namespace weir::detail
