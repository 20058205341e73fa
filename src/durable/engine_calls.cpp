// SPDX-License-Identifier: MIT
// Runs that call runs; commands that are refused or given up.
#include "durable/engine_core.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/error_notes.hpp"
#include "durable/step_job.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

// Answers the command with an error, which is recorded.
void engine_core::refuse(durable_run& run, const command_wait& w, errc code, std::string why) {
  command_answer no;
  no.how = command_answer::kind::error;
  no.code = code;
  no.text = std::move(why);
  run.step_ended(w.command, std::move(no));
}

run_request engine_core::request_of(const durable_run& run, const command_wait& w) {
  run_request request = *w.setup().request;
  if (request.id.empty() && request.idempotency.empty()) request.id = run.child_id(w.command);
  return request;
}

template <class F>
void engine_core::answer_with(durable_run& run, const command_wait& w, const std::string& callee,
                              F result) {
  try {
    answer_call(run, w.command, result());
  } catch (...) {
    std::string why("the result of the called run '");
    why.append(callee).append("' cannot be read at ").append(text_of(w.setup().site));
    run.block_on(w, why.append(": ").append(message_of(std::current_exception())));
  }
}

void engine_core::start_call(durable_run& run, command_wait& w) {
  const run_request request = request_of(run, w);
  std::string problem;
  const errc refused = refuses(request, problem);
  if (refused != errc{}) return refuse(run, w, refused, std::move(problem));
  const known_run there = attached(request);
  if (there.ended) {
    answer_with(run, w, there.id, [&] { return late_result(there.ended->end); });
    if (asked_again_.erase({there.ended->number, run.number()}) > 0) release_held(run.number());
    return;
  }
  durable_run* callee = there.run;
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
    return refuse(run, w, errc_of(e), e.what());
  }
  if (callee == nullptr) return;
  if (!callee->ended()) return note_caller(*callee, run, w.command);
  const auto end = callee->outcome;
  answer_with(run, w, callee->id, [&] { return end ? *end : late_result(callee->end_place); });
}

void engine_core::answer_call(durable_run& run, std::uint64_t command, const command_answer& how) {
  completion what{record_type::answer, command, wall_now(), {}, how};
  what.answer.code = errc::terminal;
  answer_run(run, std::move(what));
}

void engine_core::note_caller(durable_run& callee, durable_run& run, std::uint64_t command) {
  ++list_visits;
  const auto add = [command](durable_run::call_links& to, const durable_run& other) {
    if (to == nullptr) to = std::make_unique<std::set<durable_run::call_link>>();
    to->insert({other.number(), command});
  };
  add(callee.callers, run);
  add(run.callees, callee);
}

void engine_core::forget_caller(durable_run& callee, durable_run& run, std::uint64_t command) {
  if (callee.callers != nullptr) callee.callers->erase({run.number(), command});
  if (run.callees != nullptr) run.callees->erase({callee.number(), command});
}

// ------------------------------------------------------------------ call cycles

namespace {

/// Walks from one run to all that are connected with it by calls in one direction, a link at a
/// time.
class call_walk {
 public:
  call_walk(engine_core& engine, const durable_run& from,
            durable_run::call_links durable_run::* way)
      : engine_(engine), way_(way), came_from_{{&from, nullptr}}, todo_{&from} {}

  enum class step { on, end, found };
  step next(const durable_run& wanted) {
    while (at_ == end_) {
      if (todo_.empty()) return step::end;
      here_ = todo_.front();
      todo_.pop_front();
      if (here_->*way_ == nullptr) continue;
      at_ = (here_->*way_)->begin();
      end_ = (here_->*way_)->end();
    }
    ++list_visits;
    const durable_run* other = engine_.find(at_->run);
    ++at_;
    if (other == nullptr || other->ended()) return step::on;
    if (came_from_.emplace(other, here_).second) todo_.push_back(other);
    return other == &wanted ? step::found : step::on;
  }
  /// The path to `at`, with `at` first.
  std::vector<const durable_run*> way_to(const durable_run& at) const {
    std::vector<const durable_run*> way;
    for (const durable_run* r = &at; r != nullptr; r = came_from_.at(r)) way.push_back(r);
    return way;
  }

 private:
  engine_core& engine_;
  durable_run::call_links durable_run::* way_;
  std::map<const durable_run*, const durable_run*> came_from_;
  std::deque<const durable_run*> todo_;
  const durable_run* here_ = nullptr;
  std::set<durable_run::call_link>::const_iterator at_{};
  std::set<durable_run::call_link>::const_iterator end_{};
};

}  // namespace

// Searches alternately from the run back over its callers and from the callee forward over its
// callees: if one side has many links, the search costs no more than the other side has.
bool engine_core::closes_circle(const durable_run& run, const durable_run& callee,
                                std::string& circle) {
  if (run.callers == nullptr || callee.callees == nullptr || callee.ended()) return false;
  call_walk back(*this, run, &durable_run::callers);
  call_walk on(*this, callee, &durable_run::callees);
  std::vector<const durable_run*> way;
  while (way.empty()) {
    const call_walk::step b = back.next(callee);
    if (b == call_walk::step::end) return false;
    if (b == call_walk::step::found) {
      way = back.way_to(callee);
      break;
    }
    const call_walk::step o = on.next(run);
    if (o == call_walk::step::end) return false;
    if (o != call_walk::step::found) continue;
    way = on.way_to(run);
    std::reverse(way.begin(), way.end());
  }
  for (const durable_run* at : way)
    circle.append("'").append(at->id).append(at == &run ? "'" : "' waits for ");
  return true;
}

void engine_core::give_up(durable_run& run, command_wait& w) {
  command_answer gone;
  gone.how = command_answer::kind::cancelled;
  gone.text = "cancelled";
  if (w.answered) return;
  if (w.setup().kind != command_kind::call) {
    const auto job = run.live->jobs.find(w.command);
    if (job == run.live->jobs.end()) return run.step_ended(w.command, std::move(gone));
    const in_loop outside(host_);
    return job->second->cancel();
  }
  durable_run* callee = attached(request_of(run, w)).run;
  if (callee == nullptr || callee->ended() || callee->parent != run.number()) {
    if (callee != nullptr) forget_caller(*callee, run, w.command);
    return run.step_ended(w.command, std::move(gone));
  }
  note_caller(*callee, run, w.command);
  cancel_called(*callee, w.command);
}

void engine_core::cancel_called(durable_run& callee, std::uint64_t command) {
  if (std::exchange(callee.caller_asked, true)) return;  // already asked, perhaps before a restart
  completion what{record_type::cancel, command, wall_now(), {}, {}};
  what.answer.how = command_answer::kind::cancelled;
  what.answer.text = "the run that called it was cancelled";
  deliver_cancel(callee, std::move(what));
}

}  // namespace weir::detail
