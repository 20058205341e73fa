// SPDX-License-Identifier: MIT
// Checks frames, blobs and the structure of the engine's records; changes nothing.
//
// Ensures: what an engine refuses is found here, too: the frames are read by the same scan, and the
// rules for records include those of an engine that opens the journal.
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <weir/durable/json.hpp>

#include "commands.hpp"
#include "durable/journal_error.hpp"
#include "durable/journal_files.hpp"
#include "format.hpp"
#include "record_event.hpp"

namespace weir_tool {

using namespace weir::detail;

namespace {

constexpr std::size_t problems_max = 100;

struct problem {
  std::string file;
  std::uint64_t offset = 0;
  std::string why;
};

class structure final : public journal_visitor {
 public:
  structure(std::string directory, console& to) : directory_(std::move(directory)), to_(to) {}

  void restart() override {
    problems.clear();
    runs_.clear();
    records = runs = 0;
    more = 0;
    forgotten_ = 0;
  }

  void see(const record_head& head, std::string_view payload, std::uint64_t,
           record_place place) override {
    if (++records % 4096 == 0) to_.progress("checking", records);
    const record_kind* kind = kind_of_record(head.type);
    if (kind == nullptr)
      return found(place, "a record of type " + std::to_string(head.type) +
                              ", which this version of weir does not know");
    record_parts parts;
    try {
      kind->read(head, payload, parts);
    } catch (const weir::error&) {
      return found(place, named(*kind) + " is shorter than its kind");
    }
    if (const record_part* last = parts.find("last_run")) forgotten_ = last->number;
    if (kind->role == record_role::none) return;
    each_started_run(head, payload, [&](std::uint64_t number, const start_record&) {
      if (!runs_.try_emplace(number).second)
        found(place, "a second start of run " + std::to_string(number));
      else
        ++runs;
    });
    if (kind->role != record_role::starts) see_run(*kind, head, place);
  }

  std::vector<problem> problems;
  std::uint64_t more = 0;  // problems that are not kept
  std::uint64_t records = 0;
  std::uint64_t runs = 0;

 private:
  struct known_run {
    bool ended = false;
    std::unordered_set<std::uint64_t> commands;
  };

  static std::string named(const record_kind& kind) {
    return "a record of type " + std::to_string(static_cast<unsigned>(kind.type)) + " (" +
           std::string(kind.name) + ")";
  }
  void found(record_place place, std::string why) {
    if (problems.size() == problems_max) {
      ++more;
      return;
    }
    problems.push_back(
        {directory_ + "/" + segment_name(segment_of(place)), offset_of(place), std::move(why)});
  }
  void see_run(const record_kind& kind, const record_head& head, record_place place) {
    const std::string of = " of run " + std::to_string(head.run);
    const auto known = runs_.find(head.run);
    if (known == runs_.end() && head.run <= forgotten_) return;
    if (known == runs_.end())
      return found(place, named(kind) + of + ", which the journal does not start");
    known_run& run = known->second;
    if (kind.role == record_role::ends) {
      if (run.ended) found(place, "a second end" + of);
      run.ended = true;
      run.commands = {};
      return;
    }
    if (run.ended) return;  // ignored by every reader
    const std::uint64_t key = command_key(head.fiber, head.index);
    if (is_marker(head)) return;
    if (kind.role == record_role::command) {
      if (!run.commands.insert(key).second)
        found(place, "command " + command_text(head) + of + " is recorded twice");
    } else if (kind.role == record_role::answers && head.index != 0 &&
               !run.commands.contains(key)) {
      found(place, named(kind) + of + " for command " + command_text(head) +
                       ", which is not recorded before it");
    }
  }
  /// A patch has the number of the command before it.
  static bool is_marker(const record_head& head) noexcept {
    return head.type == static_cast<std::uint16_t>(record_type::command) &&
           to_string(kind_of_command(head.flags)) == "patch";
  }
  static std::string command_text(const record_head& head) {
    return std::to_string(head.fiber) + "." + std::to_string(head.index);
  }

  std::string directory_;
  console& to_;
  std::unordered_map<std::uint64_t, known_run> runs_;
  std::uint64_t forgotten_ = 0;  // runs up to it may be missing: a compaction has dropped them
};

std::string check_json(const request& r, const structure& s, const std::optional<log_view>& view) {
  weir::json_writer out;
  out.begin_object();
  out.key("journal");
  out.string(r.path);
  out.key("well");
  out.boolean(s.problems.empty());
  out.key("records");
  out.number(s.records);
  out.key("runs");
  out.number(s.runs);
  if (view) {
    out.key("segments");
    out.number(view->segments);
    out.key("torn_bytes");
    out.number(view->torn);
    out.key("manifest");
    out.boolean(view->has_manifest);
  }
  out.key("problems");
  out.begin_array();
  for (const problem& p : s.problems) {
    out.begin_object();
    out.key("file");
    out.string(p.file);
    out.key("offset");
    out.number(p.offset);
    out.key("problem");
    out.string(p.why);
    out.end_object();
  }
  out.end_array();
  out.key("more_problems");
  out.number(s.more);
  out.end_object();
  return out.take();
}

void print_check(const request& r, const structure& s, const std::optional<log_view>& view,
                 console& to) {
  const std::string seen = counted(s.records, "record") + " of " + counted(s.runs, "run");
  for (const problem& p : s.problems)
    to.line(to.tint("damage", ink::bad) + "  " + plain(p.file) + " at offset " +
            std::to_string(p.offset) + ": " + plain(p.why));
  if (s.more != 0) to.line("and " + counted(s.more, "more problem"));
  if (!s.problems.empty())
    return to.line(plain(r.path) + " is damaged; " + seen +
                   " were read, nothing was changed; restore the files from a copy");
  to.line(to.tint("well", ink::good) + "  " + plain(r.path) + ": " + seen + " in " +
          counted(view->segments, "segment"));
  if (view->torn != 0)
    to.line("      " + counted(view->torn, "byte") +
            " after the end of the log are a write that was never acknowledged, or is under way");
  if (!view->has_manifest)
    to.line("      the manifest is missing or damaged; the next open rebuilds it");
}

}  // namespace

int check_journal(const request& r, console& to) {
  auto from = open_journal(r);
  structure s(r.path, to);
  std::optional<log_view> view;
  try {
    from.read(s);
    view = from.view();
  } catch (const corrupt_error& e) {
    s.problems.push_back({e.file(), e.offset(), e.why()});
  }
  if (r.json) {
    to.line(check_json(r, s, view));
  } else {
    print_check(r, s, view, to);
  }
  return s.problems.empty() ? exit_well : exit_found;
}

}  // namespace weir_tool
