// SPDX-License-Identifier: MIT
#include <weir/durable/json.hpp>

#include "commands.hpp"
#include "format.hpp"
#include "reading.hpp"
#include "run_json.hpp"
#include "run_waits.hpp"
#include "table.hpp"

namespace weir_tool {

namespace {

table::cell state_cell(standing s) {
  switch (s) {
    case standing::completed:
      return {"completed", ink::good};
    case standing::failed:
      return {"failed", ink::bad};
    case standing::blocked:
      return {"blocked", ink::bad};
    case standing::cancelled:
      return {"cancelled", ink::warn};
    default:
      return {std::string(to_string(s)), ink::bold};
  }
}

std::string message_cell(const run_entry& run, const run_index& index) {
  return run.has_ended() || run.blocked ? plain_message(run.message) : wait_of(run, index).text();
}

table::cell end_cell(const run_entry& run) {
  if (!run.has_ended()) return {};
  return {"+" + span_text(run.ended - run.started)};
}

bool is_in_state(const run_entry& run, const run_index& index, const std::string& state) {
  if (state.empty()) return true;
  return state == unfinished_state ? !run.has_ended() : to_string(standing_of(run, index)) == state;
}

bool is_asked_for(const run_entry& run, const run_index& index, const request& r) {
  if (run.is_gone() || !is_in_state(run, index, r.state)) return false;
  return r.handler.empty() || run.handler == r.handler;
}

void print_table(const run_index& index, const request& r, console& to) {
  table rows({{"ID"},
              {"HANDLER"},
              {"VER", true},
              {"STATE"},
              {"STARTED (UTC)"},
              {"ENDED", true},
              {"STEPS", true},
              {"MESSAGE"}});
  std::size_t shown = 0;
  for (const run_entry& run : index.runs()) {
    if (!is_asked_for(run, index, r)) continue;
    ++shown;
    std::string handler = plain(run.handler);
    if (!run.key.empty()) handler += "[" + plain(run.key) + "]";
    rows.row({{plain(run.id), ink::bold},
              {handler},
              {std::to_string(run.version)},
              state_cell(standing_of(run, index)),
              {date_text(run.started)},
              end_cell(run),
              {std::to_string(run.steps)},
              {message_cell(run, index), ink::dim}});
  }
  rows.print(to);
  if (shown == 0) to.line(index.runs().empty() ? "no runs" : "no runs like that");
}

}  // namespace

int list_runs(const request& r, console& to) {
  auto from = open_journal(r);
  run_index index;
  indexing_visitor into(to, index);
  const auto damage = read_until_damage(from, into);
  if (r.json) {
    for (const run_entry& run : index.runs())
      if (is_asked_for(run, index, r)) to.line(run_json(run, index));
  } else {
    print_table(index, r, to);
  }
  return finish(damage, to);
}

}  // namespace weir_tool
