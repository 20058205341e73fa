// SPDX-License-Identifier: MIT
// The waits of a pool's callers: for room, for a result, for the end of all jobs.
#include <string>

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"
#include "toolkit/pool_core.hpp"

namespace weir::detail {

namespace {

/// How long a caller waits for a batch of places before it asks for the first one: longer than
/// small jobs take to free a batch, shorter than a caller would notice.
constexpr duration patience = std::chrono::microseconds(50);

}  // namespace

// ------------------------------------------------------------------ close

void drain_wait::arm() {
  asked_ = !pool_->drained(*this);
  if (!asked_) complete();
}

void drain_wait::answered() noexcept {
  asked_ = false;
  pool_->drain().pool.reset();
  complete();
}

cancel_result drain_wait::withdraw() noexcept {
  if (!pool_->forget_drain()) return cancel_result::no;  // the answer is on its way
  asked_ = false;
  return cancel_result::done;
}

drain_wait::~drain_wait() {
  if (asked_) pool_->drain().detach();
}

void drain_wait::describe(dump_line& line) const {
  line.add("the jobs of pool").add_name(pool_->name());
}

// ------------------------------------------------------------------ submit, run

pool_wait_base::pool_wait_base(args&& a) noexcept
    : remote_asker(std::move(a.job)), pool_(std::move(a.pool)), for_result_(a.for_result) {
  if (op_) op_->wants_result = for_result_;
}

// Whether the job is empty, or this pool accepts no jobs.
bool pool_wait_base::is_refused() {
  if (!op_) {
    refused_ = errc::empty_job;
  } else if (pool_->is_of_another_world()) {
    refused_ = errc::wrong_loop;
  } else {
    refused_ = pool_->refusal_now();
  }
  return refused_ != pool_core::accepted;
}

// True if there is nothing to wait for: accepted, or finally refused.
bool pool_wait_base::enter(bool may_wait) {
  const bool own = pool_->is_own_worker();
  if (!op_ || (own && for_result_)) {
    if (!is_refused()) refused_ = errc::would_deadlock;
    return true;
  }
  if (may_wait && !own) return !wait_in_line();
  if (for_result_) return false;
  refused_ = pool_->enter(op_, pool_core::entry::now);
  if (refused_ != errc::pool_full) return true;
  if (own) refused_ = errc::would_deadlock;
  return own;
}

// True: an answer will come. The reply is asked before another thread can answer it.
bool pool_wait_base::wait_in_line() {
  loop& here = *loop::here();
  const bool real = here.own_door().clock() == nullptr;
  if (for_result_) inherit(*op_, *this, limit_, pool_->clock());
  op_->ask(*this);
  refused_ = pool_->enter(op_, real ? pool_core::entry::waits : pool_core::entry::waits_urgently);
  const bool waits = refused_ == errc::pool_full;
  if (waits) refused_ = pool_core::accepted;
  if (waits && real && pool_->gives_room_in_batches())
    here.arm_watch(watch_, saturating_add(here.now(), patience));
  if (waits || (for_result_ && refused_ == pool_core::accepted)) return true;
  op_->take_back();
  return false;
}

void pool_wait_base::room_watch::expired() noexcept { of.pool_->make_urgent(); }

void pool_wait_base::stop_watch() noexcept {
  if (watch_.armed()) loop::here()->cancel_deadline(watch_);
}

bool pool_wait_base::try_now() {
  pool_->require_no_run();
  return enter(false);
}

void pool_wait_base::arm() {
  if (enter(true)) complete();
}

void pool_wait_base::answered() noexcept {
  stop_watch();
  if (op_->refused) refused_ = pool_->refusal_now();
  complete();
}

cancel_result pool_wait_base::withdraw() noexcept {
  if (!is_asked()) return cancel_result::done;
  stop_watch();
  const context& top = *waiting_strand()->top;
  const cancel_result answer =
      pool_->take_back(*op_, remote_reason(cancel_tree::reason(top)), cancel_tree::forced(top));
  if (answer == cancel_result::done) op_->take_back();
  cancelling_ = cancelling_ || answer == cancel_result::later;
  return answer;
}

void pool_wait_base::grace_over() noexcept { (void)pool_->take_back(*op_, {}, true); }

pool_wait_base::~pool_wait_base() {
  stop_watch();
  leave(pool_->name());
}

bool pool_wait_base::failed() const noexcept {
  return refused_ != pool_core::accepted || (for_result_ && !op_->result().is_value());
}

void pool_wait_base::check() const {
  if (refused_ == pool_core::accepted) return;
  if (refused_ == errc::empty_job) raise_empty_job();
  std::string text("pool '");
  text.append(pool_->name());
  if (refused_ == errc::would_deadlock)
    raise(errc::would_deadlock,
          text.append("': one of its own jobs waits for it and would wait for ever; use "
                      "try_submit, or another pool"));
  pool_->raise_refusal(refused_);
}

void pool_wait_base::describe(dump_line& line) const {
  line.add(for_result_ ? "a job of pool" : "room in pool").add_name(pool_->name());
}

}  // namespace weir::detail
