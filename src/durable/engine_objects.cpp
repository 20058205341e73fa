// SPDX-License-Identifier: MIT
// Keyed objects: their inboxes, the turns in them, and their state.
#include "durable/engine_core.hpp"

#include "core/error.hpp"
#include "durable/visits.hpp"
#include "toolkit/option.hpp"

namespace weir::detail {

void engine_core::require_object_name(
    std::string_view name, std::initializer_list<durable::object_handler> handlers) const {
  require_here("add_object");
  require_option(!name.empty(), "durable engine",
                 "add_object: the name of an object is empty; give it one");
  for (const durable::object_handler& h : handlers)
    require_option(!h.name().empty() && h.name().find('/') == std::string::npos, "durable engine",
                   "add_object: the name of a handler is empty or has a '/'; the engine puts the "
                   "name of the object before it");
}

void engine_core::forget_if_empty(durable_object& object) {
  if (object.runs == 0 && object.state.empty()) objects_.erase(object);
}

std::string engine_core::key_of(const known_run& run) const {
  if (run.run != nullptr && run.run->part != nullptr) return run.run->part->of->key;
  std::string payload;
  const std::uint64_t number = run.run != nullptr ? run.run->number() : run.ended->number;
  const record_place start = run.run != nullptr ? run.run->start_place : run.ended->start;
  return std::string(read_start(number, start, payload).key);
}

// ------------------------------------------------------------------ the inbox

void engine_core::enter_object(durable_run& run, const start_record& from) {
  durable_object& object = objects_.get(object_of_handler(from.handler), from.key);
  ++object.runs;
  const bool shared = from.kind == handler_kind::shared;
  run.part = std::make_unique<object_part>(object_part{&object, shared});
  if (!shared && from.begins <= from.at) join(run, {run.number(), 0});
}

void engine_core::join(durable_run& run, inbox_place place) {
  run.part->joined = true;
  run.part->place = place;
  run.part->of->inbox.emplace(place, &run);
}

void engine_core::join_late(durable_run& run) {
  const inbox_place place{last_number_, last_joined_ + 1};
  payload_writer payload;
  payload.time(wall_now()).number(place.after).number(place.joined);
  append(run, record_type::fired, static_cast<std::uint16_t>(turn_event::joined), 0,
         payload.view());
  if (!running()) return;
  last_joined_ = place.joined;
  join(run, place);
}

bool engine_core::is_queued(const durable_run& run) noexcept {
  return run.takes_turns() && !(run.part->joined && run.has_turn());
}

bool engine_core::waits_for_turn(durable_run& run) {
  if (!run.takes_turns()) return false;
  ++list_visits;
  if (is_queued(run)) return run.part->waited = true;
  if (std::exchange(run.part->waited, false) && !run.begun) {
    payload_writer payload;
    payload.time(wall_now());
    append(run, record_type::fired, static_cast<std::uint16_t>(turn_event::begins), 0,
           payload.view());
  }
  return !running();
}

void engine_core::leave_object(durable_run& run) {
  ++list_visits;
  const std::unique_ptr<object_part> part = std::move(run.part);
  durable_object& object = *part->of;
  --object.runs;
  if (part->joined) {
    const bool first = object.inbox.begin()->second == &run;
    object.inbox.erase(part->place);
    if (first) {
      object.lsn = std::max(object.lsn, run.end_lsn());
      if (!object.inbox.empty()) resume(*object.inbox.begin()->second);
    }
  }
  forget_if_empty(object);
}

void engine_core::pass_turn(durable_run& old, durable_run& next) {
  if (old.part == nullptr) return;
  const std::unique_ptr<object_part> part = std::move(old.part);
  durable_object& object = *part->of;
  --object.runs;
  if (!part->joined) return forget_if_empty(object);
  object.inbox.erase(part->place);
  if (next.takes_turns()) {
    object.inbox.erase(next.part->place);
    return join(next, part->place);
  }
  if (!object.inbox.empty()) resume(*object.inbox.begin()->second);
  forget_if_empty(object);
}

void engine_core::end_queued(durable_run& run, std::string why) {
  command_answer& how = run.need_end().outcome.emplace();
  how.how = command_answer::kind::cancelled;
  how.text = std::move(why);
  stop_timer(run.alarm);
  (void)note_end(run, record_shortened_end(run));
}

std::string engine_core::message_of_run(const durable_run& run) const {
  if (run.state != durable::run_state::suspended || !is_queued(run))
    return std::string(run.message());
  if (!run.part->joined) return std::string(run.message());
  return "waits for its turn of " + text_of(*run.part->of) + ": run '" +
         run.part->of->inbox.begin()->second->id.str() + "' has it";
}

// ------------------------------------------------------------------ the record of a turn

std::string engine_core::problem_of_sends(const turn_work& work) const {
  for (const turn_work::sent& s : work.sends)
    if (newest_code(s.request.handler) == nullptr)
      return "it has sent to handler '" + s.request.handler +
             "', which was not added; open the journal with the code that has it";
  return {};
}

// A run that was started in the meantime by another one is attached to.
journal::appended engine_core::record_turn(durable_run& run, const turn_work& work) {
  turn_record turn;
  run.end_part->at = wall_now();
  turn.answer = {
      run.end_part->at, errc{}, run.end_part->outcome->text, {}};  // no error, so no facts follow
  for (const auto& [name, value] : work.changes) turn.changes.push_back({name, value});
  turn.first_run = last_number_ + 1;
  for (const turn_work::sent& s : work.sends) {
    std::string problem;
    const errc refused = refuses(s.request, problem);
    if (refused != errc{}) raise(refused, "a send was refused at its end: " + problem);
    if (attached(s.request)) continue;
    turn.starts.push_back(new_start(s.request, s.request.id));
    turn.starts.back().begins = std::max(turn.starts.back().at, s.begins);
  }
  payload_writer payload;
  turn.write(payload);
  const journal::appended at =
      append(run, record_type::turn, static_cast<std::uint16_t>(command_answer::kind::value), 0,
             payload.view());
  if (at.lsn == never_durable) return at;
  for (const auto& [name, value] : work.changes) {
    if (value) {
      run.part->of->state.insert_or_assign(name, *value);
    } else {
      run.part->of->state.erase(name);
    }
  }
  for (std::size_t i = 0; i < turn.starts.size(); ++i)
    add_run(turn.first_run + i, turn.starts[i], at,
            bytes_in_log(payload.view().bytes) / turn.starts.size());
  return at;
}

start_record engine_core::read_start(std::uint64_t number, record_place place,
                                     std::string& payload) const {
  if (turn_read_.place == 0 || turn_read_.place != place) {
    const record_head head = journal_->read(place, payload);
    if (static_cast<record_type>(head.type) != record_type::turn)
      return start_record::read(payload, head.flags);
    turn_read_.place = place;
    turn_read_.payload = std::move(payload);
    turn_read_.read = turn_record::read(turn_read_.payload);
    list_visits += turn_read_.read.starts.size();
  }
  return turn_read_.read.starts.at(number - turn_read_.read.first_run);
}

// ------------------------------------------------------------------ recovery

// If the run is not known, it was forgotten, and a later record has the state of its object.
void engine_core::see_turn(const record_head& head, std::string_view payload, std::uint64_t lsn,
                           record_place place) {
  const turn_record turn = turn_record::read(payload);
  if (durable_run* const run = seen(head.run)) {
    if (run->part == nullptr)
      raise(errc::journal_corrupt, "the journal '" + setup_.path + "' has record " +
                                       std::to_string(lsn) + ", a turn of run '" + run->id.str() +
                                       "', which is none of an object");
    stored_values& state = run->part->of->state;
    for (const turn_record::change& c : turn.changes) {
      if (c.value) {
        state.insert_or_assign(std::string(c.name), std::string(*c.value));
      } else if (const auto known = state.find(c.name); known != state.end()) {
        state.erase(known);
      }
    }
    see_end(*run, head, payload, lsn, place);
  }
  see_sends(turn, payload, lsn, place);
}

void engine_core::see_sends(const turn_record& turn, std::string_view payload, std::uint64_t lsn,
                            record_place place) {
  for (std::size_t i = 0; i < turn.starts.size(); ++i) {
    const std::uint64_t number = turn.first_run + i;
    note_reused(turn.starts[i], number, place);
    durable_run& sent = make_run(number, turn.starts[i]);
    sent.start_place = place;
    sent.start_lsn = sent.depends = lsn;
    sent.bytes = bytes_in_log(payload) / turn.starts.size();
  }
}

void engine_core::see_turn_event(durable_run& run, const record_head& head,
                                 std::string_view payload) {
  if (turn_event_of(head.flags) != turn_event::joined || run.part == nullptr) return;
  run.begun = false;
  payload_reader in(payload);
  (void)in.time();
  const std::uint64_t after = in.number();
  const inbox_place place{after, in.number()};
  last_joined_ = std::max(last_joined_, place.joined);
  join(run, place);
}

void engine_core::see_object_state(std::string_view payload) {
  const object_state_record r = object_state_record::read(payload);
  durable_object& object = objects_.get(r.object, r.key);
  object.state.clear();
  for (const auto& [name, value] : r.values)
    object.state.emplace(std::string(name), std::string(value));
  forget_if_empty(object);
}

void engine_core::see_compacted(std::string_view payload) {
  const compacted_record seen = compacted_record::read(payload);
  last_number_ = std::max(last_number_, seen.last_run);
  for (const std::uint64_t number : seen.forgotten) {
    durable_run* const run = find(number);
    if (run == nullptr) continue;
    if (const std::unique_ptr<object_part> part = std::move(run->part)) {
      --part->of->runs;
      if (part->joined) part->of->inbox.erase(part->place);
    }
    seen_[number % seen_.size()] = nullptr;
    runs_.erase(number);
  }
  objects_.begin_walk();
  while (durable_object* const object = objects_.walk()) {
    object->state.clear();
    forget_if_empty(*object);
  }
}

}  // namespace weir::detail
