// SPDX-License-Identifier: MIT
// Delivering what the journal has: answers, timers, signals, awakeables, promises.
#include "durable/run.hpp"

#include "core/error_notes.hpp"
#include "durable/awakeable_id.hpp"
#include "durable/engine_core.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

bool durable_run::deliver_next() {
  completion next = live->source()->take_front();
  ++live->delivered;
  live->rested_at = live->inner.steps();
  return deliver(next);
}

bool durable_run::deliver(completion& next) {
  live->clock = std::max(live->clock, next.at);
  live->inner.clock_moved();
  // An awakeable may be resolved before the replay makes it again: its id was known before.
  const bool answers = next.type == record_type::answer || next.type == record_type::fired;
  const auto* const left = live->replaying && answers ? &live->replay->past.commands : nullptr;
  if (left != nullptr && left->contains(next.command)) {
    block_missing(next.command, left->at(next.command));
    return false;
  }
  switch (next.type) {
    case record_type::cancel:
      deliver_cancel(next);
      break;
    case record_type::deadlock:
      live->need_tables().deadlock = std::move(next.answer.text);
      live->inner.cancel_everything("deadlock", false);
      break;
    case record_type::fired: {
      const auto found = live->timers.find(next.command);
      if (found == live->timers.end()) break;
      timer_node& node = found->second.of();
      const bool limit = found->second.limit;
      engine_.stop_timer(found->second);
      node.next = nullptr;
      live->timers.erase(found);
      if (limit) {
        static_cast<deadline_node&>(node).expired();
      } else {
        fire_sleep(node);
      }
      break;
    }
    case record_type::answer: {
      const auto found = live->issued.find(next.command);
      command_wait* const w =
          found == live->issued.end() ? signal_wait(next.command) : found->second;
      if (w == nullptr) break;
      if (!give(*w, next.answer)) return false;
      if (found == live->issued.end()) {
        waiters_of(*w)->remove(*w);
        --live->journaled_waits;
      } else {
        live->issued.erase(found);
      }
      w->arrived();
      break;
    }
    case record_type::resolved:
      return settle_cell(live->need_tables().awakeables[next.command], std::move(next.answer));
    case record_type::signal: {
      live_run::signal_box& box = live->need_tables().signals[next.name];
      if (!live->replaying) --box.on_their_way;
      if (box.waiting.empty()) {
        box.kept.push_back(std::move(next.answer));
        break;
      }
      auto& first = static_cast<command_wait&>(*box.waiting.first());
      if (!give(first, next.answer)) return false;
      box.waiting.remove(first);
      --live->journaled_waits;
      first.arrived();
      break;
    }
    default:
      break;
  }
  return true;
}

bool durable_run::give(command_wait& w, const command_answer& answer) {
  try {
    w.set(answer);
    return true;
  } catch (...) {
    const command_setup& setup = w.setup();
    std::string text("the value of ");
    text.append(command_text(setup.kind, setup.name))
        .append(" cannot be read as the type that the ");
    text.append("code expects at ").append(command_place(setup.site)).append(": ");
    block_on(w, text.append(message_of(std::current_exception())).append(old_code));
    return false;
  }
}

// A promise is not answered by the journal, and a signal that was kept is taken without a command.
void durable_run::block_on(const command_wait& w, std::string why) {
  block(std::move(why));
  const command_setup& setup = w.setup();
  const std::uint64_t key = setup.kind == command_kind::awakeable ? setup.key : w.command;
  if (key == 0 || setup.kind == command_kind::promise) return;
  blocked_command on{key, setup.kind, setup.name, 0, {}};
  if (setup.kind == command_kind::call) on.digest = digest_of(setup.request->input);
  if (setup.kind == command_kind::signal) on.completion = live->delivered - 1;
  set_blocked_on(std::move(on));
}

/// The wait for a signal that was issued as this command. Its answer is usually a signal; only if
/// it was skipped, it is an error.
command_wait* durable_run::signal_wait(std::uint64_t key) {
  if (live->tables == nullptr) return nullptr;
  for (const auto& [name, box] : live->tables->signals)
    for (linked_wait* w = box.waiting.first(); w != nullptr; w = wait_list::after(*w))
      if (auto& waiting = static_cast<command_wait&>(*w); waiting.command == key) return &waiting;
  return nullptr;
}

// ------------------------------------------------------------------ types of awaited values

namespace {

void require_fits(answer_check type, command_kind kind, std::string_view name, std::string_view run,
                  std::string_view value) {
  if (type == nullptr) return;
  try {
    type(value);
  } catch (...) {
    std::string text(command_text(kind, name));
    text.append(" of durable run '").append(run).append("' is awaited as another type: ");
    raise(errc::bad_data, text.append(message_of(std::current_exception())));
  }
}

}  // namespace

void durable_run::require_fits_awakeable(std::uint64_t command, std::string_view value) const {
  if (live == nullptr || live->tables == nullptr) return;
  const auto& awakeables = live->tables->awakeables;
  const auto found = awakeables.find(command);
  if (found == awakeables.end()) return;
  require_fits(found->second.type, command_kind::awakeable, {}, id, value);
}

// The first waiter gets the signal, unless an earlier signal is on its way.
void durable_run::require_fits_signal(std::string_view name, std::string_view value) const {
  if (live == nullptr || live->replaying || live->tables == nullptr) return;
  const auto& signals = live->tables->signals;
  const auto found = signals.find(name);
  if (found == signals.end()) return;
  const live_run::signal_box& box = found->second;
  if (box.on_their_way > 0 || box.waiting.empty()) return;
  const auto& first = static_cast<const command_wait&>(*box.waiting.first());
  require_fits(first.type(), command_kind::signal, name, id, value);
}

// ------------------------------------------------------------------ awakeables and promises

run_seam::awakeable_made durable_run::make_awakeable(std::string_view name, answer_check type,
                                                     std::source_location site) {
  const issued_command c = issue(command_kind::awakeable, name, 0, 0, site);
  live->need_tables().awakeables[c.key].type = type;
  if (live->replay != nullptr) {
    const auto& exported = live->replay->past.awakeables;
    if (const auto known = exported.find(c.key); known != exported.end())
      return {c.key, known->second};
  }
  // A fork has the ids that its origin has handed out.
  return {c.key, awakeable_id({c.number == 0 ? number_ : c.number, c.key}, engine_.secret())};
}

bool durable_run::settle_cell(live_run::cell& cell, command_answer answer) {
  if (cell.answer) return true;
  cell.answer = std::move(answer);
  for (linked_wait* w = cell.waiting.first(); w != nullptr; w = wait_list::after(*w))
    if (!give(static_cast<command_wait&>(*w), *cell.answer)) return false;
  while (!cell.waiting.empty()) {
    auto& w = static_cast<command_wait&>(*cell.waiting.first());
    cell.waiting.remove(w);
    ++list_visits;
    if (w.setup().kind == command_kind::awakeable) --live->journaled_waits;
    w.arrived();
  }
  return true;
}

bool durable_run::settle_promise(std::string_view name, command_answer answer,
                                 std::source_location site) {
  live_run::cell& cell = live->need_tables().promises[std::string(name)];
  if (!cell.answer && answer.how == command_answer::kind::value) {
    for (linked_wait* w = cell.waiting.first(); w != nullptr; w = wait_list::after(*w))
      require_fits(static_cast<command_wait&>(*w).type(), command_kind::promise, name, id,
                   answer.text);
  }
  (void)issue(command_kind::promise, name, digest_of(answer.text), 0, site);
  if (cell.answer) return false;
  return settle_cell(cell, std::move(answer));
}

const command_answer* durable_run::peek_promise(std::string_view name) const {
  if (live->tables == nullptr) return nullptr;
  const auto found = live->tables->promises.find(name);
  return found == live->tables->promises.end() || !found->second.answer ? nullptr
                                                                        : &*found->second.answer;
}

}  // namespace weir::detail
