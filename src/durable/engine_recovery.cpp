// SPDX-License-Identifier: MIT
// What the engine learns from the records of a journal that it opens.
#include "durable/engine_core.hpp"

#include "durable/journal_error.hpp"
#include "durable/journal_files.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t runs_at_a_time = 1024;
constexpr std::size_t places_at_first = 8;
constexpr std::size_t spare_places_max = 64;

}  // namespace

void engine_core::see(const record_head& head, std::string_view payload, std::uint64_t lsn,
                      record_place place) {
  if (!is_record_type(head.type))
    raise_corrupt(setup_.path + "/" + segment_name(segment_of(place)), offset_of(place),
                  "a record of type " + std::to_string(head.type) +
                      ", which this version of weir does not know; open the journal with the "
                      "version that wrote it");
  const auto type = static_cast<record_type>(head.type);
  if (type == record_type::run_start) return see_start(head, payload, lsn, place);
  durable_run* const found = seen(head.run);
  if (found == nullptr)
    raise(errc::journal_corrupt, "the journal '" + setup_.path + "' has record " +
                                     std::to_string(lsn) + " of run " + std::to_string(head.run) +
                                     ", which it does not start");
  durable_run& run = *found;
  if (type == record_type::run_end) return see_end(run, head, payload, lsn, place);
  run.places.push_back(place);
  if (steers(type)) run.depends = lsn;
  if (type != record_type::cancel && type != record_type::signal) run.begun = true;
  if (type == record_type::cancel) {
    run.cancel_asked = true;
    if (head.index != 0) run.caller_asked = true;
  }
  if (type == record_type::resolved) run.resolved.insert(command_key(head.fiber, head.index));
}

void engine_core::see_start(const record_head& head, std::string_view payload, std::uint64_t lsn,
                            record_place place) {
  durable_run& run = make_run(head.run, start_record::read(payload));
  run.start_place = place;
  run.start_lsn = run.depends = lsn;
  if (spare_places_.empty()) {
    run.places.reserve(places_at_first);
  } else {
    run.places = std::move(spare_places_.back());
    spare_places_.pop_back();
  }
}

// The log interleaves the records of a few hundred runs at a time, not of all: a small cache
// suffices.
durable_run* engine_core::seen(std::uint64_t number) noexcept {
  durable_run*& kept = seen_[number % seen_.size()];
  if (kept == nullptr || kept->number() != number) kept = find(number);
  return kept;
}

void engine_core::prepare_recovery() { seen_.resize(runs_at_a_time); }

void engine_core::forget_recovery() noexcept {
  seen_ = {};
  spare_places_ = {};
}

void engine_core::see_end(durable_run& run, const record_head& head, std::string_view payload,
                          std::uint64_t lsn, record_place place) {
  run.end_lsn = lsn;
  run.end_place = place;
  run.final = true;
  if (run.places.capacity() <= spare_places_max) {
    run.places.clear();
    spare_places_.push_back(std::move(run.places));
  }
  run.places = {};
  run.resolved = {};
  run.state = state_after(answer_kind(head.flags));
  if (run.state != durable::run_state::completed) run.message = answer_record::read(payload).text;
}

void engine_core::recovered() {
  forget_recovery();
  by_id_.reserve(runs_.size());
  for (const auto& [number, run] : runs_) {
    add_to_index(*run);
    if (run->ended()) continue;
    resume(*run);
    if (!run->resuming) continue;  // delayed: not begun yet
    run->recovering = true;
    ++to_recover_;
  }
  arm_alarm();
}

}  // namespace weir::detail
