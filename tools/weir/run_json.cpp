// SPDX-License-Identifier: MIT
#include "run_json.hpp"

#include <weir/durable/json.hpp>

#include "format.hpp"

namespace weir_tool {

namespace {

void member(weir::json_writer& out, std::string_view name, std::string_view text) {
  out.key(name);
  out.string(text);
}

}  // namespace

std::string run_json(const run_entry& run) {
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
  member(out, "state", to_string(run.state));
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
  if (run.has_ended() && run.state != weir::durable::run_state::completed)
    member(out, "message", run.message);
  if (!run.has_ended()) member(out, "waits_for", waits_for(run));
  out.end_object();
  return out.take();
}

}  // namespace weir_tool
