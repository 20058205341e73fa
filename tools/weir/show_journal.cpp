// SPDX-License-Identifier: MIT
// A summary of a whole journal.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <weir/durable/json.hpp>

#include "commands.hpp"
#include "format.hpp"
#include "reading.hpp"
#include "run_waits.hpp"
#include "table.hpp"

namespace weir_tool {

using namespace weir::detail;

namespace {

using by_state = std::array<std::uint64_t, standings.size()>;

/// What is counted of a journal.
struct census {
  std::uint64_t records = 0;
  std::uint64_t runs = 0;
  by_state all{};
  std::map<std::pair<std::string, std::uint32_t>, by_state> handlers;
  std::optional<weir::wall_time> first;
};

census take_census(const run_index& index) {
  census c;
  for (const run_entry& run : index.runs()) {
    if (run.is_gone()) continue;
    const auto state = static_cast<std::size_t>(standing_of(run, index));
    ++c.runs;
    c.records += run.records;
    ++c.all[state];
    ++c.handlers[{run.handler, run.version}][state];
    if (!c.first || run.started < *c.first) c.first = run.started;
  }
  return c;
}

void print_summary(const request& r, const journal_reader& from, bool readable, const census& c,
                   weir::wall_time latest, console& to) {
  const auto fact = [&](std::string_view name, const std::string& text) {
    std::string title(name);
    title.resize(10, ' ');
    to.line(to.tint(title, ink::dim) + text);
  };
  fact("journal", plain(r.path));
  if (readable) {
    const log_view v = from.view();
    fact("format", "version " + std::to_string(journal_version) +
                       (v.key_id == 0 ? ", not encrypted" : ", encrypted"));
    fact("log", counted(v.next_lsn - v.first_lsn, "record") + " in " +
                    counted(v.segments, "segment") + " (" + size_text(v.bytes) + ")");
    fact("closed", v.closed ? "yes" : "no: in use, or its process has ended without closing it");
  }
  std::string text = count_text(c.runs);
  for (std::size_t i = 0; i < standings.size(); ++i)
    if (c.all[i] != 0)
      text += (text.find(':') == std::string::npos ? ": " : ", ") + count_text(c.all[i]) + " " +
              std::string(to_string(standings[i]));
  fact("runs", text);
  if (!c.first) return;
  fact("first", date_text(*c.first) + " UTC");
  fact("latest", date_text(latest) + " UTC");
  to.line();
  table rows({{"HANDLER"},
              {"VERSION", true},
              {"RUNNING", true},
              {"WAITING", true},
              {"BLOCKED", true},
              {"COMPLETED", true},
              {"FAILED", true},
              {"CANCELLED", true}});
  for (const auto& [handler, count] : c.handlers) {
    std::vector<table::cell> cells{{plain(handler.first), ink::bold},
                                   {std::to_string(handler.second)}};
    for (const std::uint64_t n : count) cells.push_back({count_text(n)});
    rows.row(std::move(cells));
  }
  rows.print(to);
}

void write_counts(weir::json_writer& out, const by_state& count) {
  for (std::size_t i = 0; i < standings.size(); ++i) {
    out.key(to_string(standings[i]));
    out.number(count[i]);
  }
}

std::string summary_json(const request& r, const journal_reader& from, bool readable,
                         const census& c, weir::wall_time latest) {
  weir::json_writer out;
  out.begin_object();
  out.key("journal");
  out.string(r.path);
  if (readable) {
    const log_view v = from.view();
    const std::array<std::pair<std::string_view, std::uint64_t>, 7> numbers{
        {{"format", journal_version},
         {"key_id", v.key_id},
         {"first_lsn", v.first_lsn},
         {"next_lsn", v.next_lsn},
         {"first_segment", v.first_segment},
         {"segments", v.segments},
         {"bytes", v.bytes}}};
    for (const auto& [name, n] : numbers) {
      out.key(name);
      out.number(n);
    }
    out.key("closed");
    out.boolean(v.closed);
  }
  out.key("runs");
  out.begin_object();
  write_counts(out, c.all);
  out.end_object();
  if (c.first) {
    out.key("first");
    out.string(iso_text(*c.first));
    out.key("latest");
    out.string(iso_text(latest));
  }
  out.key("handlers");
  out.begin_array();
  for (const auto& [handler, count] : c.handlers) {
    out.begin_object();
    out.key("handler");
    out.string(handler.first);
    out.key("version");
    out.number(handler.second);
    write_counts(out, count);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace

int show_journal(const request& r, console& to) {
  auto from = open_journal(r);
  run_index index;
  indexing_visitor into(to, index);
  const auto damage = read_until_damage(from, into);
  const census c = take_census(index);
  if (r.json) {
    to.line(summary_json(r, from, !damage, c, index.latest()));
  } else {
    print_summary(r, from, !damage, c, index.latest(), to);
  }
  return finish(damage, to);
}

}  // namespace weir_tool
