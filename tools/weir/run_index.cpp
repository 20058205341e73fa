// SPDX-License-Identifier: MIT
#include "run_index.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "durable/turn_record.hpp"

namespace weir_tool {

using namespace weir::detail;
using weir::durable::run_state;

namespace {

run_state state_of(command_answer::kind how) noexcept {
  switch (how) {
    case command_answer::kind::value:
      return run_state::completed;
    case command_answer::kind::cancelled:
      return run_state::cancelled;
    default:
      return run_state::failed;
  }
}

bool waits(command_kind kind) noexcept {
  switch (kind) {
    case command_kind::timer:
    case command_kind::step:
    case command_kind::step_once:
    case command_kind::call:
    case command_kind::awakeable:
    case command_kind::signal:
      return true;
    default:
      return false;
  }
}

/// Its end is not recorded if the run gives it up.
bool may_be_given_up(command_kind kind) noexcept {
  return kind == command_kind::timer || kind == command_kind::signal;
}

/// The run's code need not have been called for such a record.
bool comes_from_outside(record_type type) noexcept {
  return type == record_type::cancel || type == record_type::signal || type == record_type::blocked;
}

std::string_view object_of(std::string_view handler) noexcept {
  return handler.substr(0, handler.rfind('/'));
}

}  // namespace

void run_index::clear() {
  runs_.clear();
  places_.clear();
  sites_.clear();
  latest_ = {};
}

run_entry* run_index::find(std::uint64_t number) noexcept {
  const auto found = places_.find(number);
  return found == places_.end() ? nullptr : &runs_[found->second];
}

const run_entry* run_index::find(std::uint64_t number) const noexcept {
  const auto found = places_.find(number);
  return found == places_.end() ? nullptr : &runs_[found->second];
}

const run_entry* run_index::named(std::string_view name) const noexcept {
  const auto is_id = [&](const run_entry& r) { return r.id == name; };
  const auto found = std::find_if(runs_.rbegin(), runs_.rend(), is_id);
  if (found != runs_.rend()) return &*found;
  std::uint64_t number = 0;
  if (!name.starts_with('#')) return nullptr;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return nullptr;
  return find(number);
}

void run_index::start(std::uint64_t number, const start_record& r) {
  places_[number] = runs_.size();
  run_entry& run = runs_.emplace_back();
  run.number = number;
  run.id = r.id;
  run.handler = r.handler;
  run.key = r.key;
  run.version = r.version;
  run.started = run.clock = r.at;
  run.begins = r.begins;
  run.parent = r.parent;
  if (r.kind == handler_kind::exclusive && r.begins <= r.at) run.place = {number, 0};
  run_entry* const caller = r.parent == 0 ? nullptr : find(r.parent);
  if (caller == nullptr) return;
  const auto call = caller->commands.find(r.parent_command);
  if (call != caller->commands.end()) call->second.callee = r.id;
}

// A restart has the place of the earlier life in its inbox, a fork one of its own.
void run_index::see_start(run_entry& run, record_type type) {
  if (const record_part* copies = parts_.find("copies")) run.copies = copies->number;
  if (type == record_type::fork && !run.key.empty()) run.place = {run.number, 0};
  const record_part* const earlier = parts_.find("replaced");
  run_entry* const gone = earlier == nullptr ? nullptr : find(earlier->number);
  if (gone == nullptr) return;
  gone->replaced = true;
  run.place = gone->place;
}

void run_index::end(run_entry& run, const record_head& head, std::string_view payload) {
  const answer_record r = answer_record::read(payload);
  run.state = state_of(answer_kind(head.flags));
  run.ended = r.at;
  run.message = run.state == run_state::completed ? std::string_view() : r.text;
  run.commands = {};
  run.open_waits = {};
  run.blocked = false;
}

// A fiber waits for one thing at a time, which may have several parts. So what it has waited for is
// over when it issues a command after the run has got something.
void run_index::see_command(run_entry& run, const record_head& head, std::string_view payload) {
  const command_record r = command_record::read(payload);
  const command_kind what = kind_of_command(head.flags);
  if (what == command_kind::patch) return;  // a marker, at the number of another command
  std::erase_if(run.open_waits, [&](std::uint64_t key) {
    command_entry& older = run.commands[key];
    if (fiber_of_key(key) == head.fiber && older.completions < run.completions)
      older.answered = true;
    return older.answered;
  });
  const std::uint64_t key = command_key(head.fiber, head.index);
  command_entry& made = run.commands[key];
  made = {what,         std::string(r.name), r.number,    r.site,         0,
          !waits(what), run.clock,           run.records, run.completions};
  if (may_be_given_up(what)) run.open_waits.push_back(key);
  run.steps += what == command_kind::step || what == command_kind::step_once;
}

void run_index::see_other(run_entry& run, const record_head& head, std::string_view payload) {
  const auto type = static_cast<record_type>(head.type);
  if (type == record_type::blocked) {
    run.blocked = blocked_record::is_block(head.flags);
    run.message = blocked_record::read(payload).why;
    return;
  }
  if (type == record_type::fired && turn_event_of(head.flags) == turn_event::joined) {
    payload_reader in(payload);
    (void)in.time();
    const std::uint64_t after = in.number();
    run.place = {after, in.number()};
    return;
  }
  const std::string_view signal = type == record_type::signal ? parts_.find("name")->text : "";
  if (is_completion(type)) ++run.completions;
  if (type == record_type::signal) {
    const auto hears = [&](std::uint64_t key) {
      const command_entry& c = run.commands[key];
      return c.kind == command_kind::signal && c.name == signal && !c.answered;
    };
    const auto first = std::find_if(run.open_waits.begin(), run.open_waits.end(), hears);
    if (first != run.open_waits.end()) run.commands[*first].answered = true;
    return;
  }
  const auto command = run.commands.find(command_key(head.fiber, head.index));
  if (command == run.commands.end()) return;
  if (type == record_type::attempt) ++command->second.attempts;
  if ((is_completion(type) && type != record_type::cancel) || type == record_type::skip)
    command->second.answered = true;
}

run_entry* run_index::see(const record_head& head, std::string_view payload) {
  const record_kind* kind = kind_of_record(head.type);
  if (kind == nullptr) return find(head.run);
  parts_.clear();
  kind->read(head, payload, parts_);
  const record_part* const at = parts_.find("at");
  if (kind->type == record_type::site) sites_.see(site_record::read(payload));
  if (kind->type == record_type::compacted)
    for (const std::uint64_t number : compacted_record::read(payload).forgotten)
      if (run_entry* const gone = find(number)) gone->replaced = true;
  if (kind->role == record_role::none) return nullptr;
  each_started_run(head, payload,
                   [&](std::uint64_t number, const start_record& r) { start(number, r); });
  run_entry* const run = find(head.run);
  if (at != nullptr) {
    const weir::wall_time time(weir::duration(static_cast<std::int64_t>(at->number)));
    latest_ = std::max(latest_, time);
    if (run != nullptr) run->clock = time;
  }
  if (run == nullptr) return nullptr;
  ++run->records;
  if (run->has_ended()) return run;  // what follows the end is ignored
  if (kind->role != record_role::starts && !comes_from_outside(kind->type)) run->begun = true;
  switch (kind->role) {
    case record_role::starts:
      see_start(*run, kind->type);
      break;
    case record_role::ends:
      end(*run, head, payload);
      break;
    case record_role::command:
      see_command(*run, head, payload);
      break;
    default:
      see_other(*run, head, payload);
  }
  return run;
}

void run_index::settle() {
  using key_of_object = std::pair<std::string_view, std::string_view>;
  std::map<key_of_object, const run_entry*> turns;
  const auto takes_turns = [](const run_entry& run) {
    return run.place && !run.has_ended() && !run.is_gone();
  };
  for (const run_entry& run : runs_) {
    if (!takes_turns(run)) continue;
    const run_entry*& first = turns[{object_of(run.handler), run.key}];
    if (first == nullptr || *run.place < *first->place) first = &run;
  }
  for (run_entry& run : runs_) {
    if (!takes_turns(run)) continue;
    const run_entry* const first = turns[{object_of(run.handler), run.key}];
    run.behind = first == &run ? 0 : first->number;
  }
}

}  // namespace weir_tool
