// SPDX-License-Identifier: MIT
// Ended runs: how long they are known, and how they are found.
//
// A run is forgotten `retention` after the time that its end was recorded with, by the wall clock,
// not before, and not before everyone who may still ask for its result has done so: its caller,
// runs that were not in memory when it ended, and those who have a handle to it. Then its id and
// idempotency key are free, and its records are garbage. Nothing is recorded about it: after a
// restart the clock says the same again, or the start of another run with the same id does.
#include "durable/engine_core.hpp"

#include "durable/visits.hpp"

namespace weir::detail {

namespace {

/// How many runs are forgotten in one turn.
constexpr int forgotten_at_once = 10'000;
/// The wall clock may be set without notice; a run that is due is forgotten at most so much later.
constexpr duration forget_check = std::chrono::hours(48);

}  // namespace

ended_run engine_core::entry_of(const durable_run& run, record_place end, wall_time at) noexcept {
  return {.number = run.number(),
          .id_hash = hash_of_id(run.id),
          .key_hash = run.idempotency.empty() ? 0 : hash_of_key(run.handler(), run.idempotency),
          .start = run.start_place,
          .end = end,
          .parent = run.parent,
          .at = at,
          .bytes = run.bytes,
          .state = run.state};
}

void engine_core::retire(durable_run& run) {
  if (run.listed) return;
  const std::uint64_t number = run.number();
  past_.add(entry_of(run));
  remove_from_index(run);
  runs_.erase(number);
  release_held(number);
  const auto first = past_.first();
  if (first && (first->number == number || !forget_clock_.armed())) arm_forgetting();
}

// ------------------------------------------------------------------ finding ended runs

std::optional<engine_core::known_run> engine_core::read_ended(std::uint64_t number,
                                                              std::string_view id) const {
  known_run found;
  found.ended = past_.find(number);
  if (is_over(*found.ended)) return std::nullopt;
  std::string payload;
  const start_record start = read_start(number, found.ended->start, payload);
  if (start.id != id) return std::nullopt;
  found.id = start.id;
  found.handler = start.handler;
  return found;
}

engine_core::known_run engine_core::ended_with_id(std::string_view id) const {
  std::vector<std::uint64_t> numbers;
  past_.with_id(hash_of_id(id), numbers);
  for (const std::uint64_t number : numbers)
    if (auto found = read_ended(number, id)) return std::move(*found);
  return {};
}

engine_core::known_run engine_core::ended_with_key(std::string_view handler,
                                                   std::string_view idempotency) const {
  std::vector<std::uint64_t> numbers;
  past_.with_key(hash_of_key(handler, idempotency), numbers);
  std::string payload;
  for (const std::uint64_t number : numbers) {
    const auto ended = past_.find(number);
    if (is_over(*ended)) continue;
    const start_record start = read_start(number, ended->start, payload);
    if (start.handler != handler || start.scoped_idempotency() != idempotency) continue;
    return {nullptr, ended, std::string(start.id), std::string(start.handler)};
  }
  return {};
}

// ------------------------------------------------------------------ forgetting

bool engine_core::is_due(const ended_run& run, wall_time now) const noexcept {
  return run.at <= now && now - run.at >= setup_.retention;
}

bool engine_core::is_over(const ended_run& run) const {
  if (to_recover_ > 0 || !is_due(run, host_.env().wall_now())) return false;
  if (run.parent != 0 && runs_.contains(run.parent)) return false;
  if (handles_.contains(run.number)) return false;
  for (auto it = asked_again_.lower_bound({run.number, 0});
       it != asked_again_.end() && it->first == run.number; ++it)
    if (runs_.contains(it->second)) return false;
  return true;
}

// Equal hashes suffice: those that are over are forgotten anyway.
void engine_core::forget_predecessors(const start_record& start) {
  found_.clear();
  past_.with_id(hash_of_id(start.id), found_);
  if (!start.idempotency.empty())
    past_.with_key(hash_of_key(start.handler, start.scoped_idempotency()), found_);
  for (const std::uint64_t older : found_)
    if (const auto ended = past_.find(older); ended && is_over(*ended)) forget(*ended);
}

std::uint64_t engine_core::holder_of(const ended_run& run) {
  if (run.parent != 0 && find(run.parent) != nullptr) return run.parent;
  auto it = asked_again_.lower_bound({run.number, 0});
  while (it != asked_again_.end() && it->first == run.number) {
    if (find(it->second) != nullptr) return it->second;
    it = asked_again_.erase(it);
  }
  return 0;
}

void engine_core::forget(const ended_run& run) {
  ++list_visits;
  if (const std::uint64_t holder = holder_of(run)) {
    held_.emplace(holder, run.number);
    past_.unqueue(run.number);
    return;
  }
  if (const auto held = handles_.find(run.number); held != handles_.end()) {
    held->second.due = true;
    past_.unqueue(run.number);
    return;
  }
  drop(run);
}

// ------------------------------------------------------------------ handles

run_hold::~run_hold() { engine_->let_go(number_); }

std::shared_ptr<run_hold> engine_core::hold(std::uint64_t number) {
  held_run& held = handles_[number];
  std::shared_ptr<run_hold> made = held.by.lock();
  if (made == nullptr) {
    made = std::allocate_shared<run_hold>(frame_allocator<run_hold>(), shared_from_this(), number);
    held.by = made;
  }
  return made;
}

void engine_core::let_go(std::uint64_t number) noexcept {
  if (!process_.is_here() || current_loop_serial() != host_serial_) return;
  const auto held = handles_.find(number);
  if (held == handles_.end()) return;
  const bool due = held->second.due;
  handles_.erase(held);
  if (!due || !running()) return;
  if (const auto run = past_.find(number)) forget(*run);
}

void engine_core::pass_hold(std::uint64_t from, std::uint64_t to) {
  auto held = handles_.extract(from);
  if (held.empty()) return;
  if (const std::shared_ptr<run_hold> by = held.mapped().by.lock()) by->pass_to(to);
  held.key() = to;
  held.mapped().due = false;
  handles_.insert(std::move(held));
}

void engine_core::drop(const ended_run& run) {
  garbage_[segment_of(run.end)] += run.bytes;
  past_.remove(run.number);
}

void engine_core::release_held(std::uint64_t holder) {
  const auto [first, last] = held_.equal_range(holder);
  std::vector<std::uint64_t> released;
  for (auto it = first; it != last; ++it) released.push_back(it->second);
  held_.erase(first, last);
  for (const std::uint64_t number : released) forget(*past_.find(number));
}

// While runs of an earlier process are still being replayed, they may ask for any result.
void engine_core::forget_due() {
  if (!running() || to_recover_ > 0) return;
  const wall_time now = wall_now();
  const auto next_is_due = [&] {
    const auto first = past_.first();
    return first && is_due(*first, now);
  };
  for (int i = 0; i < forgotten_at_once && next_is_due(); ++i) forget(*past_.first());
  arm_forgetting();
  // A compaction keeps what is not forgotten yet, so it waits for the last run that is due.
  if (!next_is_due()) consider_compaction();
}

void engine_core::arm_forgetting() {
  if (forget_clock_.armed()) host_.cancel_deadline(forget_clock_);
  if (!running() || to_recover_ > 0) return;
  const auto first = past_.first();
  if (!first || setup_.retention == duration::max()) return;
  const wall_time now = wall_now();
  duration left = duration::zero();
  if (!is_due(*first, now)) {
    const wall_time due(saturating_add(time_point(first->at.time_since_epoch()), setup_.retention)
                            .time_since_epoch());
    left = std::min<duration>(due - now, forget_check);
  }
  host_.arm_deadline(forget_clock_, saturating_add(host_.now(), left), host_.next_order());
}

// Of two runs with the same id or idempotency key the older one was forgotten.
void engine_core::settle_reused_ids() {
  std::string payload;
  for (const reused& pair : std::exchange(reused_, {})) {
    const auto older = past_.find(pair.older);
    if (!older) continue;
    const start_record a = read_start(pair.older, older->start, payload);
    const std::string id(a.id), handler(a.handler), key = a.scoped_idempotency();
    const start_record b = read_start(pair.number, pair.newer, payload);
    const bool same_key = handler == b.handler && !key.empty() && key == b.scoped_idempotency();
    if (id == b.id || same_key) drop(*older);
  }
}

durable::run_info engine_core::info_of(const ended_run& run) const {
  std::string payload;
  const start_record start = read_start(run.number, run.start, payload);
  durable::run_info info;
  info.id = start.id;
  info.handler = start.handler;
  info.version = static_cast<int>(start.version);
  info.state = run.state;
  if (run.state == durable::run_state::completed) return info;
  (void)journal_->read(run.end, payload);
  info.message = answer_record::read(payload).text;
  return info;
}

}  // namespace weir::detail
