// SPDX-License-Identifier: MIT
#include "durable/turn_record.hpp"

namespace weir::detail {

void turn_record::write(payload_writer& out) const {
  answer.write(out);
  out.small(static_cast<std::uint32_t>(changes.size()));
  for (const change& c : changes) {
    out.name(c.name).small(c.value ? 1 : 0);
    if (c.value) out.secret(*c.value);
  }
  out.number(first_run).small(static_cast<std::uint32_t>(starts.size()));
  for (const start_record& s : starts) {
    out.small(static_cast<std::uint32_t>(s.kind));
    s.write(out);
  }
}

turn_record turn_record::read(std::string_view payload) {
  payload_reader in(payload);
  turn_record r;
  r.answer = answer_record::read(in);
  for (std::uint32_t n = in.small(); n > 0; --n) {
    change& c = r.changes.emplace_back();
    c.name = in.text();
    if (in.small() != 0) c.value = in.text();
  }
  r.first_run = in.number();
  for (std::uint32_t n = in.small(); n > 0; --n) {
    const auto kind = static_cast<handler_kind>(in.small());
    r.starts.push_back(start_record::read(in));
    r.starts.back().kind = kind;
  }
  return r;
}

void each_sent_start(const record_head& head, std::string_view payload,
                     const std::function<void(const record_head&, std::string_view)>& use) {
  if (static_cast<record_type>(head.type) != record_type::turn) return;
  const turn_record turn = turn_record::read(payload);
  record_head start;
  start.type = static_cast<std::uint16_t>(record_type::run_start);
  for (std::size_t i = 0; i < turn.starts.size(); ++i) {
    start.run = turn.first_run + i;
    start.flags = static_cast<std::uint16_t>(turn.starts[i].kind);
    payload_writer out;
    turn.starts[i].write(out);
    use(start, out.view().bytes);
  }
}

void object_state_record::write(payload_writer& out) const {
  out.name(object).name(key).small(static_cast<std::uint32_t>(values.size()));
  for (const auto& [name, value] : values) out.name(name).secret(value);
}

object_state_record object_state_record::read(std::string_view payload) {
  payload_reader in(payload);
  object_state_record r;
  r.object = in.text();
  r.key = in.text();
  for (std::uint32_t n = in.small(); n > 0; --n) {
    const std::string_view name = in.text();
    r.values.emplace_back(name, in.text());
  }
  return r;
}

}  // namespace weir::detail
