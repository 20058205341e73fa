// SPDX-License-Identifier: MIT
// How records are committed: appended, flushed to the writer's thread, reported to waiters.
#include "durable/engine_core.hpp"

#include "durable/visits.hpp"

namespace weir::detail {

namespace {

/// How many runs a commit lets go first, so that the records they append join it: their next
/// command or end then needs no commit of its own.
constexpr int flush_patience = 128;

/// A command record need not be durable before the command starts: it is written with the next
/// record that must be. Exception: timers, whose time counts from now on.
bool rides_along(record_type type, std::uint16_t flags) noexcept {
  if (type != record_type::command) return false;
  const auto kind = kind_of_command(flags);
  return kind != command_kind::timer && kind != command_kind::limit;
}

}  // namespace

// While a commit is under way, its end wakes the flusher; while runs go first, the last of them
// does.
void engine_core::want_flush() noexcept {
  flush_wanted_ = true;
  if (!committing_ && !flush_put_off_) flusher_->wake();
}

void engine_core::run_has_gone_first() noexcept {
  if (!flush_put_off_ || (pump_->queued && ++runs_gone_first_ < flush_patience)) return;
  flush_put_off_ = false;
  flusher_->wake();
}

journal::appended engine_core::append(durable_run& run, record_type type, std::uint16_t flags,
                                      std::uint64_t command, const payload_view& payload) {
  if (!running()) return {never_durable, 0};
  record_head head;
  head.type = static_cast<std::uint16_t>(type);
  head.flags = flags;
  head.run = run.number();
  head.fiber = fiber_of_key(command);
  head.index = index_of_key(command);
  try {
    const journal::appended at = journal_->append(head, payload);
    run.places.push_back(at.place);
    run.bytes += bytes_in_log(payload.bytes);
    if (steers(type, flags)) run.depends = at.lsn;
    if (!rides_along(type, flags)) want_flush();
    return at;
  } catch (const payload_error&) {
    throw;
  } catch (...) {
    break_down(std::current_exception());
    return {never_durable, 0};
  }
}

// It is written with the command that is issued there, and rides along as that does.
std::uint32_t engine_core::site_of(std::source_location at) {
  if (!running()) return 0;
  const site_table::numbered site = sites_.number_of(at);
  if (!site.is_new) return site.number;
  record_head head;
  head.type = static_cast<std::uint16_t>(record_type::site);
  payload_writer payload;
  detail::site_of(site.number, at).write(payload);
  try {
    journal_->append(head, payload.view());
  } catch (...) {
    break_down(std::current_exception());
  }
  return site.number;
}

// Reports ends after the fibers that were just woken have run: a fiber that starts a run and asks
// for its result at once is then already waiting, however short the run was.
void engine_core::flush() {
  if (journal_ == nullptr || broken_) return;
  finish_durable_runs();
  if (committing_ || compact_some() || !flush_wanted_) return;
  flush_put_off_ = pump_->queued && runs_gone_first_ < flush_patience;
  if (flush_put_off_) return;
  runs_gone_first_ = 0;
  flush_wanted_ = false;
  try {
    std::unique_ptr<journal_batch> batch = journal_->take();
    slice_was_last_ = false;
    if (batch == nullptr) {
      if (compacting_up_to_ != 0) flusher_->wake();
      return;
    }
    taken_lsn_ = journal_->last_lsn();
    committing_ = true;
    writer_->write(std::move(batch));
  } catch (...) {
    committing_ = false;
    break_down(std::current_exception());
  }
}

void engine_core::commit_done(std::unique_ptr<journal_batch> batch,
                              std::exception_ptr error) noexcept {
  if (error && !journal_->failed() && !shutting_down_) {
    stalled_ = std::move(batch);
    return room_looked_for();
  }
  committing_ = false;
  if (error) return break_down(std::move(error));
  journal_->committed(std::move(batch));
  if (compacting_up_to_ != 0 && !journal_->compacting()) compaction_ended();
  wake_durable();
  flusher_->wake();
  room_looked_for();
}

void engine_core::wake_durable() noexcept {
  const in_loop outside(host_);
  const std::uint64_t durable_now = durable_seen_ = journal_->durable_lsn();
  for (linked_wait* w = lsn_waiters_.first(); w != nullptr;) {
    auto& waiting = static_cast<lsn_wait&>(*w);
    w = wait_list::after(*w);
    ++list_visits;
    if (waiting.lsn_ > durable_now && running()) continue;
    lsn_waiters_.remove(waiting);
    waiting.complete();
  }
  if (running()) start_waiting_steps();
}

// What was written is unknown: no run continues, and all waiters get the error.
void engine_core::break_down(std::exception_ptr error) noexcept {
  if (broken_) return;
  broken_ = true;
  failure_ = std::move(error);
  room_looked_for();
  host_.emit("journal_failed", setup_.path, 0, 0, failure_);
  wake_durable();
  const in_loop outside(host_);
  compacted_.set();
  for (auto& [number, run] : runs_) wake_askers(run);
}

}  // namespace weir::detail
