// SPDX-License-Identifier: MIT
#include "durable/run_record.hpp"

#include <span>

#include <weir/error.hpp>

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

void start_record::write(payload_writer& out) const {
  out.time(at).time(begins).number(seed).small(version).number(parent).number(parent_command);
  out.name(id).name(handler).name(key).name(idempotency).secret(input);
}

start_record start_record::read(std::string_view payload) {
  payload_reader in(payload);
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

void command_record::write(payload_writer& out) const {
  out.secret_number(digest).number(number).name(name);
}

command_record command_record::read(std::string_view payload) {
  payload_reader in(payload);
  command_record r;
  r.digest = in.number();
  r.number = in.number();
  r.name = in.text();
  return r;
}

void answer_record::write(payload_writer& out) const {
  out.time(at).small(static_cast<std::uint32_t>(code)).secret(text);
}

answer_record answer_record::read(std::string_view payload) {
  payload_reader in(payload);
  answer_record r;
  r.at = in.time();
  r.code = static_cast<errc>(in.small());
  r.text = in.text();
  return r;
}

void completion::write(payload_writer& out) const {
  if (type == record_type::signal) {
    out.time(at).name(name).secret(answer.text);
  } else if (type == record_type::fired) {
    out.time(at);
  } else {
    answer_record{at, answer.code, answer.text}.write(out);
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
  }
  return what;
}

namespace {

/// The part of a payload that is secret; empty: none. Texts are at the end of their records.
std::string_view secret_in(record_type type, std::string_view payload) {
  switch (type) {
    case record_type::run_start:
      return start_record::read(payload).input;
    case record_type::command:
      return command_record::read(payload).digest != 0 ? payload.substr(0, 8) : std::string_view{};
    case record_type::attempt:
      return payload_reader(payload).text();
    case record_type::signal: {
      payload_reader in(payload);
      (void)in.time();
      (void)in.text();
      return in.text();
    }
    case record_type::run_end:
    case record_type::cancel:
    case record_type::answer:
    case record_type::resolved:
    case record_type::deadlock:
      return answer_record::read(payload).text;
    case record_type::intent:
    case record_type::fired:
    case record_type::hurried:
      return {};
    default:
      return payload;
  }
}

}  // namespace

void find_secrets(const record_head& head, std::string_view payload,
                  std::vector<secret_part>& parts) {
  const std::string_view found = secret_in(static_cast<record_type>(head.type), payload);
  if (found.empty()) return;
  parts.push_back({static_cast<std::uint32_t>(found.data() - payload.data()),
                   static_cast<std::uint32_t>(found.size())});
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
