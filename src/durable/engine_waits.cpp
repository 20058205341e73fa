// SPDX-License-Identifier: MIT
// Waiting for the journal and for the end of a run.
#include "durable/engine_core.hpp"

#include <weir/detail/core/dump_line.hpp>

namespace weir::detail {

bool lsn_wait::try_now() const noexcept {
  return !engine_->running() || engine_->journal_->durable_lsn() >= lsn_;
}

void lsn_wait::arm() noexcept {
  engine_->lsn_waiters_.push_back(*this);
  if (lsn_ > engine_->taken_lsn_) engine_->want_flush();
}

cancel_result lsn_wait::withdraw() noexcept {
  engine_->lsn_waiters_.remove(*this);
  return cancel_result::done;
}

void lsn_wait::describe(dump_line& line) const { line.add("the journal"); }

void lsn_wait::take() const {
  const std::uint64_t last =
      engine_->journal_ == nullptr ? engine_->durable_seen_ : engine_->journal_->durable_lsn();
  if (last >= lsn_) return;
  if (engine_->broken_) std::rethrow_exception(engine_->failure_);
  raise(errc::not_open, "the durable engine was closed before this was on the disk");
}

durable_run* end_wait::unfinished() const noexcept { return engine_->by_id_.find(id_); }

bool end_wait::try_now() const noexcept {
  if (!engine_->running()) return true;
  const durable_run* const run = unfinished();
  return run == nullptr || run->final;
}

void end_wait::arm() noexcept {
  run_ = unfinished();
  run_->askers.push_back(*this);
}

cancel_result end_wait::withdraw() noexcept {
  run_->askers.remove(*this);
  return cancel_result::done;
}

void end_wait::describe(dump_line& line) const { line.add("durable run").add_name(id_); }

command_answer end_wait::take() {
  if (error_) std::rethrow_exception(error_);
  if (answer_) return std::move(*answer_);
  if (engine_->broken_) std::rethrow_exception(engine_->failure_);
  if (!engine_->open_) raise(errc::not_open, "the durable engine was closed before the run ended");
  const engine_core::known_run known = engine_->require_known(id_);
  return engine_->late_result(known.ended ? known.ended->end : known.run->end_part->place);
}

// Passes on the outcome of the run, if it has one.
void engine_core::wake_askers(durable_run& run) noexcept {
  while (!run.askers.empty()) {
    auto& asker = static_cast<end_wait&>(*run.askers.first());
    run.askers.remove(asker);
    if (run.final) {
      asker.error_ = run.end_part->error;
      asker.answer_ = run.end_part->outcome;
    }
    asker.complete();
  }
}

// ------------------------------------------------------------------ results of runs

engine_core::known_run engine_core::require_known(std::string_view id) {
  if (known_run found = find_known(id)) return found;
  raise(errc::invalid_argument,
        "run '" + std::string(id) + "' is not in the journal '" + setup_.path + "'");
}

command_answer engine_core::late_result(record_place end) {
  std::string payload;
  const record_head head = journal_->read(end, payload);
  const answer_record read = answer_record::read(payload);
  command_answer how;
  how.how = answer_kind(head.flags);
  how.text = read.text;
  how.facts = read.facts;
  return how;  // an error always becomes a terminal_error with its message
}

task<std::string> run_result(std::shared_ptr<run_hold> run, std::string id) {
  const std::shared_ptr<engine_core> engine = run->engine();
  engine->require_open("result");
  (void)engine->require_known(id);
  command_answer how = co_await engine->end_of(id);
  if (how.how != command_answer::kind::value) raise_answer(how);
  co_return how.text;
}

}  // namespace weir::detail
