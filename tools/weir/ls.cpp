// SPDX-License-Identifier: MIT
#include <weir/durable/json.hpp>

#include "commands.hpp"
#include "format.hpp"
#include "reading.hpp"
#include "run_json.hpp"
#include "table.hpp"

namespace weir_tool {

using weir::durable::run_state;

namespace {

table::cell state_cell(run_state state) {
  switch (state) {
    case run_state::completed:
      return {"completed", ink::good};
    case run_state::failed:
      return {"failed", ink::bad};
    case run_state::cancelled:
      return {"cancelled", ink::warn};
    default:
      return {std::string(to_string(state)), ink::bold};
  }
}

table::cell end_cell(const run_entry& run) {
  if (!run.has_ended()) return {};
  return {"+" + span_text(run.ended - run.started)};
}

bool is_asked_for(const run_entry& run, const request& r) {
  if (run.is_gone()) return false;
  if (!r.state.empty() && to_string(run.state) != r.state) return false;
  return r.handler.empty() || run.handler == r.handler;
}

void print_table(const std::vector<run_entry>& runs, const request& r, console& to) {
  table rows({{"ID"},
              {"HANDLER"},
              {"VER", true},
              {"STATE"},
              {"STARTED (UTC)"},
              {"ENDED", true},
              {"STEPS", true},
              {"MESSAGE"}});
  std::size_t shown = 0;
  for (const run_entry& run : runs) {
    if (!is_asked_for(run, r)) continue;
    ++shown;
    std::string handler = plain(run.handler);
    if (!run.key.empty()) handler += "[" + plain(run.key) + "]";
    rows.row({{plain(run.id), ink::bold},
              {handler},
              {std::to_string(run.version)},
              state_cell(run.state),
              {date_text(run.started)},
              end_cell(run),
              {std::to_string(run.steps)},
              {run.has_ended() ? plain_message(run.message) : waits_for(run), ink::dim}});
  }
  rows.print(to);
  if (shown == 0) to.line(runs.empty() ? "no runs" : "no runs like that");
}

}  // namespace

int list_runs(const request& r, console& to) {
  auto from = open_journal(r);
  run_index index;
  indexing_visitor into(to, index);
  const auto damage = read_until_damage(from, into);
  if (r.json) {
    for (const run_entry& run : index.runs())
      if (is_asked_for(run, r)) to.line(run_json(run));
  } else {
    print_table(index.runs(), r, to);
  }
  return finish(damage, to);
}

}  // namespace weir_tool
