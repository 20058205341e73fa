// SPDX-License-Identifier: MIT
// What the records of a journal say of its runs.
//
// Invariants: runs are in the order of their start. The commands of a run are kept until it ends.
// Whether an unfinished run is suspended or blocked is not recorded: it counts as running.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <weir/durable/engine.hpp>
#include <weir/duration.hpp>

#include "durable/record_parts.hpp"

namespace weir_tool {

/// A command that a run has recorded.
struct command_entry {
  weir::detail::command_kind kind{};
  std::string name;
  std::uint64_t number = 0;  // of a timer: when it is due
  std::uint32_t attempts = 0;
  bool answered = false;
};

struct run_entry {
  std::uint64_t number = 0;
  std::string id;
  std::string handler;
  std::string key;
  std::string message;  // why it has failed, or what it waits for
  std::uint32_t version = 1;
  weir::durable::run_state state = weir::durable::run_state::running;
  weir::wall_time started{};
  weir::wall_time begins{};
  weir::wall_time ended{};
  std::uint64_t steps = 0;
  std::uint64_t records = 0;
  std::uint64_t parent = 0;
  std::uint64_t copies = 0;  // records that a fork begins with
  bool replaced = false;     // by a restart, with the same id
  std::unordered_map<std::uint64_t, command_entry> commands;

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

  const std::vector<run_entry>& runs() const noexcept { return runs_; }
  run_entry* find(std::uint64_t number) noexcept;
  /// The run of this id, the latest if several had it, or of this number, written #17. Null if
  /// there is none.
  const run_entry* named(std::string_view name) const noexcept;
  /// The time of the latest record that has one.
  weir::wall_time latest() const noexcept { return latest_; }

 private:
  void start(std::uint64_t number, const weir::detail::start_record& r);
  void end(run_entry& run, const weir::detail::record_head& head, std::string_view payload);

  std::vector<run_entry> runs_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // in runs_, by number
  weir::wall_time latest_{};
  weir::detail::record_parts parts_;  // of the record being seen
};

/// What an unfinished run waits for, e.g. "awakeable approval"; empty if nothing is known.
std::string waits_for(const run_entry& run);

}  // namespace weir_tool
