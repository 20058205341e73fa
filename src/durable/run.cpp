// SPDX-License-Identifier: MIT
// How a run progresses: replay, delivery, end.
#include "durable/run.hpp"

#include <algorithm>
#include <cstdio>

#include <weir/time.hpp>

#include "core/cancel_tree.hpp"
#include "core/dump_tree.hpp"
#include "core/error_notes.hpp"
#include "durable/engine_core.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

namespace {

constexpr int strands_per_turn = 64;

/// A run that does not come to rest within this many turns of its strands gets its next completion
/// anyway. The position is recorded, so that it is the same in a replay.
constexpr std::uint64_t restless_turns_max = 10'000;

/// The first line of user code that an exception left.
std::string place_of(const std::exception_ptr& error) {
  for (const error_note& note : notes_of(error)) {
    if (note.what != error_note::kind::frame || is_library_file(note.function.file_name()))
      continue;
    return text_of(note.where.line() == 0 ? note.function : note.where);
  }
  return {};
}

}  // namespace

durable_run::~durable_run() {
  if (live != nullptr) evict("the engine has ended");
}

void durable_run::begin(const handler_base& code, std::string input, run_history history) {
  begun = true;
  live = std::make_unique<live_run>(*this, host());
  live->history = std::move(history);
  live->clock = std::max(started, begins);
  live->fiber_ids.insert(root_fiber);
  const in_loop in_run(live->inner);
  scope_options how;
  const std::string& name = id;
  how.name = name;
  how.failure = failure::isolate;  // its error is the run's
  live->root_scope.emplace(scope_setup(how, std::source_location::current()), region_kind::scope);
  auto* root = scope::make(code.invoke(input));
  live->root = core_ref::adopt(live->root_scope->adopt(
      root, {.name = "handler"}, std::source_location::current(), scope::launch::hidden));
  live->inner.set_root(*live->root_scope, *root);
  live->fibers[root].id = root_fiber;
}

// A run that was cancelled before its start time never begins: the cancel record says so.
void durable_run::cancel_before_begin() {
  circular_buffer<completion>& past = live->history.completions;
  for (std::size_t i = 0; i < past.size(); ++i)
    if (past[i].type == record_type::cancel && past[i].answer.code == cancelled_early)
      return deliver_cancel(past[i]);
}

durable_run::progress durable_run::drive() {
  const in_loop in_run(live->inner);
  if (!std::exchange(live->driven, true)) cancel_before_begin();
  for (int turns = 0;; ++turns) {
    if (turns == strands_per_turn) return progress::more;
    for (int i = 0; !live->inner.drain(1);) {
      if (state == durable::run_state::blocked) return progress::blocked;
      if (hurry() && !deliver_next()) return progress::blocked;
      if (++i == strands_per_turn) return progress::more;
    }
    if (state == durable::run_state::blocked) return progress::blocked;
    if (static_cast<fiber*>(live->root.get())->ended) {
      if (live->replaying && !go_live()) return progress::blocked;
      return progress::ended;
    }
    if (live->replaying && live->history.completions.empty()) {
      if (!go_live()) return progress::blocked;
    } else if (live->replaying || !live->inbox.empty()) {
      if (!deliver_next()) return progress::blocked;
    } else if (waits_for_journal()) {
      return progress::parked;
    } else {
      fail_deadlocked();
    }
  }
}

bool durable_run::deliver_next() {
  circular_buffer<completion>& from = live->replaying ? live->history.completions : live->inbox;
  completion next = std::move(from.front());
  from.pop_front();
  ++live->delivered;
  live->rested_at = live->inner.steps();
  return deliver(std::move(next));
}

// A replay does it at the recorded position. If that record was lost with the tail of the journal,
// nothing that is left depends on the position.
bool durable_run::hurry() {
  const std::uint64_t turns = live->inner.steps() - live->rested_at;
  const run_history& past = live->history;
  const auto known = past.hurried.find(live->delivered);
  if (known != past.hurried.end()) return turns >= known->second;
  if (turns < restless_turns_max || !past.commands.empty()) return false;
  if (!past.hurried.empty() && past.hurried.rbegin()->first > live->delivered) return false;
  if (live->replaying && past.completions.empty() && !go_live()) return false;
  if ((live->replaying ? past.completions : live->inbox).empty()) return false;
  payload_writer payload;
  payload.number(live->delivered).number(turns);
  engine_.append(*this, record_type::hurried, 0, 0, payload.view());
  return true;
}

// ------------------------------------------------------------------ code that does not match

std::string durable_run::how_it_ended() const {
  const auto& root = static_cast<fiber_of<std::string>&>(static_cast<fiber&>(*live->root.get()));
  std::string text("the handler ended");
  std::string at;
  if (root.out.is_error()) {
    text.append(" with the error \"").append(message_of(root.out.error())).append("\"");
    at = place_of(root.out.error());
  } else if (root.out.is_cancelled()) {
    text.append(" by its cancellation");
  }
  if (at.empty() && live->last_site.line() != 0) at = text_of(live->last_site);
  if (at.empty() && live->handler.line() != 0) at = text_of(live->handler);
  return at.empty() ? text : text.append(", at or after ").append(at);
}

// For a fiber that has ended or was not spawned, reports the position of the handler.
std::string durable_run::where_it_is(std::uint32_t fiber_id) const {
  const auto* at = static_cast<const fiber*>(live->root.get());
  if (at->ended) return how_it_ended();
  for (const auto& [f, known] : live->fibers)
    if (known.id == fiber_id) at = f;
  std::string text(at == live->root.get() ? "the handler" : "the child");
  return text.append(" is at ").append(place_in(*at));
}

void durable_run::block_missing(std::uint64_t key, const run_history::command& left) {
  std::string text("the code does not match the journal: the journal has ");
  text.append(to_string(left.kind));
  if (!left.name.empty()) text.append(" '").append(left.name).append("'");
  text.append(" as command ").append(std::to_string(index_of_key(key)));
  text.append(fiber_of_key(key) == root_fiber ? " of the handler" : " of a child");
  text.append(", which the code does not do any more: ").append(where_it_is(fiber_of_key(key)));
  block(text.append(old_code));
}

// Starts the commands that were under way, in the order in which they were issued.
bool durable_run::go_live() {
  if (!live->history.commands.empty()) {
    const auto first = std::min_element(
        live->history.commands.begin(), live->history.commands.end(),
        [](const auto& a, const auto& b) { return a.second.place < b.second.place; });
    block_missing(first->first, first->second);
    return false;
  }
  live->replaying = false;
  for (const live_run::fresh_command& c : live->fresh) {
    std::string problem;
    if (c.sends && engine_.start_sent(*c.sends, problem) != errc{}) {
      block(problem);
      return false;
    }
    const record_place place = record(c);
    const auto timer = live->timers.find(c.key);
    if (timer != live->timers.end()) timer->second->order = place;
  }
  live->fresh = {};
  live->fresh_sends = {};
  std::vector<run_timer*> timers;
  for (const auto& [key, t] : live->timers) timers.push_back(t.get());
  for (run_timer* t : timers) engine_.start_timer(*t);
  std::vector<command_wait*> waits;
  for (const auto& [key, w] : live->issued) waits.push_back(w);
  std::sort(waits.begin(), waits.end(),
            [](const command_wait* a, const command_wait* b) { return a->order < b->order; });
  for (command_wait* w : waits) {
    if (w->given_up) {
      engine_.give_up(*this, *w);
    } else {
      start(*w);
    }
  }
  live->history = run_history();
  return true;
}

bool durable_run::waits_for_journal() const noexcept {
  return !live->timers.empty() || !live->issued.empty() || live->journaled_waits > 0;
}

// The deadlock is recorded, so that the cleanup that follows is the same in every replay. If the
// cleanup deadlocks as well, it is cut short.
void durable_run::fail_deadlocked() {
  if (!live->deadlock.empty()) {
    if (std::exchange(live->forced, true))
      return block("deadlocked, and a wait refuses to end: " + where_it_is(root_fiber));
    return live->inner.cancel_everything("deadlock", true);
  }
  completion what{record_type::deadlock, 0, engine_.wall_now(), {}, {}};
  what.answer.how = command_answer::kind::error;
  what.answer.code = errc::deadlock;
  what.answer.text =
      "deadlock: every fiber of the run waits for another one, and nothing journaled is pending\n" +
      tree_of(live->inner);
  engine_.answer_run(*this, std::move(what));
}

bool durable_run::deliver(completion next) {
  live->clock = std::max(live->clock, next.at);
  live->inner.clock_moved();
  // An awakeable may be resolved before the replay makes it again: its id was known before.
  const bool answers = next.type == record_type::answer || next.type == record_type::fired;
  if (live->replaying && answers && live->history.commands.contains(next.command)) {
    block_missing(next.command, live->history.commands.at(next.command));
    return false;
  }
  switch (next.type) {
    case record_type::cancel:
      deliver_cancel(next);
      break;
    case record_type::deadlock:
      live->deadlock = std::move(next.answer.text);
      live->inner.cancel_everything("deadlock", false);
      break;
    case record_type::fired: {
      const auto found = live->timers.find(next.command);
      if (found == live->timers.end()) break;
      timer_node& node = *found->second->of;
      const bool limit = found->second->limit;
      engine_.stop_timer(*found->second);
      node.next = nullptr;
      live->timers.erase(found);
      if (limit) {
        static_cast<deadline_node&>(node).expired();
      } else {
        fire_sleep(node);
      }
      break;
    }
    case record_type::answer: {
      const auto found = live->issued.find(next.command);
      if (found == live->issued.end()) break;
      command_wait* w = found->second;
      if (!give(*w, next.answer)) return false;
      live->issued.erase(found);
      w->arrived();
      break;
    }
    case record_type::resolved:
      return settle_cell(live->awakeables[next.command], std::move(next.answer));
    case record_type::signal: {
      live_run::signal_box& box = live->signals[next.name];
      if (!live->replaying) --box.on_their_way;
      if (box.waiting.empty()) {
        box.kept.push_back(std::move(next.answer));
        break;
      }
      auto& first = static_cast<command_wait&>(*box.waiting.first());
      if (!give(first, next.answer)) return false;
      box.waiting.remove(first);
      --live->journaled_waits;
      first.arrived();
      break;
    }
    default:
      break;
  }
  return true;
}

std::vector<scope*> durable_run::outermost_absorbs() const {
  std::vector<scope*> outermost;
  if (live->absorbs == nullptr) return outermost;
  for (const auto& [order, s] : live->absorbs->entered) {
    ++list_visits;
    bool inside = static_cast<bool>(cancel_tree::reason(*s));
    for (context* c = cancel_tree::parent(*s); c != nullptr && !inside; c = cancel_tree::parent(*c))
      inside = live->absorbs->order_of.contains(c);
    if (!inside) outermost.push_back(s);
  }
  return outermost;
}

// The outermost absorbed operations get the cancellation; if there are none, the whole run does.
void durable_run::deliver_cancel(const completion& what) {
  if (live->cancelling) return;  // one is under way already
  cancel_reason why(cancel_kind::user, what.answer.text);
  why.source = live->root_scope->id();
  why.when = live->inner.now();
  reason_ref reason = make_reason(std::move(why));
  const std::vector<scope*> outermost = outermost_absorbs();
  if (outermost.empty()) return cancel_tree::cancel(*live->root_scope, reason, false);
  live->cancelling = reason;
  live->absorbs->asked.insert(outermost.begin(), outermost.end());
  live->absorbed = false;
  for (scope* s : outermost) cancel_tree::cancel(*s, reason, false);
}

void durable_run::evict(const char* why) {
  live->evicting = true;
  cancel_reason reason(cancel_kind::evicted, why);
  reason.when = live->inner.now();
  {
    strand* const before = std::exchange(current, nullptr);
    live->inner.evict(make_reason(std::move(reason)));
    current = before;
  }
  for (const auto& [key, t] : live->timers) engine_.stop_timer(*t);
  discard();
}

void durable_run::discard() {
  {
    const in_loop in_run(live->inner);
    live->root = core_ref();
    live->root_scope.reset();
  }
  live.reset();
}

command_answer durable_run::take_result() {
  auto& root = static_cast<fiber_of<std::string>&>(static_cast<fiber&>(*live->root.get()));
  command_answer how;
  if (!live->deadlock.empty()) {
    how.how = command_answer::kind::error;
    how.code = errc::deadlock;
    how.text = std::move(live->deadlock);
    error = std::make_exception_ptr(weir::error(errc::deadlock, how.text));
  } else if (root.out.is_value()) {
    how.how = command_answer::kind::value;
    how.text = root.out.take();
  } else if (root.out.is_error()) {
    how.how = command_answer::kind::error;
    error = root.out.error();
    how.text = message_of(error);
  } else {
    how.how = command_answer::kind::cancelled;
    how.text = root.out.is_cancelled() ? root.out.reason().message : std::string();
  }
  discard();
  return how;
}

// ------------------------------------------------------------------ steps, calls and sends

void durable_run::start(command_wait& w) {
  const std::uint64_t key = w.command;
  if (w.setup().kind == command_kind::call) return engine_.start_call(*this, w);
  const auto past = live->history.steps.find(key);
  engine_.start_step(*this, w,
                     past == live->history.steps.end() ? run_history::step_past{} : past->second);
}

// The id follows from the command, so that it is the same in a replay. A send that is refused is
// recorded as well: `number` is then the error code.
std::string durable_run::send(run_request request, std::source_location site) {
  live_run::fiber_record& f = running_fiber();
  if (request.id.empty()) request.id = child_id(command_key(f.id, f.commands + 1));
  const std::string handler_name = request.handler;
  const std::string made = request.id;
  const std::uint64_t digest = digest_of(request.input);
  std::string problem;
  errc refused = engine_.refuses(request, problem);
  ++list_visits;
  const auto sent = live->fresh_sends.find(request.id);
  if (sent != live->fresh_sends.end() && sent->second != request.handler) {
    refused = errc::id_in_use;
    problem = "run '" + request.id + "' is one of handler '" + sent->second + "', not of '" +
              request.handler + "'; give another id";
  }
  // During a replay the run is started later, if the journal does not have the send.
  const bool later = live->replaying || state == durable::run_state::blocked;
  if (refused == errc{} && !later) refused = engine_.start_sent(request, problem);
  const bool started_later = refused == errc{} && later;
  const issued_command c =
      issue(command_kind::send, handler_name, digest, static_cast<std::uint64_t>(refused), site,
            started_later ? std::optional(std::move(request)) : std::nullopt);
  if (c.key != 0 && c.number != 0) {
    if (problem.empty()) problem = "send to '" + handler_name + "' was refused";
    raise(static_cast<errc>(c.number), problem);
  }
  return made;
}

std::string durable_run::child_id(std::uint64_t key) const {
  char text[24];
  std::snprintf(text, sizeof text, ".%x.%u", fiber_of_key(key), index_of_key(key));
  return id + text;
}

void durable_run::step_ended(std::uint64_t command, command_answer answer) {
  completion what{record_type::answer, command, engine_.wall_now(), {}, std::move(answer)};
  engine_.answer_run(*this, std::move(what));
}

}  // namespace weir::detail
