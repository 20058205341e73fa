// SPDX-License-Identifier: MIT
// The history of one run: a timeline for people, one object per line for programs.
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "commands.hpp"
#include "format.hpp"
#include "reading.hpp"
#include "record_event.hpp"
#include "run_history.hpp"
#include "run_json.hpp"
#include "run_waits.hpp"
#include "table.hpp"

namespace weir_tool {

using namespace weir::detail;
using namespace std::chrono_literals;

namespace {

/// A time without records that is longer than this is one line of a timeline.
constexpr weir::duration idle_gap = 1min;

void print_head(const run_entry& run, const run_index& index, const history& of, const request& r,
                console& to) {
  const auto fact = [&](std::string_view name, const std::string& text, ink with = ink::plain) {
    std::string title(name);
    title.resize(10, ' ');
    to.line(to.tint(title, ink::dim) + to.tint(text, with));
  };
  fact("run", plain(run.id), ink::bold);
  std::string handler = plain(run.handler) + ", version " + std::to_string(run.version);
  if (!run.key.empty()) handler += ", key " + plain(run.key);
  fact("handler", handler);
  std::string state(to_string(standing_of(run, index)));
  if (run.has_ended()) state += " after " + span_text(run.ended - run.started);
  const run_wait wait = wait_of(run, index);
  if (!wait.kind.empty()) state += ": " + wait.text();
  if (!wait.line.empty()) state += ", at " + plain(wait.line);
  fact("state", state);
  if (!run.message.empty()) fact("cause", plain_message(run.message), ink::bad);
  fact("started", date_text(run.started) + " UTC");
  if (run.begins > run.started) fact("begins", date_text(run.begins) + " UTC");
  if (run.has_ended()) fact("ended", date_text(run.ended) + " UTC");
  const record_kind* kind = kind_of_record(of.records().front().head.type);
  record_parts parts;
  kind->read(of.records().front().head, of.records().front().payload, parts);
  if (const record_part* input = parts.find("input"))
    fact("input", value_text(input->text, r.payloads));
}

/// Prints events in order, with the time since the start, and folds what is idle.
class timeline {
 public:
  timeline(const run_entry& run, const site_table& sites, console& to)
      : run_(run), sites_(sites), to_(to) {}

  void add(const kept_record& r, const history& of, bool payloads) {
    const command_entry* command = note_command(r);
    const record_event e = describe(r.head, r.payload, command, sites_, payloads);
    if (e.at) fold(*e.at);
    std::string detail = e.detail;
    if (r.head.type == static_cast<std::uint16_t>(record_type::command)) {
      const std::string child = of.child(command_key(r.head.fiber, r.head.index));
      if (!child.empty()) add_words(detail, "run " + plain(child));
    }
    if (e.due) add_words(detail, "until +" + span_text(*e.due - run_.started));
    if (!e.line.empty()) add_words(detail, "at " + e.line);
    rows_.row({{e.at ? "+" + span_text(*e.at - run_.started) : "", ink::dim},
               {command_label(r.head), ink::dim},
               {e.event, e.with},
               {e.name, ink::bold},
               {detail}});
  }
  void print() { rows_.print(to_); }

 private:
  /// Commands are known from their record on; attempts are counted.
  const command_entry* note_command(const kept_record& r) {
    const std::uint64_t key = command_key(r.head.fiber, r.head.index);
    if (r.head.index == 0) return nullptr;
    if (r.head.type == static_cast<std::uint16_t>(record_type::command)) {
      const command_record c = command_record::read(r.payload);
      commands_[key] = {kind_of_command(r.head.flags), std::string(c.name), c.number, c.site};
    }
    const auto found = commands_.find(key);
    if (found == commands_.end()) return nullptr;
    found->second.attempts += r.head.type == static_cast<std::uint16_t>(record_type::attempt);
    return &found->second;
  }
  void fold(weir::wall_time at) {
    if (last_ && at - *last_ > idle_gap)
      rows_.row({{"⋮", ink::dim}, {}, {span_text(at - *last_) + " idle", ink::dim}, {}, {}});
    last_ = at;
  }
  /// The fibers of a run have large numbers; here they are counted as they appear.
  std::string command_label(const record_head& head) {
    if (head.index == 0) return {};
    if (fibers_.empty()) fibers_.emplace(root_fiber, 1);
    const auto fiber = fibers_.emplace(head.fiber, fibers_.size() + 1).first->second;
    return std::to_string(fiber) + "." + std::to_string(head.index);
  }

  const run_entry& run_;
  const site_table& sites_;
  console& to_;
  table rows_{{{"TIME", true}, {"COMMAND"}, {"EVENT"}, {"NAME"}, {"DETAIL"}}};
  std::unordered_map<std::uint64_t, command_entry> commands_;
  std::map<std::uint32_t, std::size_t> fibers_;
  std::optional<weir::wall_time> last_;
};

}  // namespace

int show_run(const request& r, console& to) {
  auto from = open_journal(r);
  run_index index;
  history of(r.run);
  const auto damage = of.read(from, index, to);
  const run_entry* const run = index.find(of.number());
  if (run == nullptr) {
    if (damage) throw weir::error(*damage);
    raise_no_run(r);
  }
  if (r.json) {
    to.line(run_json(*run, index));
    for (const kept_record& k : of.records())
      to.line(record_json(k.head, k.payload, k.lsn, run, index.sites(), r.payloads));
    return finish(damage, to);
  }
  print_head(*run, index, of, r, to);
  to.line();
  timeline times(*run, index.sites(), to);
  for (const kept_record& k : of.records()) times.add(k, of, r.payloads);
  times.print();
  return finish(damage, to);
}

}  // namespace weir_tool
