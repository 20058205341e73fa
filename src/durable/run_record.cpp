// SPDX-License-Identifier: MIT
#include "durable/run_record.hpp"

#include <span>

#include <weir/error.hpp>
#include <weir/error_metadata.hpp>

namespace weir::detail {

std::string_view payload_reader::take(std::size_t n) {
  if (rest_.size() < n)
    raise(errc::journal_corrupt,
          "a record of the journal is shorter than its kind; it was written by another version of "
          "weir, or is damaged");
  const std::string_view taken = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return taken;
}

std::uint64_t payload_reader::number() {
  return load<std::uint64_t>(std::as_bytes(std::span(take(8))).data());
}

std::uint32_t payload_reader::small() {
  return load<std::uint32_t>(std::as_bytes(std::span(take(4))).data());
}

wall_time payload_reader::time() {
  return wall_time(duration(static_cast<std::int64_t>(number())));
}

std::string_view payload_reader::text() { return take(small()); }

std::string scoped_idempotency(std::string_view object_key, std::string_view key) {
  if (object_key.empty() || key.empty()) return std::string(key);
  return std::string(object_key).append(1, '\0').append(key);
}

std::string start_record::scoped_idempotency() const {
  return detail::scoped_idempotency(key, idempotency);
}

void start_record::write(payload_writer& out) const {
  out.time(at).time(begins).number(seed).small(version).number(parent).number(parent_command);
  out.name(id).name(handler).name(key).name(idempotency).secret(input);
}

start_record start_record::read(std::string_view payload, std::uint16_t flags) {
  payload_reader in(payload);
  start_record r = read(in);
  r.kind = kind_of_start(flags);
  return r;
}

start_record start_record::read(payload_reader& in) {
  start_record r;
  r.at = in.time();
  r.begins = in.time();
  r.seed = in.number();
  r.version = in.small();
  r.parent = in.number();
  r.parent_command = in.number();
  r.id = in.text();
  r.handler = in.text();
  r.key = in.text();
  r.idempotency = in.text();
  r.input = in.text();
  return r;
}

void fork_record::write(payload_writer& out) const {
  out.number(origin).small(commands).number(records);
}

fork_record fork_record::read(payload_reader& in) {
  fork_record r;
  r.origin = in.number();
  r.commands = in.small();
  r.records = in.number();
  return r;
}

void restart_record::write(payload_writer& out) const { out.number(replaced).small(life); }

restart_record restart_record::read(payload_reader& in) {
  restart_record r;
  r.replaced = in.number();
  r.life = in.small();
  return r;
}

void skip_record::write(payload_writer& out) const {
  out.number(replaces).secret_number(digest).name(name);
  error.write(out);
}

skip_record skip_record::read(std::string_view payload) {
  payload_reader in(payload);
  skip_record r;
  r.replaces = in.number();
  r.digest = in.number();
  r.name = in.text();
  r.error = answer_record::read(in);
  return r;
}

void command_record::write(payload_writer& out) const {
  out.secret_number(digest).number(number).name(name);
  if (!value.empty()) out.secret(value);
  if (site != 0) out.small(site);
}

// A text with something in it has more bytes than a number, so the two cannot be mistaken.
command_record command_record::read(std::string_view payload) {
  payload_reader in(payload);
  command_record r;
  r.digest = in.number();
  r.number = in.number();
  r.name = in.text();
  constexpr std::size_t site_bytes = 4;
  if (in.left() > site_bytes) r.value = in.text();
  if (!in.at_end()) r.site = in.small();
  return r;
}

std::string site_record::text() const {
  return std::string(file).append(":").append(std::to_string(line));
}

void site_record::write(payload_writer& out) const { out.small(number).small(line).name(file); }

site_record site_record::read(std::string_view payload) {
  payload_reader in(payload);
  site_record r;
  r.number = in.small();
  r.line = in.small();
  r.file = in.text();
  return r;
}

void blocked_record::write(payload_writer& out) const { out.time(at).secret(why); }

blocked_record blocked_record::read(std::string_view payload) {
  payload_reader in(payload);
  blocked_record r;
  r.at = in.time();
  r.why = in.text();
  return r;
}

void compacted_record::write(payload_writer& out) const {
  out.number(last_run).number(forgotten.size());
  for (const std::uint64_t run : forgotten) out.number(run);
}

compacted_record compacted_record::read(std::string_view payload) {
  payload_reader in(payload);
  compacted_record r;
  r.last_run = in.number();
  for (std::uint64_t n = in.number(); n > 0; --n) r.forgotten.push_back(in.number());
  return r;
}

void answer_record::write(payload_writer& out) const {
  out.time(at).small(static_cast<std::uint32_t>(code)).secret(text);
  if (facts == nullptr) return;
  out.small(static_cast<std::uint32_t>(facts->status));
  out.small(static_cast<std::uint32_t>(facts->metadata.size()));
  for (const auto& [key, value] : facts->metadata) out.secret(key).secret(value);
}

answer_record answer_record::read(std::string_view payload) {
  payload_reader in(payload);
  return read(in);
}

answer_record answer_record::read(payload_reader& in) {
  answer_record r;
  r.at = in.time();
  r.code = static_cast<errc>(in.small());
  r.text = in.text();
  if (in.at_end() || r.code != errc::terminal) return r;
  auto facts = std::make_shared<terminal_facts>();
  facts->status = static_cast<int>(in.small());
  for (std::uint32_t left = in.small(); left > 0; --left) {
    const std::string_view key = in.text();
    facts->metadata.emplace(key, in.text());
  }
  r.facts = std::move(facts);
  return r;
}

void completion::write(payload_writer& out) const {
  if (type == record_type::signal) {
    out.time(at).name(name).secret(answer.text);
  } else if (type == record_type::fired) {
    out.time(at);
  } else {
    answer_record{at, answer.code, answer.text, answer.facts}.write(out);
  }
}

completion completion::read(const record_head& head, std::string_view payload) {
  completion what{
      static_cast<record_type>(head.type), command_key(head.fiber, head.index), {}, {}, {}};
  what.answer.how = answer_kind(head.flags);
  payload_reader in(payload);
  if (what.type == record_type::signal) {
    what.at = in.time();
    what.name = in.text();
    what.answer.text = in.text();
  } else if (what.type == record_type::fired) {
    what.at = in.time();
  } else {
    const answer_record read = answer_record::read(payload);
    what.at = read.at;
    what.answer.code = read.code;
    what.answer.text = read.text;
    what.answer.facts = read.facts;
  }
  return what;
}

void copy_payload(const record_head& head, std::string_view payload, payload_writer& out) {
  payload_reader in(payload);
  const auto type = static_cast<record_type>(head.type);
  if (is_completion(type)) return completion::read(head, payload).write(out);
  switch (type) {
    case record_type::command: {
      command_record c = command_record::read(payload);
      const bool awakeable = kind_of_command(head.flags) == command_kind::awakeable;
      if (awakeable && c.number == 0) c.number = head.run;
      return c.write(out);
    }
    case record_type::attempt:
      out.secret(in.text());
      return;
    case record_type::hurried: {
      const std::uint64_t completion_number = in.number();
      out.number(completion_number).number(in.number());
      return;
    }
    case record_type::skip:
      return skip_record::read(payload).write(out);
    default:
      return;
  }
}

std::uint64_t digest_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

}  // namespace weir::detail
