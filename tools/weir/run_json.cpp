// SPDX-License-Identifier: MIT
#include "run_json.hpp"

#include <weir/durable/json.hpp>

#include "format.hpp"
#include "run_waits.hpp"

namespace weir_tool {

namespace {

void member(weir::json_writer& out, std::string_view name, std::string_view text) {
  out.key(name);
  out.string(text);
}

void write_wait(weir::json_writer& out, const run_wait& w) {
  member(out, "waits_for", w.text());
  if (w.kind.empty()) return;
  member(out, "wait_kind", w.kind);
  if (!w.name.empty()) member(out, "wait_name", w.name);
  if (w.until) member(out, "wait_until", iso_text(*w.until));
  if (w.since) member(out, "wait_since", iso_text(*w.since));
  if (!w.run.empty()) member(out, "wait_run", w.run);
  if (!w.line.empty()) member(out, "wait_line", w.line);
}

}  // namespace

std::string run_json(const run_entry& run, const run_index& index) {
  weir::json_writer out;
  out.begin_object();
  member(out, "type", "run");
  member(out, "id", run.id);
  out.key("number");
  out.number(run.number);
  member(out, "handler", run.handler);
  out.key("version");
  out.number(run.version);
  if (!run.key.empty()) member(out, "key", run.key);
  member(out, "state", to_string(standing_of(run, index)));
  member(out, "started", iso_text(run.started));
  if (run.begins != run.started) member(out, "begins", iso_text(run.begins));
  if (run.has_ended()) member(out, "ended", iso_text(run.ended));
  out.key("steps");
  out.number(run.steps);
  out.key("records");
  out.number(run.records);
  if (run.parent != 0) {
    out.key("parent");
    out.number(run.parent);
  }
  const bool completed = run.state == weir::durable::run_state::completed;
  if (run.blocked || (run.has_ended() && !completed)) member(out, "message", run.message);
  if (!run.has_ended()) write_wait(out, wait_of(run, index));
  out.end_object();
  return out.take();
}

}  // namespace weir_tool
