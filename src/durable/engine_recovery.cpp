// SPDX-License-Identifier: MIT
// What the engine learns from the records of a journal that it opens.
#include "durable/engine_core.hpp"

#include "durable/journal_error.hpp"
#include "durable/journal_files.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t runs_at_a_time = 1024;
constexpr std::size_t spare_places_max = 256;  // bytes
constexpr std::size_t spare_runs_max = 4096;

}  // namespace

void engine_core::see(const record_head& head, std::string_view payload, std::uint64_t lsn,
                      record_place place) {
  if (!is_record_type(head.type))
    raise_corrupt(setup_.path + "/" + segment_name(segment_of(place)), offset_of(place),
                  "a record of type " + std::to_string(head.type) +
                      ", which this version of weir does not know; open the journal with the "
                      "version that wrote it");
  const auto type = static_cast<record_type>(head.type);
  if (starts_run(head.type)) return see_start(head, payload, lsn, place);
  if (type == record_type::object_state) return see_object_state(payload);
  if (type == record_type::turn) return see_turn(head, payload, lsn, place);
  if (type == record_type::mark) return;
  if (type == record_type::site) return sites_.see(site_record::read(payload));
  if (type == record_type::compacted) return see_compacted(payload);
  durable_run* const found = seen(head.run);
  if (found == nullptr && head.run <= last_number_)
    return;  // it has ended, was restarted, or was forgotten
  if (found == nullptr)
    raise(errc::journal_corrupt, "the journal '" + setup_.path + "' has record " +
                                     std::to_string(lsn) + " of run " + std::to_string(head.run) +
                                     ", which it does not start");
  durable_run& run = *found;
  if (type == record_type::run_end) return see_end(run, head, payload, lsn, place);
  note_record(run, head, payload, lsn, place);
  if (run.rare().missing > 0) --run.need_rare().missing;
}

void engine_core::note_record(durable_run& run, const record_head& head, std::string_view payload,
                              std::uint64_t lsn, record_place place) {
  const auto type = static_cast<record_type>(head.type);
  run.places.push_back(place);
  run.bytes += bytes_in_log(payload);
  if (steers(type, head.flags)) run.depends = lsn;
  if (type != record_type::cancel && type != record_type::signal && type != record_type::blocked)
    run.begun = true;
  if (type == record_type::fired && turn_event_of(head.flags) != turn_event::none)
    see_turn_event(run, head, payload);
  if (type == record_type::cancel) {
    run.cancel_asked = true;
    if (head.index != 0) run.caller_asked = true;
  }
  if (type == record_type::resolved)
    run.need_rare().resolved.insert(command_key(head.fiber, head.index));
}

void engine_core::see_start(const record_head& head, std::string_view payload, std::uint64_t lsn,
                            record_place place) {
  payload_reader in(payload);
  start_record start = start_record::read(in);
  start.kind = kind_of_start(head.flags);
  const auto type = static_cast<record_type>(head.type);
  restart_record again{.replaced = 0, .life = 1};
  if (type == record_type::restart) again = restart_record::read(in);
  note_reused(start, head.run, place);
  durable_run& run = make_run(head.run, start);
  run.life = again.life;
  if (again.replaced != 0) {
    seen_[again.replaced % seen_.size()] = nullptr;
    if (durable_run* const old = find(again.replaced)) pass_turn(*old, run);
    runs_.erase(again.replaced);
    if (past_.contains(again.replaced)) past_.remove(again.replaced);
  }
  if (type == record_type::fork) run.need_rare().missing = fork_record::read(in).records;
  run.start_place = place;
  run.start_lsn = run.depends = lsn;
  run.bytes = bytes_in_log(payload);
}

// A run starts with the id, or the idempotency key, of an ended run only if that one was forgotten,
// though now the clock may say that it is not due. Equal hashes may be a coincidence.
void engine_core::note_reused(const start_record& start, std::uint64_t number, record_place place) {
  found_.clear();
  past_.with_id(hash_of_id(start.id), found_);
  if (!start.idempotency.empty())
    past_.with_key(hash_of_key(start.handler, start.scoped_idempotency()), found_);
  for (const std::uint64_t older : found_) {
    if (!past_.contains(older)) continue;  // found twice
    if (const auto ended = past_.find(older); is_due(*ended, open_time_)) {
      drop(*ended);
    } else {
      reused_.push_back({older, number, place});
    }
  }
}

// The log interleaves the records of a few hundred runs at a time, not of all: a small cache
// suffices.
durable_run* engine_core::seen(std::uint64_t number) noexcept {
  durable_run*& kept = seen_[number % seen_.size()];
  if (kept == nullptr || kept->number() != number) kept = find(number);
  return kept;
}

void engine_core::prepare_recovery() {
  seen_.resize(runs_at_a_time);
  open_time_ = wall_now();
}

void engine_core::forget_recovery() noexcept {
  seen_ = {};
  spare_runs_ = decltype(spare_runs_)();
  found_ = {};
}

void engine_core::see_end(durable_run& run, const record_head& head, std::string_view payload,
                          std::uint64_t lsn, record_place place) {
  run.need_end().lsn = lsn;
  run.bytes += bytes_in_log(payload);
  if (run.part != nullptr) leave_object(run);
  run.state = state_after(answer_kind(head.flags));
  past_.add(entry_of(run, place, answer_record::read(payload).at));
  seen_[run.number() % seen_.size()] = nullptr;
  run_map::node_type node = runs_.extract(run.number());
  if (spare_runs_.size() < spare_runs_max) spare_runs_.push_back(std::move(node));
}

void durable_run::renew(std::uint64_t number) noexcept {
  number_ = number;
  state = durable::run_state::suspended;
  if (end_part != nullptr) end_part->lsn = 0;
  places.clear(spare_places_max);
  rare_.reset();
  begun = cancel_asked = caller_asked = false;
  life = 1;
}

// A fork that a crash has cut off was never acknowledged.
void engine_core::recovered() {
  forget_recovery();
  for (auto& [number, run] : runs_)
    if (run.rare().missing > 0 && run.part != nullptr) leave_object(run);
  std::erase_if(runs_, [](const auto& entry) { return entry.second.rare().missing > 0; });
  settle_reused_ids();
  by_id_.reserve(runs_.size());
  for (auto& [number, run] : runs_) {
    add_to_index(run);
    if (run.part != nullptr) run.part->waited = true;
    resume(run);
    if (!run.resuming) continue;  // delayed: not begun yet
    run.recovering = true;
    ++to_recover_;
  }
  arm_alarm();
  arm_forgetting();
}

}  // namespace weir::detail
