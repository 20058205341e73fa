// SPDX-License-Identifier: MIT
#include "run_waits.hpp"

#include "format.hpp"

namespace weir_tool {

using namespace weir::detail;
using weir::durable::run_state;

namespace {

bool is_step(command_kind kind) noexcept {
  return kind == command_kind::step || kind == command_kind::step_once;
}

/// Which of two open commands a person looks for first: a step, which keeps the run busy, or the
/// one that was issued last.
bool matters_more(const command_entry& a, const command_entry& b) noexcept {
  if (is_step(a.kind) != is_step(b.kind)) return is_step(a.kind);
  return a.order > b.order;
}

run_wait wait_for_turn(const run_entry& run, const run_index& index) {
  run_wait w;
  w.kind = "turn";
  w.name = run.handler.substr(0, run.handler.rfind('/')) + "[" + run.key + "]";
  if (const run_entry* const first = index.find(run.behind)) w.run = first->id;
  return w;
}

run_wait wait_for(const command_entry& c, std::uint64_t open, const run_index& index) {
  run_wait w;
  w.kind = to_string(c.kind);
  w.name = c.name;
  if (c.kind == command_kind::timer)
    w.until = weir::wall_time(weir::duration(static_cast<std::int64_t>(c.number)));
  if (is_step(c.kind)) w.since = c.since;
  w.run = c.callee;
  w.attempts = c.attempts;
  w.more = open - 1;
  w.line = index.sites().text(c.site);
  return w;
}

}  // namespace

std::string_view to_string(standing s) noexcept {
  switch (s) {
    case standing::running:
      return "running";
    case standing::waiting:
      return "waiting";
    case standing::blocked:
      return "blocked";
    case standing::completed:
      return "completed";
    case standing::failed:
      return "failed";
    case standing::cancelled:
      return "cancelled";
  }
  return {};
}

std::string run_wait::text() const {
  std::string text(kind);
  if (kind == "turn") text += " of";
  if (!name.empty()) text += " " + plain(name);
  if (!run.empty()) text += (kind == "turn" ? ", behind run " : ", run ") + plain(run);
  if (until) text += (kind == "begin" ? " at " : " until ") + date_text(*until);
  if (since) text += " since " + date_text(*since);
  if (attempts > 0) text += ", " + counted(attempts, "attempt") + " failed";
  if (more > 0) text += " and " + std::to_string(more) + " more";
  return text;
}

run_wait wait_of(const run_entry& run, const run_index& index) {
  if (run.has_ended()) return {};
  if (run.behind != 0) return wait_for_turn(run, index);
  if (!run.begun && run.begins > run.started) {
    run_wait w;
    w.kind = "begin";
    w.until = run.begins;
    return w;
  }
  const command_entry* found = nullptr;
  std::uint64_t open = 0;
  for (const auto& [key, command] : run.commands) {
    if (command.answered) continue;
    ++open;
    if (found == nullptr || matters_more(command, *found)) found = &command;
  }
  return found == nullptr ? run_wait() : wait_for(*found, open, index);
}

standing standing_of(const run_entry& run, const run_index& index) {
  switch (run.state) {
    case run_state::completed:
      return standing::completed;
    case run_state::failed:
      return standing::failed;
    case run_state::cancelled:
      return standing::cancelled;
    default:
      break;
  }
  if (run.blocked) return standing::blocked;
  const run_wait w = wait_of(run, index);
  return w.kind.empty() || w.since ? standing::running : standing::waiting;
}

}  // namespace weir_tool
