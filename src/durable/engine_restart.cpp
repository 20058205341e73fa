// SPDX-License-Identifier: MIT
// Runs that begin again, and commands that are skipped.
#include "durable/engine_core.hpp"

#include <algorithm>

namespace weir::detail {

// One record ends the earlier life and starts the next one, so that no crash comes between them.
std::uint64_t engine_core::restart(const std::string& id) {
  require_open("restart");
  const known_run known = require_known(id);
  std::string stored;
  const std::uint64_t number = known.run != nullptr ? known.run->number() : known.ended->number;
  const record_place place = known.run != nullptr ? known.run->start_place : known.ended->start;
  start_record start = read_start(number, place, stored);
  restart_record again{number, life_of(place) + 1};
  start.version = newest_version(start.handler);
  if (start.version == 0)
    raise(errc::unknown_handler, "restart: no handler '" + std::string(start.handler) +
                                     "' was added to the durable engine on '" + setup_.path + "'");
  require_room();
  start.at = start.begins = wall_now();
  start.seed = host_.env().random();
  payload_writer payload;
  start.write(payload);
  again.write(payload);
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::restart);
  head.flags = static_cast<std::uint16_t>(start.kind);
  head.run = last_number_ + 1;
  const journal::appended at = append_start(head, payload);
  require_running();
  durable_run& next = make_run(head.run, start);
  next.life = again.life;
  next.start_place = at.place;
  next.start_lsn = next.depends = at.lsn;
  next.bytes = bytes_in_log(payload.view().bytes);
  pass_hold(again.replaced, next.number());
  if (known.run != nullptr) {
    take_place(*known.run, next);
  } else {
    std::erase_if(held_, [&](const auto& entry) { return entry.second == again.replaced; });
    past_.remove(again.replaced);
    add_to_index(next);
    cancel_called_by(again.replaced);
    resume(next);
  }
  starting_.push_back(&next);
  return at.lsn;
}

std::uint32_t engine_core::life_of(record_place start) {
  std::string stored;
  if (static_cast<record_type>(journal_->read(start, stored).type) != record_type::restart)
    return 1;
  payload_reader in(stored);
  (void)start_record::read(in);
  return restart_record::read(in).life;
}

void engine_core::cancel_called_by(std::uint64_t number) {
  std::vector<durable_run*> called;
  for (auto& [other_number, other] : runs_)
    if (other.parent == number && !other.ended()) called.push_back(&other);
  for (durable_run* other : called) {
    if (other->callers != nullptr)
      std::erase_if(*other->callers, [&](const auto& c) { return c.run == number; });
    cancel_called(*other, 1);
  }
}

void engine_core::take_place(durable_run& old, durable_run& next) {
  remove_from_index(old);
  add_to_index(next);
  pass_turn(old, next);
  while (!old.askers.empty()) {
    auto& asker = static_cast<end_wait&>(*old.askers.first());
    old.askers.remove(asker);
    asker.run_ = &next;
    next.askers.push_back(asker);
  }
  const auto callers = std::move(old.callers);
  if (callers != nullptr) {
    for (const durable_run::call_link& c : *callers) {
      durable_run* const caller = find(c.run);
      if (caller == nullptr) continue;
      if (caller->callees != nullptr) caller->callees->erase({old.number(), c.command});
      note_caller(next, *caller, c.command);
    }
  }
  cancel_called_by(old.number());
  old.callees.reset();
  next.held = true;
  old.need_rare().successor = &next;
  replaced_.push_back(runs_.extract(old.number()));
  release_held(old.number());
  if (old.live == nullptr) return leave_to_successor(old);
  if (old.resuming) replayed(old);
  old.state = durable::run_state::blocked;  // its steps end without an answer
  stop_blocked(old);
}

void engine_core::leave_to_successor(durable_run& run) {
  if (run.resuming) {
    std::erase(resuming_, &run);
    run.resuming = false;
  }
  has_recovered(run);
  stop_timer(run.alarm);
  unpark(run);
  std::erase(ready_, &run);
  std::erase(starting_, &run);
  std::erase(ending_, &run);
  durable_run& next = *run.rare().successor;
  next.held = false;
  resume(next);
}

// ------------------------------------------------------------------ skipping a command

namespace {

bool can_fail(command_kind kind) noexcept {
  switch (kind) {
    case command_kind::step:
    case command_kind::step_once:
    case command_kind::call:
    case command_kind::send:
    case command_kind::awakeable:
    case command_kind::signal:
      return true;
    default:
      return false;
  }
}

/// The number of the completion that answers the command; no_answer: there is none.
std::uint64_t answer_in(run_history& past, const blocked_command& on) {
  if (on.completion) return *on.completion;
  for (std::size_t i = 0; i < past.completions.size(); ++i) {
    const completion& c = past.completions[i];
    const bool answers = c.type == record_type::answer || c.type == record_type::fired ||
                         (c.type == record_type::resolved && on.kind == command_kind::awakeable);
    if (answers && c.command == on.key) return i;
  }
  return skip_record::no_answer;
}

}  // namespace

std::uint64_t engine_core::skip(const std::string& id, std::string_view message) {
  require_open("skip");
  const known_run known = require_known(id);
  if (known.run == nullptr || known.run->ended() || known.run->state != durable::run_state::blocked)
    raise(errc::invalid_argument, "skip: run '" + id + "' is not blocked");
  durable_run& run = *known.run;
  if (!run.rare().blocked_on || !can_fail(run.rare().blocked_on->kind))
    raise(errc::invalid_argument, "skip: run '" + id +
                                      "' is not blocked on a command that can fail; restart or "
                                      "fork it, or add code that matches: " +
                                      std::string(run.message()));
  const blocked_command on = *run.rare().blocked_on;
  std::string input;
  run_history past = load(run, input);
  skip_record s;
  s.replaces = answer_in(past, on);
  s.digest = on.digest;
  s.name = on.name;
  s.error = {wall_now(), errc::terminal, message, {}};
  payload_writer payload;
  s.write(payload);
  const journal::appended at =
      append(run, record_type::skip, static_cast<std::uint16_t>(on.kind), on.key, payload.view());
  require_running();
  run.set_blocked_on({});
  if (run.live != nullptr) {
    run.skipped = true;
  } else {
    resume(run);
  }
  return at.lsn;
}

}  // namespace weir::detail
