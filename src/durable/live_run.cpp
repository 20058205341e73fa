// SPDX-License-Identifier: MIT
// The state of a run in memory: its clock, random numbers, fibers and commands.
#include "durable/engine_core.hpp"
#include "durable/run.hpp"

#include <cstdio>

#include "core/cancel_tree.hpp"
#include "core/error_notes.hpp"
#include "durable/awakeable_id.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

namespace {

/// Spreads a number over all bits (the last steps of splitmix64).
std::uint64_t mix(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace

// ------------------------------------------------------------------ clock and random numbers

time_point run_environment::now() { return time_point(run_.clock().time_since_epoch()); }
wall_time run_environment::wall_now() { return run_.clock(); }
std::uint64_t run_environment::random() { return run_.next_number(); }
bool run_environment::simulated() const noexcept { return run_.host().env().simulated(); }
void run_environment::frame_failed(const std::exception_ptr& error) noexcept {
  run_.host().env().frame_failed(error);
}

// The numbers of one fiber do not depend on what other fibers draw.
std::uint64_t durable_run::next_number() {
  live_run::fiber_record& f = running_fiber();
  const std::uint64_t stream = mix(seed + 0x9e3779b97f4a7c15U * (f.id + std::uint64_t{1}));
  return mix(stream + 0x9e3779b97f4a7c15U * ++f.numbers);
}

// Two runs with one id, in different journals or one after the other, have different seeds. The key
// contains a hash of the seed: the seed itself would reveal the run's random numbers.
std::string durable_run::step_key(std::uint64_t key) const {
  char text[24];
  std::snprintf(text, sizeof text, ".%016llx",
                static_cast<unsigned long long>(mix(seed ^ 0x737465702d6b6579U)));
  return child_id(key) + text;
}

loop& durable_run::host() noexcept { return engine_.host(); }

live_run::live_run(durable_run& run, loop& host) : env(run), inner(env, host, run) {}

// ------------------------------------------------------------------ fibers

live_run::fiber_record& durable_run::running_fiber() {
  if (current == nullptr) return live->outside;
  const auto found = live->fibers.find(cancel_tree::fiber_of(*current->top));
  return found == live->fibers.end() ? live->outside : found->second;
}

// A fiber's number follows from its path: its spawner, and its position among the spawner's
// children. So spawning more fibers does not change the numbers of others, except in a hash
// collision.
void durable_run::fiber_begins(fiber& f) {
  live_run::fiber_record& spawner = running_fiber();
  auto number = static_cast<std::uint32_t>(
      mix((static_cast<std::uint64_t>(spawner.id) << 32 | ++spawner.children) ^ 0x5bd1e995U));
  while (number == 0 || !live->fiber_ids.insert(number).second) ++number;
  live->fibers[&f].id = number;
}

void durable_run::fiber_ended(fiber& f) noexcept {
  if (live == nullptr) return;
  live->fibers.erase(&f);  // its number is not reused
}

// ------------------------------------------------------------------ commands

namespace {

std::string name_of(command_kind kind, std::string_view name) {
  std::string text(to_string(kind));
  if (!name.empty()) text.append(" '").append(name).append("'");
  return text;
}

/// Timers carry no source location: uses the line of user code that waits.
std::string place_of(std::source_location site) {
  return site.line() == 0 ? running_place() : detail::text_of(site);
}

}  // namespace

void durable_run::block(std::string why) {
  if (state == durable::run_state::blocked) return;
  state = durable::run_state::blocked;
  message = std::move(why);
}

bool durable_run::matches(const run_history::command& was, command_kind kind, std::string_view name,
                          std::uint64_t digest, std::uint64_t key, std::source_location site) {
  if (was.kind == kind && was.name == name && was.digest == digest) return true;
  std::string text("the code does not match the journal: command ");
  text.append(std::to_string(index_of_key(key)));
  text.append(fiber_of_key(key) == root_fiber ? " of the handler was " : " of a child was ");
  text.append(name_of(was.kind, was.name)).append(" and is ").append(name_of(kind, name));
  if (was.kind == kind && was.name == name) text.append(" with another input");
  text.append(" now, at ").append(place_of(site));
  block(text.append(old_code));
  return false;
}

durable_run::issued_command durable_run::issue(command_kind kind, std::string_view name,
                                               std::uint64_t digest, std::uint64_t number,
                                               std::source_location site,
                                               std::optional<run_request> sends) {
  if (state == durable::run_state::blocked) return {};
  if (site.line() != 0) live->last_site = site;
  live_run::fiber_record& f = running_fiber();
  const std::uint64_t key = command_key(f.id, ++f.commands);
  const auto was = live->history.commands.find(key);
  if (was != live->history.commands.end()) {
    if (!matches(was->second, kind, name, digest, key, site)) return {};
    const issued_command known{key, was->second.number, was->second.place};
    live->history.commands.erase(was);
    return known;
  }
  live_run::fresh_command made{key, kind, std::string(name), digest, number, std::move(sends)};
  if (!live->replaying) return {key, number, record(made)};
  if (made.sends) live->fresh_sends.emplace(made.sends->id, made.sends->handler);
  live->fresh.push_back(std::move(made));
  return {key, number, 0};
}

// The run of a send was started before its command is recorded, so that a crash in between does not
// lose it; if it was started before, it is found by its id.
record_place durable_run::record(const live_run::fresh_command& c) {
  payload_writer payload;
  command_record{c.name, c.digest, c.number}.write(payload);
  return engine_
      .append(*this, record_type::command, static_cast<std::uint16_t>(c.kind), c.key,
              payload.view())
      .place;
}

// ------------------------------------------------------------------ timers

void durable_run::arm_timer(timer_node& node, std::uint64_t when, bool limit) noexcept {
  const issued_command c =
      issue(limit ? command_kind::limit : command_kind::timer, {}, 0, when, std::source_location());
  if (c.key == 0) return;
  auto made = std::make_unique<run_timer>();
  made->run = this;
  made->of = &node;
  made->command = c.key;
  made->when = c.number;
  made->order = c.place;
  made->limit = limit;
  node.next = made.get();
  node.when = c.number;
  run_timer& t = *live->timers.emplace(c.key, std::move(made)).first->second;
  if (!live->replaying) engine_.start_timer(t);
}

void durable_run::cancel_timer(timer_node& node) noexcept {
  auto& t = static_cast<run_timer&>(*std::exchange(node.next, nullptr));
  engine_.stop_timer(t);
  live->timers.erase(t.command);
}

// ------------------------------------------------------------------ waits

bool durable_run::give(command_wait& w, const command_answer& answer) {
  try {
    w.set(answer);
    return true;
  } catch (...) {
    const command_setup& setup = w.setup();
    std::string text("the value of ");
    text.append(name_of(setup.kind, setup.name)).append(" cannot be read as the type that the ");
    text.append("code expects at ").append(place_of(setup.site)).append(": ");
    block(text.append(message_of(std::current_exception())).append(old_code));
    return false;
  }
}

bool durable_run::poll(command_wait& w) {
  const command_setup& setup = w.setup();
  if (setup.kind == command_kind::awakeable) {
    const live_run::cell& cell = live->awakeables[setup.key];
    return cell.answer && give(w, *cell.answer);
  }
  if (setup.kind == command_kind::promise) {
    const command_answer* settled = peek_promise(setup.name);
    return settled != nullptr && give(w, *settled);
  }
  if (setup.kind == command_kind::signal) {
    live_run::signal_box& box = live->signals[setup.name];
    if (box.kept.empty() || !box.waiting.empty() || !give(w, box.kept.front())) return false;
    box.kept.pop_front();
    return true;
  }
  return false;
}

namespace {

void require_fits(answer_check type, command_kind kind, std::string_view name, std::string_view run,
                  std::string_view value) {
  if (type == nullptr) return;
  try {
    type(value);
  } catch (...) {
    std::string text(name_of(kind, name));
    text.append(" of durable run '").append(run).append("' is awaited as another type: ");
    raise(errc::bad_data, text.append(message_of(std::current_exception())));
  }
}

}  // namespace

void durable_run::require_fits_awakeable(std::uint64_t command, std::string_view value) const {
  if (live == nullptr) return;
  const auto found = live->awakeables.find(command);
  if (found == live->awakeables.end()) return;
  require_fits(found->second.type, command_kind::awakeable, {}, id, value);
}

// The first waiter gets the signal, unless an earlier signal is on its way.
void durable_run::require_fits_signal(std::string_view name, std::string_view value) const {
  if (live == nullptr || live->replaying) return;
  const auto found = live->signals.find(name);
  if (found == live->signals.end()) return;
  const live_run::signal_box& box = found->second;
  if (box.on_their_way > 0 || box.waiting.empty()) return;
  const auto& first = static_cast<const command_wait&>(*box.waiting.first());
  require_fits(first.type(), command_kind::signal, name, id, value);
}

wait_list* durable_run::waiters_of(const command_wait& w) {
  const command_setup& setup = w.setup();
  switch (setup.kind) {
    case command_kind::awakeable:
      return &live->awakeables[setup.key].waiting;
    case command_kind::promise:
      return &live->promises[setup.name].waiting;
    case command_kind::signal:
      return &live->signals[setup.name].waiting;
    default:
      return nullptr;
  }
}

void durable_run::issue(command_wait& w) {
  const command_setup& setup = w.setup();
  w.given_up = false;
  w.answered = false;
  if (wait_list* waiting = waiters_of(w)) {
    if (setup.kind == command_kind::signal)
      w.command = issue(setup.kind, setup.name, 0, 0, setup.site).key;
    waiting->push_back(w);
    if (setup.kind != command_kind::promise) ++live->journaled_waits;
    return;
  }
  const bool calls = setup.kind == command_kind::call;
  const issued_command c =
      issue(setup.kind, setup.name, calls ? digest_of(setup.request->input) : 0, 0, setup.site);
  w.command = c.key;
  if (c.key == 0) return;
  w.order = ++live->last_issued;
  live->issued.emplace(c.key, &w);
  if (!live->replaying) start(w);
}

// A wait for a step or a call ends when the end of that is recorded; all others end at once.
cancel_result durable_run::withdraw(command_wait& w) noexcept {
  if (wait_list* waiting = waiters_of(w)) {
    ++list_visits;
    waiting->remove(w);
    if (w.setup().kind != command_kind::promise) --live->journaled_waits;
    return cancel_result::done;
  }
  if (live->evicting || w.command == 0) {
    live->issued.erase(w.command);
    return cancel_result::done;
  }
  if (!std::exchange(w.given_up, true) && !live->replaying) engine_.give_up(*this, w);
  return cancel_result::later;
}

// ------------------------------------------------------------------ awakeables and promises

void durable_run::handler_begins(std::source_location function) noexcept {
  if (!is_library_file(function.file_name())) live->handler = function;
}

run_seam::awakeable_made durable_run::make_awakeable(std::string_view name, answer_check type,
                                                     std::source_location site) {
  const issued_command c = issue(command_kind::awakeable, name, 0, 0, site);
  live->awakeables[c.key].type = type;
  return {c.key, awakeable_id({number_, c.key}, engine_.secret())};
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
  live_run::cell& cell = live->promises[std::string(name)];
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
  const auto found = live->promises.find(name);
  return found == live->promises.end() || !found->second.answer ? nullptr : &*found->second.answer;
}

// ------------------------------------------------------------------ absorb

void durable_run::enter_absorb(scope& region) {
  if (live->absorbs == nullptr) live->absorbs = std::make_unique<live_run::absorb_table>();
  live_run::absorb_table& all = *live->absorbs;
  const std::uint64_t order = ++all.last;
  all.entered.emplace_hint(all.entered.end(), order, &region);
  all.order_of.emplace(&region, order);
}

void durable_run::leave_absorb(scope& left, bool consumed) noexcept {
  if (live == nullptr) return;
  ++list_visits;
  live_run::absorb_table& all = *live->absorbs;
  const auto order = all.order_of.find(&left);
  all.entered.erase(order->second);
  all.order_of.erase(order);
  if (live->evicting || all.asked.erase(&left) == 0) return;
  if (consumed) live->absorbed = true;
  if (!all.asked.empty()) return;
  const reason_ref why = std::move(live->cancelling);
  live->cancelling = reason_ref();
  if (live->absorbed) {
    (void)issue(command_kind::absorb, {}, 0, 0, std::source_location());
    return;
  }
  cancel_tree::cancel(*live->root_scope, why, false);
}

}  // namespace weir::detail
