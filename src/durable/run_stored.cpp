// SPDX-License-Identifier: MIT
// The stored values of an object, as its handlers use them.
#include <weir/durable/stored.hpp>

#include <weir/durable/step.hpp>

#include "core/error_notes.hpp"
#include "durable/engine_core.hpp"
#include "durable/run.hpp"

namespace weir {

std::string this_key() {
  std::string_view key;
  if (detail::current_run != nullptr) {
    key = detail::current_run->object_key();
  } else if (detail::current != nullptr) {
    const void* const step = detail::find_local(&detail::step_mark);
    if (step != nullptr) key = static_cast<const detail::step_source*>(step)->object_key();
  }
  if (key.empty()) detail::raise_no_object("this_key");
  return std::string(key);
}

namespace detail {

std::string text_of(const durable_object& object) {
  return std::string("key '").append(object.key).append("' of object '").append(object.name) + "'";
}

std::string_view object_of_handler(std::string_view handler) noexcept {
  return handler.substr(0, handler.rfind('/'));
}

std::string_view durable_run::object_key() const noexcept {
  return part == nullptr ? std::string_view() : part->of->key;
}

void durable_run::set_stored(std::string_view name, std::optional<std::string> value,
                             std::source_location site) {
  if (part->shared) {
    std::string text("shared handler '");
    text.append(handler()).append("' changes stored '").append(name).append("' of ");
    text.append(text_of(*part->of)).append(" at ").append(text_of(site));
    raise(errc::read_only, text.append("; change it in an exclusive handler"));
  }
  live->work->changes.insert_or_assign(std::string(name), std::move(value));
}

// What was read is recorded, so that a replay, also one of an ended run, reads the same. In a turn
// the first read of a value suffices: nothing else changes it.
bool durable_run::read_stored(command_wait& w) {
  const std::string& name = w.setup().name;
  command_answer answer;
  answer.how = command_answer::kind::value;
  turn_work* const work = live->work.get();
  if (work != nullptr) {
    if (const auto own = work->changes.find(name); own != work->changes.end()) {
      answer.text = own->second.value_or(std::string());
      return give(w, answer);
    }
    if (const auto before = work->reads.find(name); before != work->reads.end()) {
      answer.text = before->second;
      return give(w, answer);
    }
  }
  const auto now = part->of->state.find(name);
  issued_command c = issue(command_kind::stored, name, 0, 0, w.setup().site, std::nullopt,
                           now == part->of->state.end() ? std::string() : now->second);
  if (c.key == 0) return false;
  answer.text = std::move(c.value);
  if (!give(w, answer)) return false;
  if (work != nullptr) work->reads.emplace(name, std::move(answer.text));
  return true;
}

}  // namespace detail
}  // namespace weir
