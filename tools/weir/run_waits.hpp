// SPDX-License-Identifier: MIT
// How an unfinished run stands: what it does or waits for, as far as its records say.
//
// A journal does not say whether a run is in memory. It says what a run has asked for, what it got,
// and that it is blocked.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <weir/duration.hpp>

#include "run_index.hpp"

namespace weir_tool {

/// The states that the tool shows.
enum class standing : std::uint8_t { running, waiting, blocked, completed, failed, cancelled };
inline constexpr std::array standings{standing::running,   standing::waiting, standing::blocked,
                                      standing::completed, standing::failed,  standing::cancelled};
std::string_view to_string(standing s) noexcept;

/// What an unfinished run does or waits for.
struct run_wait {
  std::string_view kind;  // step, sleep, awakeable, signal, call, turn, begin; empty: unknown
  std::string name;       // of the command; of a turn: its object and key
  std::optional<weir::wall_time> until;
  std::optional<weir::wall_time> since;  // of a step
  std::string run;                       // the one that was called, or that has the turn
  std::uint32_t attempts = 0;            // that have failed
  std::uint64_t more = 0;                // other things that it does or waits for
  std::string line;                      // "orders.cpp:41"; empty: unknown

  /// "awakeable approval", for people; empty if nothing is known.
  std::string text() const;
};

/// REQUIRES: the index is settled.
run_wait wait_of(const run_entry& run, const run_index& index);
standing standing_of(const run_entry& run, const run_index& index);

}  // namespace weir_tool
