// SPDX-License-Identifier: MIT
#include "run_index.hpp"

#include <algorithm>
#include <charconv>

#include "format.hpp"

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

}  // namespace

void run_index::clear() {
  runs_.clear();
  places_.clear();
  latest_ = {};
}

run_entry* run_index::find(std::uint64_t number) noexcept {
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
  const auto place = places_.find(number);
  return place == places_.end() ? nullptr : &runs_[place->second];
}

void run_index::start(std::uint64_t number, const start_record& r) {
  places_[number] = runs_.size();
  run_entry& run = runs_.emplace_back();
  run.number = number;
  run.id = r.id;
  run.handler = r.handler;
  run.key = r.key;
  run.version = r.version;
  run.started = r.at;
  run.begins = r.begins;
  run.parent = r.parent;
}

void run_index::end(run_entry& run, const record_head& head, std::string_view payload) {
  const answer_record r = answer_record::read(payload);
  run.state = state_of(answer_kind(head.flags));
  run.ended = r.at;
  run.message = run.state == run_state::completed ? std::string_view() : r.text;
  run.commands = {};
}

run_entry* run_index::see(const record_head& head, std::string_view payload) {
  const record_kind* kind = kind_of_record(head.type);
  if (kind == nullptr) return find(head.run);
  parts_.clear();
  kind->read(head, payload, parts_);
  if (const record_part* at = parts_.find("at"))
    latest_ =
        std::max(latest_, weir::wall_time(weir::duration(static_cast<std::int64_t>(at->number))));
  if (kind->type == record_type::compacted)
    for (const std::uint64_t number : compacted_record::read(payload).forgotten)
      if (run_entry* const gone = find(number)) gone->replaced = true;
  if (kind->role == record_role::none) return nullptr;
  each_started_run(head, payload,
                   [&](std::uint64_t number, const start_record& r) { start(number, r); });
  if (const record_part* earlier = parts_.find("replaced"))
    if (run_entry* const gone = find(earlier->number)) gone->replaced = true;
  run_entry* const run = find(head.run);
  if (run == nullptr) return nullptr;
  if (const record_part* copies = parts_.find("copies")) run->copies = copies->number;
  ++run->records;
  if (kind->role == record_role::starts) return run;
  if (run->has_ended()) return run;  // what follows the end is ignored
  if (kind->role == record_role::ends) {
    end(*run, head, payload);
    return run;
  }
  const std::uint64_t key = command_key(head.fiber, head.index);
  if (kind->role == record_role::command) {
    const command_record r = command_record::read(payload);
    const command_kind what = kind_of_command(head.flags);
    if (what == command_kind::patch) return run;  // a marker, at the number of another command
    run->commands[key] = {what, std::string(r.name), r.number, 0, !waits(what)};
    run->steps += what == command_kind::step || what == command_kind::step_once;
    return run;
  }
  const auto command = run->commands.find(key);
  if (command == run->commands.end()) return run;
  if (kind->type == record_type::attempt) ++command->second.attempts;
  if (is_completion(kind->type) && kind->type != record_type::cancel)
    command->second.answered = true;
  return run;
}

std::string waits_for(const run_entry& run) {
  if (run.has_ended()) return {};
  if (run.records == 1 && run.begins > run.started) return "begins " + date_text(run.begins);
  // The latest command of the fiber that issued one last is what a person looks for first.
  const command_entry* found = nullptr;
  std::uint64_t best = 0;
  std::size_t open = 0;
  for (const auto& [key, command] : run.commands) {
    if (command.answered) continue;
    ++open;
    const std::uint64_t order = index_of_key(key);
    if (found != nullptr && (order < best || (order == best && command.name < found->name)))
      continue;
    best = order;
    found = &command;
  }
  if (found == nullptr) return {};
  std::string text(to_string(found->kind));
  if (found->kind == command_kind::timer) {
    text += " until " +
            date_text(weir::wall_time(weir::duration(static_cast<std::int64_t>(found->number))));
  } else if (!found->name.empty()) {
    text += " " + plain(found->name);
  }
  if (found->attempts > 0) text += ", " + counted(found->attempts, "attempt") + " failed";
  if (open > 1) text += " and " + std::to_string(open - 1) + " more";
  return text;
}

}  // namespace weir_tool
