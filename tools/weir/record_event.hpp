// SPDX-License-Identifier: MIT
// A record as a line for people, and as JSON for programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <weir/duration.hpp>

#include "console.hpp"
#include "durable/record_parts.hpp"
#include "run_index.hpp"

namespace weir_tool {

struct record_event {
  std::optional<weir::wall_time> at;  // many records have none
  std::string event;                  // "step", "value", "attempt 2 failed"
  std::string name;                   // of its command
  std::string detail;
  std::optional<weir::wall_time> due;  // of a timer
  std::string line;                    // of a command: "orders.cpp:41"; empty: unknown
  ink with = ink::plain;
};

/// `command`: what the record belongs to, null if that is unknown. `payloads`: values are shown,
/// not only their types and sizes.
record_event describe(const weir::detail::record_head& head, std::string_view payload,
                      const command_entry* command, const weir::detail::site_table& sites,
                      bool payloads);

/// "object, 25 B", or the value itself.
std::string value_text(std::string_view json, bool shown);

/// One JSON object, without a line feed. `run`: null if unknown.
std::string record_json(const weir::detail::record_head& head, std::string_view payload,
                        std::uint64_t lsn, const run_entry* run,
                        const weir::detail::site_table& sites, bool payloads);

}  // namespace weir_tool
