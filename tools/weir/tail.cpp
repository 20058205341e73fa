// SPDX-License-Identifier: MIT
// The last records of a journal, and those that follow.
#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include <poll.h>

#include "commands.hpp"
#include "format.hpp"
#include "reading.hpp"
#include "record_event.hpp"

namespace weir_tool {

using namespace weir::detail;

namespace {

constexpr int between_looks_ms = 50;

class tail_printer {
 public:
  tail_printer(const request& r, const run_index& index, console& to)
      : request_(r), index_(index), to_(to) {}

  /// Lines of source files are shown with the commands that are there.
  bool shows(const seen_record& r) const noexcept {
    return request_.json || r.head.type != static_cast<std::uint16_t>(record_type::site);
  }

  std::string text(const seen_record& r) {
    if (request_.json)
      return record_json(r.head, r.payload, r.lsn, r.run, index_.sites(), request_.payloads);
    const command_entry* command = nullptr;
    if (r.run != nullptr && r.head.index != 0) {
      const auto found = r.run->commands.find(command_key(r.head.fiber, r.head.index));
      if (found != r.run->commands.end()) command = &found->second;
    }
    const record_event e = describe(r.head, r.payload, command, index_.sites(), request_.payloads);
    std::string time = e.at ? date_text(*e.at) : "";
    time.resize(date_columns, ' ');
    std::string id = r.head.run == 0 ? "-" : "#" + std::to_string(r.head.run);
    if (r.run != nullptr) id = plain(r.run->id);
    const std::string fields[] = {aligned(std::move(id), id_columns_),
                                  aligned(e.event, event_columns_), aligned(e.name, name_columns_)};
    std::string line = to_.tint(time, ink::dim) + "  " + to_.tint(fields[0], ink::bold) + "  " +
                       to_.tint(fields[1], e.with) + "  " + fields[2];
    std::size_t used = date_columns + 4;
    for (const std::string& f : fields) used += width(f) + 2;
    std::string detail = e.detail;
    if (e.due) add_words(detail, "until " + date_text(*e.due));
    if (!e.line.empty()) add_words(detail, "at " + e.line);
    if (!detail.empty())
      line += "  " + cut(detail, std::max(to_.columns(), used + narrowest) - used);
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }

 private:
  static constexpr std::size_t date_columns = 19;
  static constexpr std::size_t narrowest = 12;
  static constexpr std::size_t widest = 80;

  /// Columns are as wide as what was seen so far, because what follows is not known.
  static std::string aligned(std::string text, std::size_t& columns) {
    text = cut(text, widest);
    columns = std::max(columns, width(text));
    text.append(columns - width(text), ' ');
    return text;
  }

  const request& request_;
  const run_index& index_;
  console& to_;
  std::size_t id_columns_ = 0;
  std::size_t event_columns_ = 9;
  std::size_t name_columns_ = 0;
};

}  // namespace

int tail_journal(const request& r, console& to) {
  auto from = open_journal(r);
  run_index index;
  tail_printer printer(r, index, to);
  std::deque<std::string> last;
  indexing_visitor into(to, index);
  into.on_restart([&] { last.clear(); });
  into.on_record([&](const seen_record& record) {
    if (r.last == 0 || !printer.shows(record)) return;
    if (last.size() == r.last) last.pop_front();
    last.push_back(printer.text(record));
  });
  const auto damage = read_until_damage(from, into);
  for (const std::string& line : last) to.line(line);
  if (damage || !r.follow) return finish(damage, to);
  to.flush();
  into.on_record([&](const seen_record& record) {
    if (printer.shows(record)) to.line(printer.text(record));
  });
  for (;;) {
    (void)from.follow(into);
    to.flush();
    (void)::poll(nullptr, 0, between_looks_ms);
  }
}

}  // namespace weir_tool
