// SPDX-License-Identifier: MIT
// Completions of runs: recorded, then delivered. Answers, signals, cancellations.
#include "durable/engine_core.hpp"

#include "core/error.hpp"
#include "durable/awakeable_id.hpp"

namespace weir::detail {

std::uint64_t engine_core::record(durable_run& run, const completion& what) {
  payload_writer payload;
  what.write(payload);
  return append(run, what.type, static_cast<std::uint16_t>(what.answer.how), what.command,
                payload.view())
      .lsn;
}

void engine_core::hand_over(durable_run& run, completion&& what) {
  if (run.live == nullptr) return resume(run);
  if (what.type == record_type::answer) {
    const auto waiting = run.live->issued.find(what.command);
    if (waiting != run.live->issued.end()) waiting->second->answered = true;
  }
  run.live->need_inbox().push_back(std::move(what));
  make_ready(run);
}

std::uint64_t engine_core::deliver_to(durable_run& run, completion&& what) {
  const std::uint64_t lsn = record(run, what);
  hand_over(run, std::move(what));
  return lsn;
}

void engine_core::answer_run(durable_run& run, completion what) {
  try {
    record(run, what);
  } catch (const payload_error& e) {
    what.answer.how = command_answer::kind::error;
    what.answer.code = errc_of(e);
    what.answer.text = e.what();
    what.answer.facts = {};
    record(run, what);
  }
  hand_over(run, std::move(what));
}

engine_core::delivered engine_core::resolve(std::string_view id, bool ok, std::string text) {
  require_open(ok ? "resolve" : "reject");
  const std::optional<awakeable_ref> of = parse_awakeable_id(id, secret());
  if (!of)
    raise(errc::unknown_awakeable, "'" + std::string(id.substr(0, 64)) +
                                       "' is no awakeable of the journal '" + setup_.path + "'");
  durable_run* run = find(of->run);
  if (run == nullptr || run->ended() || run->rare().resolved.contains(of->command))
    return {false, journal_->last_lsn()};
  if (stalled_) require_room();
  if (ok) run->require_fits_awakeable(of->command, text);
  completion what{record_type::resolved, of->command, wall_now(), {}, {}};
  what.answer.how = ok ? command_answer::kind::value : command_answer::kind::error;
  what.answer.text = std::move(text);
  const std::uint64_t lsn = deliver_to(*run, std::move(what));
  run->need_rare().resolved.insert(of->command);
  return {true, lsn};
}

engine_core::delivered engine_core::signal(std::string_view run_id, std::string_view name,
                                           std::string value) {
  require_open("signal");
  durable_run* const found = by_id_.find(run_id);
  if (found == nullptr || found->ended()) return {false, journal_->last_lsn()};
  if (stalled_) require_room();
  durable_run& run = *found;
  run.require_fits_signal(name, value);
  completion what{record_type::signal, 0, wall_now(), std::string(name), {}};
  what.answer.how = command_answer::kind::value;
  what.answer.text = std::move(value);
  const std::uint64_t lsn = deliver_to(run, std::move(what));
  if (run.live != nullptr) ++run.live->need_tables().signals[std::string(name)].on_their_way;
  return {true, lsn};
}

bool engine_core::cancel(std::string_view id, std::string_view why) {
  require_open("cancel");
  durable_run* const found = by_id_.find(id);
  if (found == nullptr || found->ended()) return false;
  durable_run& run = *found;
  const bool blocked = run.state == durable::run_state::blocked;
  if (blocked && run.rare().cancelled_blocked) return true;
  if (!blocked || run.resuming) {
    completion what{record_type::cancel, 0, wall_now(), {}, {}};
    what.answer.how = command_answer::kind::cancelled;
    what.answer.text = why;
    deliver_cancel(run, std::move(what));
  }
  // A run that is about to be replayed runs its cleanup, unless it is blocked again.
  if (blocked) run.set_cancelled_blocked(std::string(why));
  if (blocked && run.live == nullptr && !run.resuming) end_blocked(run);
  require_running();
  return true;
}

void engine_core::deliver_cancel(durable_run& run, completion what) {
  if (is_queued(run)) return end_queued(run, std::move(what.answer.text));
  if (run.live == nullptr && !run.resuming && waits_to_begin(run))
    what.answer.code = cancelled_early;
  const bool before = std::exchange(run.cancel_asked, true);
  try {
    deliver_to(run, std::move(what));
  } catch (const payload_error&) {
    run.cancel_asked = before;
    throw;
  }
}

bool cancel_run(run_hold& run, const std::string& id, std::string_view why) {
  return run.engine()->cancel(id, why);
}

}  // namespace weir::detail
