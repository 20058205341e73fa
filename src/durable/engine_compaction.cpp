// SPDX-License-Identifier: MIT
// When the log is compacted, and what is kept: the records of all runs that are not forgotten.
//
// A compaction replaces all segments but the last. It begins when the records of forgotten runs
// that ended in them make up most of their bytes, so that the work is at most about as much as what
// was written to them; then it takes turns with the commits, slice by slice. One that fails is
// reported as an event and tried again when there is another segment to replace.
//
// The turns that made the states of objects may be left out of the snapshot, so the log states them
// anew, after what the snapshot replaces, and the snapshot gets its name only when all of that is
// durable. This is done in slices, too: a state is that of the moment at which its record is
// appended, and later turns follow it in the log. An object that is made meanwhile has all of its
// turns after what is replaced. After a crash before the end the old segments are still there, and
// a stated state is the one that they lead to.
#include <weir/time.hpp>

#include "durable/compaction.hpp"
#include "durable/engine_core.hpp"
#include "durable/record_secrets.hpp"
#include "durable/visits.hpp"

namespace weir::detail {

namespace {

constexpr std::uint64_t segments_min = 2;
/// Frames and gaps take their part of a segment, so this much garbage in a hundred bytes is most.
constexpr std::uint64_t garbage_percent = 40;
/// What is appended of the states of objects beside a slice, about, and how many are looked at.
constexpr std::uint64_t state_bytes_at_once = std::uint64_t{64} << 10;
constexpr int states_at_once = 1024;

compaction_plan::closing_record closing_record(std::uint64_t last_run,
                                               std::span<const std::uint64_t> forgotten) {
  payload_writer payload;
  compacted_record{last_run, {forgotten.begin(), forgotten.end()}}.write(payload);
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::compacted);
  return {head, std::string(payload.view().bytes)};
}

}  // namespace

void engine_core::consider_compaction() {
  if (!running() || shutting_down_ || to_recover_ > 0 || compacting_up_to_ != 0) return;
  const journal::replaceable old = journal_->may_be_replaced();
  if (old.segments < segments_min || old.last_segment <= compact_after_) return;
  std::uint64_t garbage = 0;
  for (const auto& [segment, bytes] : garbage_) {
    if (segment > old.last_segment) break;
    garbage += bytes;
  }
  if (100 * garbage <= garbage_percent * old.bytes) return;
  try {
    begin_compaction(old.last_segment);
  } catch (...) {  // the writer's thread has found that the journal has failed
    break_down(std::current_exception());
  }
}

void engine_core::begin_compaction(std::uint64_t last_segment) {
  compaction_plan plan;
  plan.last_segment = last_segment;
  for (const auto& [number, run] : runs_) plan.keep.add(number);
  past_.for_each([&](const ended_run& run) { plan.keep.add(run.number); });
  plan.sending_type = static_cast<std::uint16_t>(record_type::turn);
  plan.lasting_type = static_cast<std::uint16_t>(record_type::site);
  plan.sent = [](std::string_view payload) {
    const turn_record turn = turn_record::read(payload);
    return compaction_plan::sent_runs{turn.first_run, turn.starts.size()};
  };
  plan.closing = [last = last_number_](std::span<const std::uint64_t> forgotten) {
    return closing_record(last, forgotten);
  };
  plan.secrets = find_secrets;
  plan.needs = never_durable;  // until all states are appended
  objects_.begin_walk();
  stating_objects_ = true;
  journal_->begin_compaction(std::move(plan));
  compacting_up_to_ = last_segment;
  garbage_in_plan_ = 0;
  while (!garbage_.empty() && garbage_.begin()->first <= last_segment) {
    garbage_in_plan_ += garbage_.begin()->second;
    garbage_.erase(garbage_.begin());
  }
  compacted_.reset();
  want_flush();
}

void engine_core::state_some_objects() {
  if (!stating_objects_ || shutting_down_) return;
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::object_state);
  std::uint64_t bytes = 0;
  for (int i = 0; i < states_at_once && bytes < state_bytes_at_once; ++i) {
    const durable_object* const object = objects_.walk();
    if (object == nullptr) {
      stating_objects_ = false;
      journal_->compaction_may_end_after(journal_->last_lsn());
      break;
    }
    ++list_visits;
    if (object->state.empty()) continue;
    object_state_record r{object->name, object->key, {}};
    for (const auto& [name, value] : object->state) r.values.emplace_back(name, value);
    payload_writer payload;
    r.write(payload);
    journal_->append(head, payload.view());
    bytes += payload.view().bytes.size();
  }
  if (bytes > 0) want_flush();
}

bool engine_core::compact_some() {
  if (compacting_up_to_ == 0 || (flush_wanted_ && slice_was_last_)) return false;
  try {
    state_some_objects();
    std::unique_ptr<journal_batch> slice = journal_->take_to_compact();
    committing_ = slice_was_last_ = true;
    writer_->write(std::move(slice));
  } catch (const payload_error&) {  // no space for a state: nothing has happened
    journal_->abandon_compaction(std::current_exception());
    compaction_ended();
    return false;
  } catch (...) {
    committing_ = false;
    break_down(std::current_exception());
  }
  return true;
}

void engine_core::compaction_ended() {
  const std::exception_ptr error = journal_->compaction_error();
  compact_after_ = compacting_up_to_;
  if (error) {
    garbage_[compacting_up_to_] += garbage_in_plan_;
    host_.emit("compaction_failed", setup_.path, 0, 0, error);
  } else {
    host_.emit("journal_compacted", setup_.path);
  }
  compacting_up_to_ = 0;
  stating_objects_ = false;
  compacted_.set();
}

// A record of no meaning begins another segment, so that all others may be replaced.
task<> engine_core::compact_all() {
  const std::shared_ptr<engine_core> self = shared_from_this();
  while (running() && to_recover_ > 0) co_await sleep(std::chrono::milliseconds(1));
  while (running() && compacting_up_to_ != 0) co_await compacted_.wait();
  require_running();
  for (auto first = past_.first(); first && is_due(*first, wall_now()); first = past_.first())
    forget(*first);
  journal_->end_segment();
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::mark);
  const std::uint64_t lsn = journal_->append(head, {}).lsn;
  want_flush();
  co_await durable(lsn);
  if (compacting_up_to_ == 0) begin_compaction(journal_->may_be_replaced().last_segment);
  co_await compacted_.wait();
  require_running();
  if (const std::exception_ptr error = journal_->compaction_error()) std::rethrow_exception(error);
}

}  // namespace weir::detail
