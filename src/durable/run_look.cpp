// SPDX-License-Identifier: MIT
// Replaying a run to the end of its journal and no further.
#include "durable/run.hpp"

#include <algorithm>

#include "core/error_notes.hpp"
#include "durable/engine_core.hpp"

namespace weir::detail {

namespace {

/// A run that takes this many turns without getting anywhere in its journal does not come to rest;
/// its journal says so where it got something nevertheless.
constexpr std::uint64_t idle_turns_max = 100'000;

constexpr const char* mismatch = "the code does not match the journal: ";

std::string end_text(const command_answer& end) {
  return "the run has ended there (" + std::string(durable::to_string(state_after(end.how))) + ")";
}

}  // namespace

std::string durable_run::look(const std::optional<command_answer>& end) {
  live->past_end = end.has_value();
  std::uint64_t idle_max = idle_turns_max;
  for (const auto& [number, turns] : live->replay->past.hurried)
    idle_max = std::max(idle_max, 2 * turns);
  progress how = progress::more;
  while (how == progress::more) {
    how = drive();
    if (how == progress::more && live->inner.steps() - live->rested_at > idle_max) break;
  }
  if (how == progress::blocked) return std::string(message());
  const run_history& past = live->replay->past;
  if (how == progress::more && !(past.commands.empty() && past.completions.empty()))
    return std::string(mismatch) + "the run does not come to rest: " + where_it_is(root_fiber);
  if (!end) return {};
  if (!live->replay->fresh.empty()) {
    const live_run::fresh_command& c = live->replay->fresh.front();
    const std::string at =
        c.site.line() == 0 ? where_it_is(fiber_of_key(c.key)) : "at " + text_of(c.site);
    return std::string(mismatch) + end_text(*end) + ", and the code has " +
           command_text(c.kind, c.name) + ", " + at;
  }
  if (how != progress::ended)
    return std::string(mismatch) + end_text(*end) + ", and " + where_it_is(root_fiber);
  return other_end(*end);
}

// Messages of errors may contain lines and addresses, so they are not compared. An error of another
// code is one of the journal, which could not record the result.
std::string durable_run::other_end(const command_answer& end) {
  if (end.code != errc::terminal && end.code != errc::deadlock) return {};
  const std::string at = where_it_is(root_fiber);
  const command_answer now = take_result();
  if (now.how != end.how)
    return std::string(mismatch) + end_text(end) + ", and now it has " +
           std::string(durable::to_string(state_after(now.how))) + ": " + at;
  if (now.how == command_answer::kind::value && now.text != end.text)
    return std::string(mismatch) + "the result had " + std::to_string(end.text.size()) +
           " bytes of JSON, and now it has other " + std::to_string(now.text.size()) + ": " + at;
  return {};
}

}  // namespace weir::detail
