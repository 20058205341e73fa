// SPDX-License-Identifier: MIT
// The records of a run as what a replay needs of them.
#include "durable/run.hpp"
#include "durable/turn_record.hpp"

namespace weir::detail {

void run_history::add(const record_head& head, std::string_view payload, record_place place) {
  const std::uint64_t key = command_key(head.fiber, head.index);
  const auto type = static_cast<record_type>(head.type);
  if (type == record_type::command) {
    const command_record c = command_record::read(payload);
    const command_kind kind = kind_of_command(head.flags);
    if (kind == command_kind::patch) {
      patches.insert_or_assign(std::string(c.name), true);
      return;
    }
    commands.insert_or_assign(key, command{kind,
                                           std::string(c.name),
                                           c.digest,
                                           c.number,
                                           place,
                                           {},
                                           std::string(c.value),
                                           c.site});
  } else if (type == record_type::attempt) {
    step_past& step = steps[key];
    ++step.failed;
    step.open = false;
  } else if (type == record_type::intent) {
    steps[key].open = true;
  } else if (type == record_type::hurried) {
    payload_reader in(payload);
    const std::uint64_t number = in.number();
    hurried[number] = in.number();
  } else if (type == record_type::skip) {
    add_skip(head, payload, place);
  } else if (type == record_type::fired && turn_event_of(head.flags) != turn_event::none) {
    begins = payload_reader(payload).time();
  } else if (type == record_type::blocked) {
    blocked = blocked_record::is_block(head.flags);
  } else if (is_completion(type)) {
    completions.push_back(completion::read(head, payload));
  }
}

// The command is the one that the code has by now. The error takes the place of the answer that the
// journal has, so that what followed from that answer is still found.
void run_history::add_skip(const record_head& head, std::string_view payload, record_place place) {
  const std::uint64_t key = command_key(head.fiber, head.index);
  const skip_record s = skip_record::read(payload);
  const command_kind kind = kind_of_command(head.flags);
  command failing{kind, std::string(s.name), s.digest, 0, place};
  if (const auto was = commands.find(key); was != commands.end()) {
    failing.place = was->second.place;
    if (was->second.kind == kind) failing.number = was->second.number;
  }
  if (kind == command_kind::send) failing.failure = std::string(s.error.text);
  commands.insert_or_assign(key, std::move(failing));
  steps.erase(key);
  completion answer{record_type::answer, key, s.error.at, {}, {}};
  if (kind == command_kind::awakeable) answer.type = record_type::resolved;
  if (kind == command_kind::send) answer.command = 0;  // it is answered when it is issued
  answer.answer.how = command_answer::kind::error;
  answer.answer.code = s.error.code;
  answer.answer.text = s.error.text;
  if (s.replaces < completions.size()) {
    completions[static_cast<std::size_t>(s.replaces)] = std::move(answer);
  } else {
    completions.push_back(std::move(answer));
  }
}

}  // namespace weir::detail
