// SPDX-License-Identifier: MIT
// What the code of a run does: commands, timers, waits, steps, calls, sends.
#include "durable/run.hpp"

#include "core/error_notes.hpp"
#include "core/user_place.hpp"
#include "durable/engine_core.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

durable_run::issued_command durable_run::issue(command_kind kind, std::string_view name,
                                               std::uint64_t digest, std::uint64_t number,
                                               std::source_location site,
                                               std::optional<run_request> sends,
                                               std::string value) {
  if (stopped()) return {};
  if (site.line() != 0) live->last_site = site;
  live_run::fiber_record& f = running_fiber();
  const std::uint64_t key = command_key(f.id, ++f.commands);
  if (live->replay != nullptr) {
    auto& before = live->replay->past.commands;
    if (const auto was = before.find(key); was != before.end()) {
      if (!matches(was->second, kind, name, digest, key, site)) return {};
      issued_command known{key, was->second.number, was->second.place,
                           std::move(was->second.failure), std::move(was->second.value)};
      before.erase(was);
      return known;
    }
  }
  if (site.line() == 0) site = running_user_place();
  if (!live->replaying) {
    const std::optional<record_place> place =
        record(key, kind, {name, digest, number, value, engine_.site_of(site)});
    if (!place) return {};
    return {key, number, *place, {}, std::move(value)};
  }
  live_run::fresh_command made{key,  kind, std::string(name), digest, number, std::move(sends),
                               site, value};
  if (made.sends) live->replay->fresh_sends.emplace(made.sends->id, made.sends->handler);
  live->replay->fresh.push_back(std::move(made));
  return {key, number, 0, {}, std::move(value)};
}

// The run of a send was started before its command is recorded, so that a crash in between does not
// lose it; if it was started before, it is found by its id.
//
// A command with a payload of its own file, for which there is no space, must not fail: the code
// would see an error that a replay does not have. So the run stops here, and tries it again.
std::optional<record_place> durable_run::record(std::uint64_t key, command_kind kind,
                                                const command_record& c) {
  payload_writer payload;
  c.write(payload);
  try {
    const journal::appended at = engine_.append(
        *this, record_type::command, static_cast<std::uint16_t>(kind), key, payload.view());
    // Read again, it could be another value; in a turn it is the same.
    if (kind == command_kind::stored && part->shared) depends = at.lsn;
    return at.place;
  } catch (const payload_error& e) {
    std::string why(to_string(kind));
    stop_unrecorded(why.append(" cannot be recorded, and is tried again: ").append(e.what()));
    return std::nullopt;
  }
}

// ------------------------------------------------------------------ timers

void durable_run::arm_timer(timer_node& node, std::uint64_t when, bool limit) noexcept {
  const issued_command c =
      issue(limit ? command_kind::limit : command_kind::timer, {}, 0, when, std::source_location());
  if (c.key == 0) return;
  run_timer& t = live->timers[c.key];
  t.run = this;
  t.previous = &node;
  t.command = c.key;
  t.due = c.number;
  t.order = c.place;
  t.limit = limit;
  node.next = &t;
  node.when = c.number;
  if (!live->replaying) engine_.start_timer(t);
}

void durable_run::cancel_timer(timer_node& node) noexcept {
  auto& t = static_cast<run_timer&>(*std::exchange(node.next, nullptr));
  engine_.stop_timer(t);
  live->timers.erase(t.command);
}

// ------------------------------------------------------------------ waits

bool durable_run::poll(command_wait& w) {
  const command_setup& setup = w.setup();
  if (setup.kind == command_kind::awakeable) {
    const live_run::cell& cell = live->need_tables().awakeables[setup.key];
    return cell.answer && give(w, *cell.answer);
  }
  if (setup.kind == command_kind::promise) {
    const command_answer* settled = peek_promise(setup.name);
    if (setup.only_look && settled == nullptr) return give(w, command_answer());
    return settled != nullptr && give(w, *settled);
  }
  if (setup.kind == command_kind::signal) {
    live_run::signal_box& box = live->need_tables().signals[setup.name];
    if (box.kept.empty() || !box.waiting.empty() || !give(w, box.kept.front())) return false;
    box.kept.pop_front();
    return true;
  }
  return setup.kind == command_kind::stored && read_stored(w);
}

wait_list* durable_run::waiters_of(const command_wait& w) {
  const command_setup& setup = w.setup();
  switch (setup.kind) {
    case command_kind::awakeable:
      return &live->need_tables().awakeables[setup.key].waiting;
    case command_kind::promise:
      return &live->need_tables().promises[setup.name].waiting;
    case command_kind::signal:
      return &live->need_tables().signals[setup.name].waiting;
    default:
      return nullptr;
  }
}

void durable_run::issue(command_wait& w) {
  const command_setup& setup = w.setup();
  w.given_up = false;
  w.answered = false;
  if (wait_list* waiting = waiters_of(w)) {
    if (setup.kind == command_kind::signal)
      w.command = issue(setup.kind, setup.name, 0, 0, setup.site).key;
    waiting->push_back(w);
    if (setup.kind != command_kind::promise) ++live->journaled_waits;
    return;
  }
  const bool calls = setup.kind == command_kind::call;
  const issued_command c =
      issue(setup.kind, setup.name, calls ? digest_of(setup.request->input) : 0, 0, setup.site);
  w.command = c.key;
  if (c.key == 0) return;
  w.order = ++live->last_issued;
  live->issued.emplace(c.key, &w);
  if (!live->replaying) start(w);
}

// A wait for a step or a call ends when the end of that is recorded; all others end at once.
cancel_result durable_run::withdraw(command_wait& w) noexcept {
  if (wait_list* waiting = waiters_of(w)) {
    ++list_visits;
    waiting->remove(w);
    if (w.setup().kind != command_kind::promise) --live->journaled_waits;
    return cancel_result::done;
  }
  if (live->evicting || w.command == 0) {
    live->issued.erase(w.command);
    return cancel_result::done;
  }
  if (!std::exchange(w.given_up, true) && !live->replaying) engine_.give_up(*this, w);
  return cancel_result::later;
}

// ------------------------------------------------------------------ steps, calls and sends

void durable_run::start(command_wait& w) {
  const std::uint64_t key = w.command;
  if (w.setup().kind == command_kind::call) return engine_.start_call(*this, w);
  run_history::step_past past;
  if (live->replay != nullptr) {
    const auto& before = live->replay->past.steps;
    if (const auto found = before.find(key); found != before.end()) past = found->second;
  }
  engine_.start_step(*this, w, past);
}

void durable_run::keep_send(run_request request) {
  turn_work& work = *live->work;
  if (!work.handlers.emplace(request.id, request.handler).second) return;  // sent before
  const time_point at(live->clock.time_since_epoch());
  const wall_time due(saturating_add(at, request.delay).time_since_epoch());
  work.sends.push_back({std::move(request), due});
}

const std::string* durable_run::handler_of_unsent(const std::string& sent) const {
  const std::unordered_map<std::string, std::string>* unsent = nullptr;
  if (live->work != nullptr) {
    unsent = &live->work->handlers;
  } else if (live->replay != nullptr) {
    unsent = &live->replay->fresh_sends;
  }
  if (unsent == nullptr) return nullptr;
  const auto found = unsent->find(sent);
  return found == unsent->end() ? nullptr : &found->second;
}

// The id follows from the command, so that it is the same in a replay. A send that is refused is
// recorded as well: `number` is then the error code.
std::string durable_run::send(run_request request, std::source_location site) {
  live_run::fiber_record& f = running_fiber();
  if (request.id.empty()) request.id = child_id(command_key(f.id, f.commands + 1));
  const std::string to = request.handler;
  const std::string made = request.id;
  const std::uint64_t digest = digest_of(request.input);
  std::string problem;
  errc refused = engine_.refuses(request, problem);
  ++list_visits;
  if (const std::string* other = handler_of_unsent(request.id);
      other != nullptr && *other != request.handler) {
    refused = errc::id_in_use;
    problem = "run '" + request.id + "' is one of handler '" + *other + "', not of '" +
              request.handler + "'; give another id";
  }
  // During a replay the run is started later, if the journal does not have the send.
  const bool later = live->replaying || stopped() || live->work;
  if (refused == errc{} && !later) refused = engine_.start_sent(request, problem);
  const bool started_later = refused == errc{} && later;
  const issued_command c =
      issue(command_kind::send, to, digest, static_cast<std::uint64_t>(refused), site,
            started_later && !live->work ? std::optional(request) : std::nullopt);
  if (c.failure) throw terminal_error(*c.failure);
  if (c.key != 0 && c.number == 0 && live->work) keep_send(std::move(request));
  if (c.key != 0 && c.number != 0) {
    if (problem.empty()) problem = "send to '" + to + "' was refused";
    raise(static_cast<errc>(c.number), problem);
  }
  return made;
}

void durable_run::step_ended(std::uint64_t command, command_answer answer) {
  completion what{record_type::answer, command, engine_.wall_now(), {}, std::move(answer)};
  engine_.answer_run(*this, std::move(what));
}

}  // namespace weir::detail
