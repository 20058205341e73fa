// SPDX-License-Identifier: MIT
#include "record_event.hpp"

#include <weir/durable/json.hpp>
#include <weir/error.hpp>

#include "format.hpp"

namespace weir_tool {

using namespace weir::detail;

namespace {

weir::wall_time as_time(std::uint64_t number) {
  return weir::wall_time(weir::duration(static_cast<std::int64_t>(number)));
}

std::string text_of(const record_parts& parts, std::string_view name) {
  const record_part* p = parts.find(name);
  return p == nullptr ? std::string() : plain(p->text);
}

std::string message_of(const record_parts& parts) {
  const record_part* p = parts.find("message");
  return p == nullptr ? std::string() : plain_message(p->text);
}

std::string code_text(std::uint64_t code) {
  return weir::make_error_code(static_cast<weir::errc>(code)).message();
}

std::string command_text(std::uint64_t key) {
  return std::to_string(fiber_of_key(key)) + "." + std::to_string(index_of_key(key));
}

std::string part_text(const record_part& p, bool payloads) {
  switch (p.kind) {
    case part_kind::time:
      return date_text(as_time(p.number));
    case part_kind::number:
    case part_kind::site:
      return std::to_string(p.number);
    case part_kind::command:
      return command_text(p.number);
    case part_kind::code:
      return code_text(p.number);
    case part_kind::text:
      return plain(p.text);
    case part_kind::payload:
      return value_text(p.text, payloads);
  }
  return {};
}

/// For kinds without words of their own: the parts with their names.
std::string all_parts(const record_parts& parts, bool payloads) {
  std::string all;
  for (const record_part& p : parts.all()) {
    if (p.name == "at") continue;
    all += (all.empty() ? "" : ", ") + std::string(p.name) + " " + part_text(p, payloads);
  }
  return all;
}

void describe_start(record_event& e, const record_parts& parts, bool payloads) {
  const record_part* version = parts.find("version");
  e.name = text_of(parts, "handler");
  e.detail = version == nullptr ? "" : "version " + std::to_string(version->number);
  if (const record_part* key = parts.find("key")) e.detail += ", key " + plain(key->text);
  if (const record_part* life = parts.find("life"))
    e.detail += ", life " + std::to_string(life->number);
  if (const record_part* origin = parts.find("origin"))
    e.detail += ", from run #" + std::to_string(origin->number);
  if (const record_part* begins = parts.find("begins"))
    e.detail += ", begins " + date_text(as_time(begins->number));
  if (const record_part* input = parts.find("input"); input != nullptr && !input->text.empty())
    e.detail += ", input " + value_text(input->text, payloads);
}

void describe_command(record_event& e, const record_head& head, const record_parts& parts,
                      bool payloads) {
  e.event = to_string(kind_of_command(head.flags));
  e.name = text_of(parts, "name");
  if (const record_part* due = parts.find("due")) e.due = as_time(due->number);
  if (const record_part* code = parts.find("code"))
    e.detail = "refused: " + code_text(code->number);
  if (const record_part* value = parts.find("value")) e.detail = value_text(value->text, payloads);
}

std::string line_of(const record_parts& parts, const site_table& sites) {
  const record_part* const site = parts.find("site");
  if (site == nullptr || site->kind != part_kind::site) return {};
  return plain(sites.text(static_cast<std::uint32_t>(site->number)));
}

void describe_answer(record_event& e, const record_head& head, const record_parts& parts,
                     bool payloads) {
  switch (answer_kind(head.flags)) {
    case command_answer::kind::value:
      e.with = ink::good;
      if (const record_part* value = parts.find("value"))
        e.detail = value_text(value->text, payloads);
      return;
    case command_answer::kind::cancelled:
      e.with = ink::warn;
      e.detail = message_of(parts);
      return;
    default:
      e.with = ink::bad;
      e.detail = message_of(parts);
  }
}

/// What the end of a turn has committed.
void add_effects(record_event& e, const record_parts& parts) {
  if (const record_part* const changes = parts.find("changes"))
    e.detail += ", " + counted(changes->number, "value") + " stored";
  if (const record_part* const sends = parts.find("sends"))
    e.detail += ", " + counted(sends->number, "run") + " sent";
}

std::string_view answer_word(std::uint16_t flags) noexcept {
  switch (answer_kind(flags)) {
    case command_answer::kind::value:
      return "value";
    case command_answer::kind::cancelled:
      return "cancelled";
    default:
      return "error";
  }
}

std::string_view end_word(std::uint16_t flags) noexcept {
  switch (answer_kind(flags)) {
    case command_answer::kind::value:
      return "completed";
    case command_answer::kind::cancelled:
      return "cancelled";
    default:
      return "failed";
  }
}

/// What this kind says in its own words.
void describe_kind(record_event& e, const record_kind& kind, const record_head& head,
                   const record_parts& parts, const command_entry* command, bool payloads) {
  if (kind.role == record_role::starts) return describe_start(e, parts, payloads);
  switch (kind.type) {
    case record_type::command:
      return describe_command(e, head, parts, payloads);
    case record_type::run_end:
    case record_type::turn:
      e.event = end_word(head.flags);
      describe_answer(e, head, parts, payloads);
      return add_effects(e, parts);
    case record_type::answer:
      e.event = answer_word(head.flags);
      return describe_answer(e, head, parts, payloads);
    case record_type::resolved:
      e.event = answer_kind(head.flags) == command_answer::kind::value ? "resolved"
                                                                       : answer_word(head.flags);
      return describe_answer(e, head, parts, payloads);
    case record_type::cancel:
      e.event = "cancel";
      e.detail = message_of(parts);
      e.with = ink::warn;
      return;
    case record_type::deadlock:
      e.detail = message_of(parts);
      e.with = ink::bad;
      return;
    case record_type::attempt:
      e.event = "attempt failed";
      if (command != nullptr && command->attempts > 0)
        e.event = "attempt " + std::to_string(command->attempts) + " failed";
      e.detail = message_of(parts);
      e.with = ink::warn;
      return;
    case record_type::intent:
      e.event = "begins";
      return;
    case record_type::blocked:
      if (!blocked_record::is_block(head.flags)) {
        e.event = "continues";
        return;
      }
      e.detail = message_of(parts);
      e.with = ink::bad;
      return;
    case record_type::signal:
      e.name = text_of(parts, "name");
      if (const record_part* value = parts.find("value"))
        e.detail = value_text(value->text, payloads);
      e.with = ink::good;
      return;
    default:
      e.detail = all_parts(parts, payloads);
      if (parts.find("message") == nullptr) return;
      e.name = text_of(parts, "name");
      e.detail = message_of(parts);
      e.with = ink::warn;
  }
}

void write_part(weir::json_writer& out, const record_part& p, const site_table& sites,
                bool payloads) {
  if (p.kind == part_kind::site) {
    const std::string_view line = sites.text(static_cast<std::uint32_t>(p.number));
    if (line.empty()) return;
    out.key("line");
    return out.string(line);
  }
  if (p.kind == part_kind::payload) {
    out.key(std::string(p.name) + "_type");
    out.string(json_type(p.text));
    out.key(std::string(p.name) + "_bytes");
    out.number(p.text.size());
    if (!payloads || p.text.empty()) return;
  }
  out.key(p.name);
  switch (p.kind) {
    case part_kind::time:
      return out.string(iso_text(as_time(p.number)));
    case part_kind::number:
      return out.number(p.number);
    case part_kind::command:
      return out.string(command_text(p.number));
    case part_kind::code:
      return out.number(p.number);
    default:
      return out.string(p.text);
  }
}

}  // namespace

std::string value_text(std::string_view json, bool shown) {
  if (json.empty()) return "nothing";
  if (shown) return plain(json);
  if (json == "null") return "null";
  return std::string(json_type(json)) + ", " + size_text(json.size());
}

record_event describe(const record_head& head, std::string_view payload,
                      const command_entry* command, const site_table& sites, bool payloads) {
  record_event e;
  const record_kind* kind = kind_of_record(head.type);
  if (kind == nullptr) {
    e.event = "type " + std::to_string(head.type);
    e.detail = "unknown to this version of weir, " + size_text(payload.size());
    return e;
  }
  record_parts parts;
  kind->read(head, payload, parts);
  e.event = kind->name;
  if (const record_part* at = parts.find("at")) e.at = as_time(at->number);
  if (command != nullptr && head.index != 0) {
    e.name = plain(command->name);
    if (e.name.empty()) e.name = to_string(command->kind);
  }
  describe_kind(e, *kind, head, parts, command, payloads);
  e.line = line_of(parts, sites);
  return e;
}

std::string record_json(const record_head& head, std::string_view payload, std::uint64_t lsn,
                        const run_entry* run, const site_table& sites, bool payloads) {
  weir::json_writer out;
  out.begin_object();
  out.key("lsn");
  out.number(lsn);
  out.key("run_number");
  out.number(head.run);
  if (run != nullptr) {
    out.key("run");
    out.string(run->id);
  }
  const record_kind* kind = kind_of_record(head.type);
  out.key("type");
  out.string(kind == nullptr ? "type " + std::to_string(head.type) : std::string(kind->name));
  if (head.index != 0) {
    out.key("command");
    out.string(command_text(command_key(head.fiber, head.index)));
  }
  if (kind != nullptr) {
    record_parts parts;
    kind->read(head, payload, parts);
    if (parts.find("message") != nullptr || parts.find("value") != nullptr) {
      if (kind->role == record_role::ends) {
        out.key("state");
        out.string(end_word(head.flags));
      } else if (kind->type == record_type::answer || kind->type == record_type::resolved) {
        out.key("outcome");
        out.string(answer_word(head.flags));
      }
    }
    for (const record_part& p : parts.all()) write_part(out, p, sites, payloads);
  }
  out.end_object();
  return out.take();
}

}  // namespace weir_tool
