// SPDX-License-Identifier: MIT
// Runs that begin with the history of another one.
#include "durable/engine_core.hpp"

#include <algorithm>

namespace weir::detail {

namespace {

/// Collects the records of one run.
class records_reader final : public record_reader {
 public:
  explicit records_reader(std::uint64_t run) noexcept : run_(run) {}
  void see(const record_head& head, std::string_view payload, std::uint64_t,
           record_place) override {
    if (head.run == run_) found.push_back({head, std::string(payload)});
    each_sent_start(head, payload, [&](const record_head& start, std::string_view bytes) {
      if (start.run == run_) found.push_back({start, std::string(bytes)});
    });
  }
  std::vector<exported_record> found;

 private:
  std::uint64_t run_;
};

/// Whether it is a numbered command of the handler's own fiber.
bool is_root_command(const record_head& head) noexcept {
  return head.type == static_cast<std::uint16_t>(record_type::command) &&
         head.fiber == root_fiber && kind_of_command(head.flags) != command_kind::patch;
}

/// Cuts the records where the handler's own fiber has issued `commands` commands and is about to
/// issue the next. Returns how many it has issued at most.
std::uint64_t cut_after(std::vector<exported_record>& records, std::uint64_t commands) {
  std::uint64_t issued = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!is_root_command(records[i].head)) continue;
    if (records[i].head.index > commands) {
      records.resize(i);
      return commands;
    }
    issued = std::max<std::uint64_t>(issued, records[i].head.index);
  }
  return issued;
}

/// Throws errc::invalid_argument if the kept part of a turn has read a stored value: the fork would
/// commit what follows from it, and by then the value may be another one.
void require_nothing_read(const std::string& id, const std::vector<exported_record>& records) {
  if (kind_of_start(records.front().head.flags) != handler_kind::exclusive) return;
  std::uint32_t issued = 0;
  for (const exported_record& r : records) {
    const bool command = r.head.type == static_cast<std::uint16_t>(record_type::command);
    if (command && kind_of_command(r.head.flags) == command_kind::stored) {
      const bool own = r.head.fiber == root_fiber;
      std::string text("fork: run '" + id + "' has read stored '");
      text.append(command_record::read(r.payload).name).append("' as command ");
      text.append(std::to_string(r.head.index)).append(own ? " of its handler" : " of a child");
      if (!own) text.append(", after command " + std::to_string(issued) + " of its handler");
      text.append(", and the value may be another one when the fork has its turn; ");
      const std::uint32_t before = own ? r.head.index : issued;
      if (before == 0) raise(errc::invalid_argument, text.append("restart the run"));
      text.append("fork before it, at step ").append(std::to_string(before - 1));
      raise(errc::invalid_argument, text.append(before == 1 ? "" : " at most"));
    }
    if (is_root_command(r.head)) issued = std::max<std::uint32_t>(issued, r.head.index);
  }
}

}  // namespace

// The places of the records are known while the run has not ended; afterwards they are found
// between its start and its end.
std::vector<exported_record> engine_core::records_of(const known_run& known) {
  std::vector<exported_record> all;
  if (known.run == nullptr || known.run->ended()) {
    const ended_run run = known.ended ? *known.ended : entry_of(*known.run);
    records_reader reader(run.number);
    journal_->look_at_segments(segment_of(run.start), segment_of(run.end), reader);
    all = std::move(reader.found);
    const auto end = std::find_if(all.begin(), all.end(),
                                  [](const exported_record& r) { return ends_run(r.head.type); });
    all.erase(end, all.end());
    return all;
  }
  const durable_run& run = *known.run;
  std::string payload;
  const auto add = [&](record_place place) {
    const record_head head = journal_->read(place, payload);
    if (head.run == run.number()) return all.push_back({head, payload});
    each_sent_start(head, payload, [&](const record_head& start, std::string_view bytes) {
      if (start.run == run.number()) all.push_back({start, std::string(bytes)});
    });
  };
  add(run.start_place);
  run.places.for_each(add);
  return all;
}

engine_core::begun engine_core::fork(const std::string& id, std::int64_t at_step,
                                     const std::string& new_id_given) {
  require_open("fork");
  std::vector<exported_record> records = records_of(require_known(id));
  std::erase_if(records, [](const exported_record& r) {  // it waits for its own turn
    const auto type = static_cast<record_type>(r.head.type);
    return type == record_type::blocked ||
           (type == record_type::fired && turn_event_of(r.head.flags) != turn_event::none);
  });
  if (records.empty())
    raise(errc::journal_corrupt,
          text_of_use("fork") + " does not find the records of run '" + id + "'");
  if (at_step < 0)
    raise(errc::invalid_argument, "fork: the step is " + std::to_string(at_step) +
                                      "; give the number of commands to keep, 0 or more");
  const std::uint64_t issued = cut_after(records, static_cast<std::uint64_t>(at_step));
  if (issued < static_cast<std::uint64_t>(at_step))
    raise(errc::invalid_argument, "fork: run '" + id + "' cannot be forked at step " +
                                      std::to_string(at_step) + ": its handler has issued " +
                                      std::to_string(issued) +
                                      " commands; give a number from 0 to that");
  require_nothing_read(id, records);
  if (!new_id_given.empty() && find_known(new_id_given))
    raise(errc::id_in_use, "fork: there is a run '" + new_id_given + "' already; give another id");
  const std::string made_id = new_id_given.empty() ? new_id() : new_id_given;
  start_record start = start_record::read(records.front().payload, records.front().head.flags);
  start.version = newest_version(start.handler);
  if (start.version == 0)
    raise(errc::unknown_handler, "fork: no handler '" + std::string(start.handler) +
                                     "' was added to the durable engine on '" + setup_.path + "'");
  require_room();
  start.id = made_id;
  start.idempotency = {};
  start.parent = start.parent_command = 0;
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::fork);
  head.flags = records.front().head.flags;
  head.run = ++last_number_;
  payload_writer payload;
  start.write(payload);
  fork_record{records.front().head.run, static_cast<std::uint32_t>(at_step), records.size() - 1}
      .write(payload);
  journal::appended at = append_start(head, payload);
  require_running();
  run_map::node_type node = new_run(head.run);
  durable_run& run = node.mapped();
  describe(run, start);
  run.start_place = at.place;
  run.depends = at.lsn;
  run.bytes = bytes_in_log(payload.view().bytes);
  for (auto r = records.begin() + 1; r != records.end(); ++r) {
    payload_writer copy;
    copy_payload(r->head, r->payload, copy);
    r->head.run = head.run;
    at = append_start(r->head, copy);
    require_running();
    note_record(run, r->head, copy.view().bytes, at.lsn, at.place);
  }
  run.start_lsn = run.depends = at.lsn;  // before that, it was never started
  runs_.insert(runs_.end(), std::move(node));
  add_to_index(run);
  start.at = start.begins;
  if (start.kind != handler_kind::plain) enter_object(run, start);
  starting_.push_back(&run);
  resume(run);
  return {run.id.str(), run.start_lsn, run.number()};
}

}  // namespace weir::detail
