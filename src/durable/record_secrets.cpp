// SPDX-License-Identifier: MIT
#include "durable/record_secrets.hpp"

#include <weir/error.hpp>

#include "durable/turn_record.hpp"

namespace weir::detail {

namespace {

/// Decodes a payload and encodes it again, by the same functions as the engine, which mark what is
/// secret. False if the type is not known.
bool write_again(const record_head& head, std::string_view payload, payload_writer& out) {
  payload_reader in(payload);
  switch (static_cast<record_type>(head.type)) {
    case record_type::run_start:
      start_record::read(in).write(out);
      return true;
    case record_type::fork:
      start_record::read(in).write(out);
      fork_record::read(in).write(out);
      return true;
    case record_type::restart:
      start_record::read(in).write(out);
      restart_record::read(in).write(out);
      return true;
    case record_type::run_end:
    case record_type::cancel:
    case record_type::answer:
    case record_type::resolved:
    case record_type::deadlock:
      answer_record::read(in).write(out);
      return true;
    case record_type::command:
      command_record::read(payload).write(out);
      return true;
    case record_type::attempt:
      out.secret(in.text());
      return true;
    case record_type::signal:
      completion::read(head, payload).write(out);
      return true;
    case record_type::turn:
      turn_record::read(payload).write(out);
      return true;
    case record_type::object_state:
      object_state_record::read(payload).write(out);
      return true;
    case record_type::skip:
      skip_record::read(payload).write(out);
      return true;
    case record_type::blocked:
      blocked_record::read(payload).write(out);
      return true;
    default:
      return false;
  }
}

/// Times, numbers and nothing else.
bool has_no_secrets(record_type type) noexcept {
  return type == record_type::intent || type == record_type::fired ||
         type == record_type::hurried || type == record_type::site ||
         type == record_type::compacted || type == record_type::mark;
}

}  // namespace

void find_secrets(const record_head& head, std::string_view payload,
                  std::vector<secret_part>& parts) {
  if (payload.empty() || has_no_secrets(static_cast<record_type>(head.type))) return;
  payload_writer again;
  bool known = false;
  try {
    known = write_again(head, payload, again);
  } catch (const error&) {
    known = false;  // too short for its type: whatever it is, it is not left readable
  }
  const payload_view written = again.view();
  if (known && written.bytes == payload) {
    parts.insert(parts.end(), written.secrets.begin(), written.secrets.end());
  } else {
    parts.push_back({0, static_cast<std::uint32_t>(payload.size())});
  }
}

}  // namespace weir::detail
