// SPDX-License-Identifier: MIT
// Replaying a run: comparing its commands with the journal, until it has caught up.
#include "durable/run.hpp"

#include <algorithm>

#include "core/error_notes.hpp"
#include "core/user_place.hpp"
#include "durable/engine_core.hpp"

namespace weir::detail {

namespace {

/// A run that does not come to rest within this many turns of its strands gets its next completion
/// anyway. The position is recorded, so that it is the same in a replay.
constexpr std::uint64_t restless_turns_max = 10'000;

}  // namespace

// A replay does it at the recorded position. If that record was lost with the tail of the journal,
// nothing that is left depends on the position.
bool durable_run::hurry() {
  const std::uint64_t turns = live->inner.steps() - live->rested_at;
  if (live->replay != nullptr) {
    const run_history& past = live->replay->past;
    const auto known = past.hurried.find(live->delivered);
    if (known != past.hurried.end()) return turns >= known->second;
    if (turns < restless_turns_max || !past.commands.empty()) return false;
    if (!past.hurried.empty() && past.hurried.rbegin()->first > live->delivered) return false;
    if (past.completions.empty() && !go_live()) return false;
  }
  if (turns < restless_turns_max) return false;
  const live_run::completion_list* const from = live->source();
  if (from == nullptr || from->empty()) return false;
  payload_writer payload;
  payload.number(live->delivered).number(turns);
  engine_.append(*this, record_type::hurried, 0, 0, payload.view());
  return true;
}

// Starts the commands that were under way, in the order in which they were issued.
bool durable_run::go_live() {
  if (const auto& left = live->replay->past.commands; !left.empty()) {
    const auto first = std::min_element(left.begin(), left.end(), [](const auto& a, const auto& b) {
      return a.second.place < b.second.place;
    });
    block_missing(first->first, first->second);
    return false;
  }
  if (engine_.only_looks()) return true;
  live->replaying = false;
  if (live->replay->past.blocked) engine_.note_unblocked(*this);
  for (const live_run::fresh_command& c : live->replay->fresh) {
    std::string problem;
    if (c.sends && engine_.start_sent(*c.sends, problem) != errc{}) {
      block(problem);
      return false;
    }
    const std::optional<record_place> place =
        record(c.key, c.kind, {c.name, c.digest, c.number, c.value, engine_.site_of(c.site)});
    if (!place) return false;
    if (c.kind == command_kind::patch) continue;
    const auto timer = live->timers.find(c.key);
    if (timer != live->timers.end()) timer->second.order = *place;
  }
  for (auto& [key, t] : live->timers) engine_.start_timer(t);
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
  live->replay.reset();
  return true;
}

// A marker has the position of the fiber's last command and is not counted, so that commands have
// the same numbers with and without it. What is left of the journal proves that the run was past
// this place: nothing of it was written before the code was here, except in the first life, to
// which signals and cancellations may have come before it began.
bool durable_run::patch(std::string_view patch_id, std::source_location site) {
  auto& patches = live->need_tables().patches;
  const auto known = patches.find(patch_id);
  if (known != patches.end()) return known->second;
  bool left = live->past_end;
  if (live->replay != nullptr) {
    const run_history& past = live->replay->past;
    left = left || !past.commands.empty() || !past.completions.empty();
  }
  const bool repeats = live->replaying && !live->first_life && left;
  patches.emplace(patch_id, !repeats);
  if (repeats || stopped()) return !repeats;
  const live_run::fiber_record& f = running_fiber();
  const std::uint64_t key = command_key(f.id, f.commands);
  if (live->replaying) {
    live->replay->fresh.push_back(
        {key, command_kind::patch, std::string(patch_id), 0, 0, {}, site});
  } else {
    (void)record(key, command_kind::patch, {patch_id, 0, 0, {}, engine_.site_of(site)});
  }
  return true;
}

// ------------------------------------------------------------------ code that does not match

std::string command_text(command_kind kind, std::string_view name) {
  std::string text(to_string(kind));
  if (!name.empty()) text.append(" '").append(name).append("'");
  return text;
}

std::string command_place(std::source_location site) {
  return site.line() == 0 ? running_place() : text_of(site);
}

namespace {

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
  if (live->children != nullptr)
    for (const auto& [f, known] : live->children->running)
      if (known.id == fiber_id) at = f;
  std::string text(at == live->root.get() ? "the handler" : "the child");
  return text.append(" is at ").append(place_in(*at));
}

std::string durable_run::recorded_place(std::uint32_t site) const {
  const std::string_view at = engine_.site_text(site);
  return at.empty() ? std::string() : std::string(", recorded at ").append(at);
}

void durable_run::block_missing(std::uint64_t key, const run_history::command& left) {
  std::string text("the code does not match the journal: the journal has ");
  text.append(command_text(left.kind, left.name));
  text.append(" as command ").append(std::to_string(index_of_key(key)));
  text.append(fiber_of_key(key) == root_fiber ? " of the handler" : " of a child");
  text.append(recorded_place(left.site));
  text.append(", which the code does not do any more: ").append(where_it_is(fiber_of_key(key)));
  block(text.append(old_code));
}

bool durable_run::matches(const run_history::command& was, command_kind kind, std::string_view name,
                          std::uint64_t digest, std::uint64_t key, std::source_location site) {
  if (was.kind == kind && was.name == name && was.digest == digest) return true;
  std::string text("the code does not match the journal: command ");
  text.append(std::to_string(index_of_key(key)));
  text.append(fiber_of_key(key) == root_fiber ? " of the handler was " : " of a child was ");
  text.append(command_text(was.kind, was.name)).append(" and is ").append(command_text(kind, name));
  if (was.kind == kind && was.name == name) text.append(" with another input");
  text.append(" now, at ").append(command_place(site)).append(recorded_place(was.site));
  block(text.append(old_code));
  set_blocked_on(blocked_command{key, kind, std::string(name), digest, {}});
  return false;
}

}  // namespace weir::detail
