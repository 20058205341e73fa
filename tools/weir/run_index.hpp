// SPDX-License-Identifier: MIT
// What the records of a journal say of its runs.
//
// Invariants: runs are in the order of their start. The commands of a run are kept until it ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weir/durable/engine.hpp>
#include <weir/duration.hpp>

#include "durable/record_parts.hpp"
#include "durable/site_table.hpp"

namespace weir_tool {

/// A command that a run has recorded.
struct command_entry {
  weir::detail::command_kind kind{};
  std::string name;
  std::uint64_t number = 0;  // of a timer: when it is due
  std::uint32_t site = 0;    // where it was issued; 0: unknown
  std::uint32_t attempts = 0;
  bool answered = false;
  weir::wall_time since{};        // the time of the run when it was issued
  std::uint64_t order = 0;        // among the records of its run
  std::uint64_t completions = 0;  // that the run had got before
  std::string callee{};           // the id of the run that a call has started
};

struct run_entry {
  std::uint64_t number = 0;
  std::string id;
  std::string handler;
  std::string key;
  std::string message;  // why it has failed, or is blocked
  std::uint32_t version = 1;
  weir::durable::run_state state = weir::durable::run_state::running;  // running: not ended
  weir::wall_time started{};
  weir::wall_time begins{};
  weir::wall_time ended{};
  std::uint64_t steps = 0;
  std::uint64_t records = 0;
  std::uint64_t parent = 0;
  std::uint64_t copies = 0;  // records that a fork begins with
  bool replaced = false;     // by a restart, with the same id
  bool begun = false;        // its handler has done something
  bool blocked = false;
  weir::wall_time clock{};        // of its last record that has a time
  std::uint64_t completions = 0;  // that it has got
  /// Its place in the inbox of its key, if it is a run of an exclusive handler that has joined it.
  using inbox_place = std::pair<std::uint64_t, std::uint64_t>;
  std::optional<inbox_place> place;
  std::uint64_t behind = 0;  // the run that has the turn it waits for; 0: none
  std::unordered_map<std::uint64_t, command_entry> commands;
  std::vector<std::uint64_t> open_waits;  // keys of timers and signals without an answer

  bool has_ended() const noexcept { return state != weir::durable::run_state::running; }
  /// Not for an engine: replaced, or a fork that a crash has cut off.
  bool is_gone() const noexcept { return replaced || records <= copies; }
};

class run_index {
 public:
  void clear();
  /// Returns the run of the record; null if the journal did not start it. Throws
  /// errc::journal_corrupt for a payload that is too short.
  run_entry* see(const weir::detail::record_head& head, std::string_view payload);
  /// After the last record: finds out which runs wait for the turns of others.
  void settle();

  const std::vector<run_entry>& runs() const noexcept { return runs_; }
  run_entry* find(std::uint64_t number) noexcept;
  const run_entry* find(std::uint64_t number) const noexcept;
  /// The run of this id, the latest if several had it, or of this number, written #17. Null if
  /// there is none.
  const run_entry* named(std::string_view name) const noexcept;
  /// The time of the latest record that has one.
  weir::wall_time latest() const noexcept { return latest_; }
  /// The source lines of commands.
  const weir::detail::site_table& sites() const noexcept { return sites_; }

 private:
  void start(std::uint64_t number, const weir::detail::start_record& r);
  void see_start(run_entry& run, weir::detail::record_type type);
  void see_command(run_entry& run, const weir::detail::record_head& head, std::string_view payload);
  void see_other(run_entry& run, const weir::detail::record_head& head, std::string_view payload);
  static void end(run_entry& run, const weir::detail::record_head& head, std::string_view payload);

  std::vector<run_entry> runs_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // in runs_, by number
  weir::wall_time latest_{};
  weir::detail::record_parts parts_;  // of the record being seen
  weir::detail::site_table sites_;
};

}  // namespace weir_tool
