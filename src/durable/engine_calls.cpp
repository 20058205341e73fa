// SPDX-License-Identifier: MIT
// Runs that call runs, and what becomes of a command that is refused or given up.
#include "durable/engine_core.hpp"

#include "core/error_notes.hpp"
#include "durable/step_job.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

// The command is answered with an error, which is recorded.
void engine_core::refuse(durable_run& run, const command_wait& w, errc code, std::string why) {
  command_answer no;
  no.how = command_answer::sort::error;
  no.code = code;
  no.text = std::move(why);
  run.step_ended(w.command, std::move(no));
}

run_request engine_core::request_of(const durable_run& run, const command_wait& w) {
  run_request request = *w.setup().request;
  if (request.id.empty() && request.idempotency.empty()) request.id = run.child_id(w.command);
  return request;
}

void engine_core::start_call(durable_run& run, command_wait& w) {
  const run_request request = request_of(run, w);
  std::string problem;
  const errc refused = refuses(request, problem);
  if (refused != errc{}) return refuse(run, w, refused, std::move(problem));
  durable_run* callee = attached(request);
  std::string circle;
  if (callee == &run) {
    return refuse(run, w, errc::would_deadlock,
                  "run '" + run.id + "' calls itself by its own id, and would wait for itself");
  }
  if (callee != nullptr && closes_circle(run, *callee, circle)) {
    return refuse(
        run, w, errc::would_deadlock,
        "run '" + run.id + "' calls run '" + callee->id + "' and would wait for itself: " + circle);
  }
  try {
    if (callee == nullptr) callee = start_run(request, run.number(), w.command);
  } catch (const payload_error& e) {
    return refuse(run, w, static_cast<errc>(e.code().value()), e.what());
  }
  if (callee == nullptr) return;
  if (!callee->ended()) return note_caller(*callee, run, w.command);
  try {
    answer_call(run, w.command, callee->outcome ? *callee->outcome : late_result(*callee));
  } catch (...) {
    std::string why("the result of the called run '");
    why.append(callee->id).append("' cannot be read at ").append(text_of(w.setup().site));
    run.block(why.append(": ").append(message_of(std::current_exception())));
  }
}

void engine_core::answer_call(durable_run& run, std::uint64_t command, const command_answer& how) {
  completion what{record_type::answer, command, wall_now(), {}, how};
  what.answer.code = errc::terminal;
  answer_run(run, std::move(what));
}

void engine_core::note_caller(durable_run& callee, const durable_run& run, std::uint64_t command) {
  ++list_visits;
  if (callee.callers == nullptr) callee.callers = std::make_unique<std::set<durable_run::caller>>();
  callee.callers->insert({run.number(), command});
}

// From the run back to those that wait for it; usually there are none, or one.
bool engine_core::closes_circle(const durable_run& run, const durable_run& callee,
                                std::string& circle) {
  std::map<const durable_run*, const durable_run*> waits_for{{&run, nullptr}};
  std::deque<const durable_run*> todo{&run};
  while (!todo.empty() && !waits_for.contains(&callee)) {
    const durable_run& at = *todo.front();
    todo.pop_front();
    if (at.callers == nullptr) continue;
    for (const durable_run::caller& c : *at.callers) {
      const durable_run* waiting = find(c.run);
      if (waiting == nullptr || waiting->ended()) continue;
      if (waits_for.emplace(waiting, &at).second) todo.push_back(waiting);
    }
  }
  if (!waits_for.contains(&callee)) return false;
  for (const durable_run* at = &callee; at != nullptr; at = waits_for.at(at))
    circle.append("'").append(at->id).append(at == &run ? "'" : "' waits for ");
  return true;
}

void engine_core::give_up(durable_run& run, command_wait& w) {
  command_answer gone;
  gone.how = command_answer::sort::cancelled;
  gone.text = "cancelled";
  if (w.answered) return;
  if (w.setup().kind != command_kind::call) {
    const auto job = run.live->jobs.find(w.command);
    if (job == run.live->jobs.end()) return run.step_ended(w.command, std::move(gone));
    const in_loop outside(host_);
    return job->second->cancel();
  }
  durable_run* callee = attached(request_of(run, w));
  if (callee == nullptr || callee->ended() || callee->parent != run.number()) {
    if (callee != nullptr && callee->callers != nullptr)
      callee->callers->erase({run.number(), w.command});
    return run.step_ended(w.command, std::move(gone));
  }
  note_caller(*callee, run, w.command);
  if (std::exchange(callee->caller_asked, true)) return;  // in an earlier life, too
  completion what{record_type::cancel, w.command, wall_now(), {}, {}};
  what.answer.how = command_answer::sort::cancelled;
  what.answer.text = "the run that called it was cancelled";
  cancel_told(*callee, std::move(what));
}

}  // namespace weir::detail
