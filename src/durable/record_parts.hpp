// SPDX-License-Identifier: MIT
// What the records of an engine say, for people and programs that read a journal: one table with a
// line for each kind. Payloads are decoded by the code that the engine uses (run_record.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "durable/run_record.hpp"

namespace weir::detail {

enum class part_kind : std::uint8_t {
  time,     // nanoseconds since 1970
  number,   // e.g. a version
  command,  // fiber and index as one number
  code,     // of an error, weir::errc
  site,     // the number of a source line
  text,     // a name, an id, a message
  payload,  // a value of the program, as JSON
};

/// A part of a payload, by its name. Texts are views of the payload.
struct record_part {
  std::string_view name;
  part_kind kind{};
  std::uint64_t number = 0;
  std::string_view text;
};

class record_parts {
 public:
  void time(std::string_view name, wall_time at);
  void number(std::string_view name, std::uint64_t n, part_kind kind = part_kind::number);
  void text(std::string_view name, std::string_view text, part_kind kind = part_kind::text);
  void clear() noexcept { parts_.clear(); }

  std::span<const record_part> all() const noexcept { return parts_; }
  /// Null if there is none of that name.
  const record_part* find(std::string_view name) const noexcept;

 private:
  std::vector<record_part> parts_;
};

/// How a record relates to its run.
enum class record_role : std::uint8_t {
  starts,   // the first one of its run
  ends,     // the last one, once
  command,  // something that the run did
  answers,  // a command that was recorded before
  other,    // concerns the run, or a command that may be recorded later
  none,     // belongs to no run
};

struct record_kind {
  record_type type;
  std::string_view name;
  record_role role;
  /// Throws errc::journal_corrupt if the payload is too short.
  void (*read)(const record_head& head, std::string_view payload, record_parts& into);
};

std::span<const record_kind> record_kinds() noexcept;
/// Null if this version does not know the type.
const record_kind* kind_of_record(std::uint16_t type) noexcept;

/// Calls a function for each run that the record starts, with its number.
void each_started_run(const record_head& head, std::string_view payload,
                      const std::function<void(std::uint64_t, const start_record&)>& call);

}  // namespace weir::detail
