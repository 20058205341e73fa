// SPDX-License-Identifier: MIT
// The records of objects: the commit of a turn, and the whole state of a key.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "durable/object.hpp"
#include "durable/run_record.hpp"

namespace weir::detail {

/// The parts of turn. It begins like run_end: the same code reads the answer of both.
struct turn_record {
  struct change {
    std::string_view name;
    std::optional<std::string_view> value;  // none: cleared
  };
  answer_record answer;
  std::vector<change> changes;
  std::uint64_t first_run = 0;  // the number of the first one in `starts`
  std::vector<start_record> starts;

  void write(payload_writer& out) const;
  static turn_record read(std::string_view payload);
};

/// The parts of object_state: all stored values of one key. It replaces what was known of the key.
struct object_state_record {
  std::string_view object;
  std::string_view key;
  std::vector<std::pair<std::string_view, std::string_view>> values;

  void write(payload_writer& out) const;
  static object_state_record read(std::string_view payload);
};

/// Calls `use` for each start in a turn, with head and payload as of a record of its own; not at
/// all for records of other types.
void each_sent_start(const record_head& head, std::string_view payload,
                     const std::function<void(const record_head&, std::string_view)>& use);

/// How the delay or the wait of a turn ended: the flags of `fired` records without a command.
enum class turn_event : std::uint16_t {
  none = 0,    // an ordinary timer
  joined = 1,  // a delayed run has joined its inbox; its place follows the time
  begins = 2,  // a run has the turn that it has waited for
};
inline turn_event turn_event_of(std::uint16_t flags) noexcept {
  return static_cast<turn_event>(flags & 0xffU);
}

}  // namespace weir::detail
