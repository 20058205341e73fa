// SPDX-License-Identifier: MIT
#include "toolkit/remote.hpp"

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/region_await.hpp>

#include "core/cancel_tree.hpp"
#include "core/error.hpp"
#include "core/loop.hpp"

namespace weir::detail {

remote_op::remote_op(caller how) : call_(how), extra_(std::make_unique<remote_extra>(*this)) {}
remote_op::~remote_op() = default;

// ------------------------------------------------------------------ messages

namespace {

void begin(remote_op& op, loop& here) {
  const std::source_location site = op.extra().site;
  auto* f = scope::make(run_remote(remote_run(remote_ref(&op))));
  op.extra().runs_in = f;
  const core_ref keep = core_ref::adopt(
      here.root_scope()->adopt(f, {.name = "remote"}, site, scope::launch::ordinary));
}

}  // namespace

// A message holds a reference; that of `start` passes to the running side.
void remote_message::deliver(loop& here) noexcept {
  switch (what) {
    case kind::start:
      return begin(*of, here);
    case kind::cancel: {
      const remote_ref held(of);
      remote_extra& extra = of->extra();
      extra.heard = heard_at(extra.why, here.now());
      if (extra.running != nullptr) cancel_tree::cancel(*extra.running, extra.heard, false);
      return;
    }
    case kind::force: {
      const remote_ref held(of);
      remote_extra& extra = of->extra();
      if (extra.running != nullptr) cancel_tree::cancel(*extra.running, extra.heard, true);
      return;
    }
  }
}

void remote_message::refuse() noexcept {
  if (what == kind::start) {
    const remote_run refused{remote_ref(of)};  // its destructor answers
  } else {
    of->release();
  }
}

// The reference travels with the message, so that the result is destroyed at its destination.
void answer(remote_ref op) noexcept {
  remote_extra& extra = op->extra();
  if (extra.answer.home() == nullptr) return;
  extra.there->remote_children.fetch_sub(1, std::memory_order_relaxed);
  op.detach();
  extra.answer.answer_by_message();
}

void request_cancel(remote_op& op, reason_ref why, bool force) noexcept {
  remote_extra& extra = op.extra();
  if (extra.there == nullptr) return;
  if (!extra.why) {
    extra.why = std::move(why);
    op.retain();
    extra.there->post(extra.cancel);
  }
  if (force && !std::exchange(extra.forced, true)) {
    op.retain();
    extra.there->post(extra.force);
  }
}

void emit_unseen(const outcome_base& result, std::string_view object) noexcept {
  if (in_dead_world()) return;
  if (result.is_value()) loop::here()->emit("value_discarded", object);
  if (result.is_error()) loop::here()->emit("suppressed", object, 0, 0, result.error());
}

// ------------------------------------------------------------------ the running side

remote_run::~remote_run() {
  if (!op_) return;
  op_->extra().running = nullptr;
  op_->extra().runs_in = nullptr;
  const door_ref& there = op_->extra().there;
  std::string text("loop ");
  if (there != nullptr) text.append("'").append(there->name()).append("' ");
  text.append("ended before the operation that ran on it");
  op_->drop_operation();
  op_->drop_result();
  op_->result().set_error(make_error(errc::loop_gone, text));
  answer(std::move(op_));
}

void remote_run::finish(outcome<void>& how) {
  if (how.is_cancelled() && !op_->extra().heard) return;  // the loop is ending
  op_->drop_operation();
  outcome_base& result = op_->result();
  if (!how.is_value()) op_->drop_result();
  if (how.is_error()) result.set_error(how.error());
  if (how.is_cancelled()) result.set_cancelled(how.reason_reference());
  if (!how.cleanup().empty()) result.notes().cleanup = how.cleanup();
  how.reset();  // the caller must hold the last reference to the error
  op_->extra().running = nullptr;
  op_->extra().runs_in = nullptr;
  answer(std::move(op_));
}

remote_region::remote_region(remote_op& op)
    : limited_region(region_kind::timeout, "remote"), of(op) {
  if (op.extra().deadline) know_deadline(*op.extra().deadline);
}

remote_region::~remote_region() { of.extra().running = nullptr; }

namespace {

// A failed cleanup makes the operation fail.
void keep_cleanup_errors(scope& r, outcome<void>& how) {
  failures* problems = cancel_tree::problems_or_null(r);
  if (problems == nullptr || problems->cleanup.empty()) return;
  if (how.is_value()) {
    how.drop_value();
    how.set_error(problems->cleanup.front());
  }
  how.notes().cleanup = std::move(problems->cleanup);
}

}  // namespace

task<> run_remote(remote_run run) {
  outcome<void> how;
  {
    remote_op& op = run.op();
    remote_region r(op);
    if (op.extra().heard) {
      how.set_cancelled(op.extra().heard);
    } else {
      auto call = [&] {
        op.extra().running = &r;
        cancel_tree::locals(r) = op.extra().locals;
        return op.call(r);
      };
      co_await inside(r, how, call);
      if (has_entries(r)) co_await quietly(end_region(r, how));
      keep_cleanup_errors(r, how);
      cancel_tree::leave(*current, r);
    }
  }
  run.finish(how);
}

// ------------------------------------------------------------------ the caller's side

std::vector<run_place> callers_of(const context& c) {
  for (const context* at = &c; at != nullptr; at = cancel_tree::parent(*at)) {
    if (cancel_tree::kind(*at) != region_kind::timeout) continue;
    const auto& limited = static_cast<const limited_region&>(static_cast<const scope&>(*at));
    const auto* const remote = dynamic_cast<const remote_region*>(&limited);
    if (remote == nullptr) continue;
    const remote_extra& extra = remote->of.extra();
    const door_ref& home = extra.answer.home();
    if (home == nullptr) return {};
    std::vector<run_place> found{{home->serial(), extra.caller, true}};
    found.insert(found.end(), extra.callers.begin(), extra.callers.end());
    return found;
  }
  return {};
}

void inherit(remote_extra& extra, const wait& caller, time_point limit, const void* clock) {
  const strand& s = *caller.waiting_strand();
  scope& around = cancel_tree::scope_of(*s.top);
  extra.locals = cancel_tree::locals(around);
  extra.caller = around.id();
  // Only a loop that serves others has callers on other loops.
  if (loop::here()->serves_others()) extra.callers = callers_of(*s.top);
  if (extra.trail = cancel_tree::trail_around(*s.top); extra.trail) {
    extra.carried = {&cancel_tree::trail_key, extra.trail.get(), extra.locals};
    extra.locals = &extra.carried;
  }
  extra.site = s.leaf->awaiting;
  if (clock != loop::here()->own_door().clock()) return;
  extra.deadline = s.top->deadline();
  if (limit != time_point::max() && (!extra.deadline || limit < *extra.deadline))
    extra.deadline = limit;
}

void remote_wait_base::fail_now(errc code, const char* what) {
  op_->drop_operation();
  op_->result().set_error(make_error(code, what));
  complete();
}

void remote_wait_base::arm() {
  loop& here = *loop::here();
  remote_extra& extra = op_->extra();
  extra.there = door_table::find(there_.index(), there_.serial());
  if (extra.there == nullptr)
    return fail_now(errc::loop_gone, "on: the loop has ended; start the operation on another one");
  if (extra.there->simulated() != here.own_door().simulated())
    return fail_now(errc::wrong_loop, "on: one of the two loops is simulated and the other is not");
  inherit(extra, *this, limit_, extra.there->clock());
  extra.answer.ask(*this);
  extra.there->remote_children.fetch_add(1, std::memory_order_relaxed);
  op_->retain();
  extra.there->post(extra.start);
}

void remote_wait_base::answered() noexcept {
  op_->extra().answer.dispose();
  complete();
}

cancel_result remote_wait_base::withdraw() noexcept {
  cancelling_ = true;
  if (in_dead_world()) return cancel_result::later;
  const context& top = *waiting_strand()->top;
  request_cancel(*op_.get(), remote_reason(cancel_tree::reason(top)), cancel_tree::forced(top));
  return cancel_result::later;
}

void remote_wait_base::grace_over() noexcept { request_cancel(*op_.get(), {}, true); }

bool remote_wait_base::ended_by_itself() const noexcept {
  return cancelling_ && !op_->extra().answer.is_asked() && !op_->result().is_cancelled();
}

remote_wait_base::~remote_wait_base() {
  if (op_->extra().answer.is_asked()) {
    op_->extra().answer.detach();
  } else if (cancelling_) {
    emit_unseen(op_->result(), "on");
  }
}

void remote_wait_base::describe(dump_line& line) const {
  const door_ref there = door_table::find(there_.index(), there_.serial());
  line.add("an operation on loop").add_name(there == nullptr ? "(gone)" : there->name());
}

// Only a simulation may inspect the other side: it runs on the same thread.
void remote_wait_base::blockers(blocker_list& list) const {
  remote_extra& extra = op_->extra();
  if (extra.answer.is_asked() && extra.there->simulated() && extra.runs_in != nullptr)
    list.fibers.push_back(extra.runs_in);
}

}  // namespace weir::detail
