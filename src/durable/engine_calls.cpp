// SPDX-License-Identifier: MIT
// Runs that call runs; commands that are refused or given up.
#include "durable/engine_core.hpp"

#include <algorithm>
#include <iterator>

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
    return refuse(
        run, w, errc::would_deadlock,
        "run '" + run.id.str() + "' calls itself by its own id, and would wait for itself");
  }
  if (callee != nullptr ? closes_circle(run, *callee, circle)
                        : closes_circle(run, request, circle)) {
    const std::string called = callee != nullptr ? callee->id.str() : request.id;
    return refuse(run, w, errc::would_deadlock,
                  "run '" + run.id.str() + "' calls run '" + called +
                      "' and would wait for itself: " + circle);
  }
  try {
    if (callee == nullptr) callee = start_run(request, run.number(), w.command);
  } catch (const payload_error& e) {
    return refuse(run, w, errc_of(e), e.what());
  }
  if (callee == nullptr) return;
  if (!callee->ended()) return note_caller(*callee, run, w.command);
  const std::optional<command_answer> how = callee->end_part->outcome;
  answer_with(run, w, callee->id.str(),
              [&] { return how ? *how : late_result(callee->end_part->place); });
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

/// What a run waits for, directly, or what waits for it: by calls, and for the turn of a key. Of
/// the turns of a key the first one has begun; all others wait for it, and for nothing else.
enum class direction { to_waiters, to_awaited };

/// Visits the neighbours of one run in a direction, one at a time.
class neighbours {
 public:
  neighbours() = default;
  neighbours(engine_core& engine, const durable_run& of, direction way) : engine_(&engine) {
    const durable_run::call_links& links = way == direction::to_waiters ? of.callers : of.callees;
    if (links != nullptr) {
      link_ = links->begin();
      links_end_ = links->end();
    }
    if (!of.takes_turns() || !of.part->joined) return;
    const auto& inbox = of.part->of->inbox;
    turn_ = inbox.begin();
    turns_end_ = inbox.end();
    const bool first = of.has_turn();
    if (way == direction::to_waiters) {
      turn_ = first ? std::next(turn_) : turns_end_;
    } else {
      turns_end_ = first ? turn_ : std::next(turn_);
    }
  }
  bool at_end() const { return link_ == links_end_ && turn_ == turns_end_; }
  const durable_run* next() {
    if (link_ != links_end_) return engine_->find((link_++)->run);
    return (turn_++)->second;
  }

 private:
  engine_core* engine_ = nullptr;
  std::set<durable_run::call_link>::const_iterator link_{};
  std::set<durable_run::call_link>::const_iterator links_end_{};
  std::map<inbox_place, durable_run*>::const_iterator turn_{};
  std::map<inbox_place, durable_run*>::const_iterator turns_end_{};
};

/// Walks from one run to all that are connected with it in one direction, a link at a time.
class wait_walk {
 public:
  wait_walk(engine_core& engine, const durable_run& from, direction way)
      : engine_(engine), way_(way), came_from_{{&from, nullptr}}, todo_{&from} {}

  enum class step { on, end, found };
  step next(const durable_run& wanted) {
    while (at_.at_end()) {
      if (todo_.empty()) return step::end;
      here_ = todo_.front();
      todo_.pop_front();
      at_ = neighbours(engine_, *here_, way_);
    }
    ++list_visits;
    const durable_run* other = at_.next();
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
  direction way_;
  std::map<const durable_run*, const durable_run*> came_from_;
  std::deque<const durable_run*> todo_;
  const durable_run* here_ = nullptr;
  neighbours at_;
};

/// "waits for", or "waits for its turn of key 'k1' of object 'cart' behind".
std::string wait_text(const durable_run& of) {
  if (!of.takes_turns() || of.has_turn()) return "waits for";
  return "waits for its turn of " + text_of(*of.part->of) + " behind";
}

}  // namespace

// Searches alternately from the run back over its waiters and from the callee forward over what it
// waits for: if one side has many links, the search costs no more than the other side has.
bool engine_core::closes_circle(const durable_run& run, const durable_run& callee,
                                std::string& circle) {
  if (callee.ended() || neighbours(*this, run, direction::to_waiters).at_end() ||
      neighbours(*this, callee, direction::to_awaited).at_end())
    return false;
  wait_walk back(*this, run, direction::to_waiters);
  wait_walk on(*this, callee, direction::to_awaited);
  std::vector<const durable_run*> way;
  while (way.empty()) {
    const wait_walk::step b = back.next(callee);
    if (b == wait_walk::step::end) return false;
    if (b == wait_walk::step::found) {
      way = back.way_to(callee);
      break;
    }
    const wait_walk::step o = on.next(run);
    if (o == wait_walk::step::end) return false;
    if (o != wait_walk::step::found) continue;
    way = on.way_to(run);
    std::reverse(way.begin(), way.end());
  }
  for (const durable_run* at : way) {
    circle.append("'").append(at->id).append("'");
    if (at != &run) circle.append(" ").append(wait_text(*at)).append(" ");
  }
  return true;
}

bool engine_core::closes_circle(const durable_run& run, const run_request& request,
                                std::string& circle) {
  if (newest_code(request.handler)->kind != handler_kind::exclusive) return false;
  const durable_object* object = objects_.find(object_of_handler(request.handler), request.key);
  if (object == nullptr || object->inbox.empty()) return false;
  const durable_run& first = *object->inbox.begin()->second;
  std::string rest = "'" + run.id.str() + "'";
  if (&first != &run) {
    rest.clear();
    if (!closes_circle(run, first, rest)) return false;
  }
  circle.append("'").append(request.id).append("' waits for its turn of ");
  circle.append(text_of(*object)).append(" behind ").append(rest);
  return true;
}

void engine_core::give_up(durable_run& run, command_wait& w) {
  command_answer gone;
  gone.how = command_answer::kind::cancelled;
  gone.text = "cancelled";
  if (w.answered) return;
  if (w.setup().kind != command_kind::call) {
    if (w.job.get() == nullptr) return run.step_ended(w.command, std::move(gone));
    const in_loop outside(host_);
    return job_in(w.job).cancel();
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
