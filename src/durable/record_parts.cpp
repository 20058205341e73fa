// SPDX-License-Identifier: MIT
#include "durable/record_parts.hpp"

#include <algorithm>
#include <array>

#include "durable/turn_record.hpp"

namespace weir::detail {

namespace {

void read_nothing(const record_head&, std::string_view, record_parts&) {}

void read_start(const record_head&, std::string_view payload, record_parts& into) {
  const start_record r = start_record::read(payload);
  into.time("at", r.at);
  if (r.begins != r.at) into.time("begins", r.begins);
  into.text("id", r.id);
  into.text("handler", r.handler);
  into.number("version", r.version);
  if (r.parent != 0) {
    into.number("parent", r.parent);
    into.number("parent_command", r.parent_command, part_kind::command);
  }
  if (!r.key.empty()) into.text("key", r.key);
  if (!r.idempotency.empty()) into.text("idempotency", r.idempotency);
  into.text("input", r.input, part_kind::payload);
}

void read_fork(const record_head& head, std::string_view payload, record_parts& into) {
  read_start(head, payload, into);
  payload_reader in(payload);
  (void)start_record::read(in);
  const fork_record r = fork_record::read(in);
  into.number("origin", r.origin);
  into.number("at_step", r.commands);
  into.number("copies", r.records);
}

void read_restart(const record_head& head, std::string_view payload, record_parts& into) {
  read_start(head, payload, into);
  payload_reader in(payload);
  (void)start_record::read(in);
  const restart_record r = restart_record::read(in);
  into.number("replaced", r.replaced);
  into.number("life", r.life);
}

void read_skip(const record_head& head, std::string_view payload, record_parts& into) {
  const skip_record r = skip_record::read(payload);
  into.time("at", r.error.at);
  into.text("command_kind", to_string(kind_of_command(head.flags)));
  into.text("name", r.name);
  into.text("message", r.error.text);
}

void read_answer(const record_head& head, std::string_view payload, record_parts& into) {
  const answer_record r = answer_record::read(payload);
  into.time("at", r.at);
  if (answer_kind(head.flags) == command_answer::kind::value) {
    into.text("value", r.text, part_kind::payload);
    return;
  }
  into.number("code", static_cast<std::uint64_t>(r.code), part_kind::code);
  into.text("message", r.text);
}

void read_command(const record_head& head, std::string_view payload, record_parts& into) {
  const command_record r = command_record::read(payload);
  const command_kind kind = kind_of_command(head.flags);
  into.text("command_kind", to_string(kind));
  into.text("name", r.name);
  if (kind == command_kind::timer || kind == command_kind::limit) {
    into.time("due", wall_time(duration(static_cast<std::int64_t>(r.number))));
  } else if (kind == command_kind::awakeable && r.number != 0) {
    into.number("made_by", r.number);
  } else if (r.number != 0) {
    into.number("code", r.number, part_kind::code);
  }
  if (kind == command_kind::stored) into.text("value", r.value, part_kind::payload);
  if (r.site != 0) into.number("site", r.site, part_kind::site);
}

void read_turn(const record_head& head, std::string_view payload, record_parts& into) {
  read_answer(head, payload, into);
  const turn_record r = turn_record::read(payload);
  into.number("changes", r.changes.size());
  if (r.starts.empty()) return;
  into.number("sends", r.starts.size());
  into.number("first_run", r.first_run);
}

void read_object_state(const record_head&, std::string_view payload, record_parts& into) {
  const object_state_record r = object_state_record::read(payload);
  into.text("object", r.object);
  into.text("key", r.key);
  into.number("values", r.values.size());
}

void read_attempt(const record_head&, std::string_view payload, record_parts& into) {
  into.text("message", payload_reader(payload).text());
}

void read_fired(const record_head& head, std::string_view payload, record_parts& into) {
  into.time("at", payload_reader(payload).time());
  const turn_event event = turn_event_of(head.flags);
  if (event == turn_event::joined) into.text("turn", "joins the inbox");
  if (event == turn_event::begins) into.text("turn", "begins");
}

void read_signal(const record_head&, std::string_view payload, record_parts& into) {
  payload_reader in(payload);
  into.time("at", in.time());
  into.text("name", in.text());
  into.text("value", in.text(), part_kind::payload);
}

void read_hurried(const record_head&, std::string_view payload, record_parts& into) {
  payload_reader in(payload);
  into.number("completion", in.number());
  into.number("turns", in.number());
}

void read_site(const record_head&, std::string_view payload, record_parts& into) {
  const site_record r = site_record::read(payload);
  into.number("site", r.number);
  into.text("file", r.file);
  into.number("line", r.line);
}

void read_blocked(const record_head& head, std::string_view payload, record_parts& into) {
  const blocked_record r = blocked_record::read(payload);
  into.time("at", r.at);
  if (blocked_record::is_block(head.flags)) into.text("message", r.why);
}

void read_compacted(const record_head&, std::string_view payload, record_parts& into) {
  const compacted_record r = compacted_record::read(payload);
  into.number("last_run", r.last_run);
  into.number("forgotten", r.forgotten.size());
}

constexpr std::array kinds{
    record_kind{record_type::run_start, "start", record_role::starts, read_start},
    record_kind{record_type::run_end, "end", record_role::ends, read_answer},
    record_kind{record_type::cancel, "cancel", record_role::other, read_answer},
    record_kind{record_type::command, "command", record_role::command, read_command},
    record_kind{record_type::attempt, "attempt", record_role::answers, read_attempt},
    record_kind{record_type::intent, "intent", record_role::answers, read_nothing},
    record_kind{record_type::answer, "answer", record_role::answers, read_answer},
    record_kind{record_type::fired, "fired", record_role::answers, read_fired},
    record_kind{record_type::resolved, "resolved", record_role::other, read_answer},
    record_kind{record_type::signal, "signal", record_role::other, read_signal},
    record_kind{record_type::deadlock, "deadlock", record_role::other, read_answer},
    record_kind{record_type::hurried, "hurried", record_role::other, read_hurried},
    record_kind{record_type::turn, "turn", record_role::ends, read_turn},
    record_kind{record_type::object_state, "object state", record_role::none, read_object_state},
    record_kind{record_type::fork, "fork", record_role::starts, read_fork},
    record_kind{record_type::restart, "restart", record_role::starts, read_restart},
    record_kind{record_type::skip, "skip", record_role::other, read_skip},
    record_kind{record_type::compacted, "compacted", record_role::none, read_compacted},
    record_kind{record_type::mark, "mark", record_role::none, read_nothing},
    record_kind{record_type::site, "site", record_role::none, read_site},
    record_kind{record_type::blocked, "blocked", record_role::other, read_blocked},
};

}  // namespace

void record_parts::time(std::string_view name, wall_time at) {
  parts_.push_back(
      {name, part_kind::time, static_cast<std::uint64_t>(at.time_since_epoch().count()), {}});
}

void record_parts::number(std::string_view name, std::uint64_t n, part_kind kind) {
  parts_.push_back({name, kind, n, {}});
}

void record_parts::text(std::string_view name, std::string_view text, part_kind kind) {
  parts_.push_back({name, kind, 0, text});
}

const record_part* record_parts::find(std::string_view name) const noexcept {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const record_part& p) { return p.name == name; });
  return found == parts_.end() ? nullptr : &*found;
}

std::span<const record_kind> record_kinds() noexcept { return kinds; }

void each_started_run(const record_head& head, std::string_view payload,
                      const std::function<void(std::uint64_t, const start_record&)>& call) {
  if (starts_run(head.type)) return call(head.run, start_record::read(payload, head.flags));
  if (static_cast<record_type>(head.type) != record_type::turn) return;
  const turn_record turn = turn_record::read(payload);
  for (std::size_t i = 0; i < turn.starts.size(); ++i) call(turn.first_run + i, turn.starts[i]);
}

const record_kind* kind_of_record(std::uint16_t type) noexcept {
  for (const record_kind& k : kinds)
    if (static_cast<std::uint16_t>(k.type) == type) return &k;
  return nullptr;
}

}  // namespace weir::detail
