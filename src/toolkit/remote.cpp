// SPDX-License-Identifier: MIT
#include "toolkit/remote.hpp"

#include <algorithm>
#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/region_await.hpp>

#include "core/cancel_tree.hpp"
#include "core/error.hpp"
#include "core/loop.hpp"
#include "toolkit/pool_core.hpp"

namespace weir::detail {

remote_op::remote_op(starter how, bool plain) noexcept : start(how), is_plain(plain) {}
remote_op::~remote_op() = default;

void remote_op::dispose() noexcept {
  if (there != nullptr) there->remote_children.fetch_sub(1, std::memory_order_relaxed);
  if (wants_result) drop_result();
  release();
}

// ------------------------------------------------------------------ messages

void remote_start::deliver(loop& here) noexcept {
  auto& op = static_cast<remote_op&>(*this);
  const std::source_location site = op.site;
  auto* f = scope::make(run_remote(remote_run(op)));
  op.runs_in = f;
  const core_ref keep = core_ref::adopt(
      here.root_scope()->adopt(f, {.name = "remote"}, site, scope::launch::ordinary));
}

void remote_start::refuse() noexcept {
  const remote_run refused(static_cast<remote_op&>(*this));  // its destructor answers
}

void nudge(remote_op& op, door& there, bool force) noexcept {
  using request = remote_nudge::request;
  const auto wanted =
      static_cast<std::uint8_t>(force ? request::cancel | request::force : request::cancel);
  if ((op.requests.load(std::memory_order_relaxed) & wanted) == wanted) return;
  const std::uint8_t before =
      op.requests.fetch_or(wanted | request::on_its_way, std::memory_order_acq_rel);
  if ((before & request::on_its_way) != 0) return;
  op.retain();
  there.post(static_cast<remote_nudge&>(op));
}

// The bit is cleared before the requests are read: a later one posts the message again.
void remote_nudge::deliver(loop& here) noexcept {
  auto& op = static_cast<remote_op&>(*this);
  const remote_ref held(&op);
  const std::uint8_t asked =
      requests.fetch_and(static_cast<std::uint8_t>(~on_its_way), std::memory_order_acq_rel);
  if (!op.heard) op.heard = heard_at(op.why, here.now());
  if (op.running != nullptr) cancel_tree::cancel(*op.running, op.heard, (asked & force) != 0);
}

void remote_nudge::refuse() noexcept { static_cast<remote_op&>(*this).release(); }

// ------------------------------------------------------------------ the running side

void lose(remote_op& op, const door* where) noexcept {
  op.running = nullptr;
  std::string text("loop ");
  if (where != nullptr) text.append("'").append(where->name()).append("' ");
  text.append("ended before the operation that ran on it");
  op.drop_operation();
  op.drop_result();
  op.result().set_error(make_error(errc::loop_gone, text));
}

remote_run::~remote_run() {
  if (op_ == nullptr) return;
  lose(*op_, pool_ == nullptr ? op_->there.get() : &loop::here()->own_door());
  conclude(false);
}

void remote_run::finish() noexcept {
  if (!op_->is_plain && !op_->heard && op_->result().is_cancelled()) return;  // the loop is ending
  conclude(current->budget > 0);
}

// Afterwards the operation belongs to the caller.
void remote_run::conclude(bool may_go_on) noexcept {
  remote_op& op = *std::exchange(op_, nullptr);
  if (pool_ != nullptr) return pool_->ended(op, may_go_on);
  op.runs_in = nullptr;
  op.answer_by_message();
}

remote_region::remote_region(remote_op& op)
    : limited_region(region_kind::timeout, "remote"), of(&op) {
  if (op.deadline != time_point::max()) know_deadline(op.deadline);
}

bool remote_region::is_clean() const noexcept {
  return !cancel_requested() && cancel_tree::problems_or_null(*this) == nullptr &&
         !has_entries(*this);
}

void remote_region::reuse(remote_op& op) noexcept {
  cancel_tree::renew(*this);
  of = &op;
  has_deadline = fired = false;
  if (op.deadline != time_point::max()) know_deadline(op.deadline);
}

remote_region::~remote_region() {
  if (of != nullptr) of->running = nullptr;
}

namespace {

/// An exception has left the operation before there was a frame of it.
void call_failed(outcome_base& out) noexcept {
  frame call;
  call.out = &out;
  call.function = std::source_location::current();
  frame_failed(call);
}

/// A plain callable uses up the turn of its fiber as a small operation would, so that messages and
/// timers of a busy worker are not late.
void charge_turn() noexcept {
  constexpr std::int16_t price = 4;
  std::int16_t& budget = current->budget;
  budget = static_cast<std::int16_t>(budget > price ? budget - price : 0);
}

}  // namespace

// An operation that hears of its cancellation before it begins does not begin; nor does one on a
// loop that is ending, unless it is a plain callable, which hears of nothing.
std::coroutine_handle<> remote_region::start() noexcept {
  remote_op& op = *of;
  if (op.heard) {
    op.result().set_cancelled(op.heard);
    return nullptr;
  }
  enter_region(*this);
  if (cancel_requested()) {
    op.result().set_cancelled(cancel_tree::reason(*this));
    return nullptr;
  }
  op.running = this;
  cancel_tree::locals(*this) = op.locals;
  try {
    return op.start(op, *this);
  } catch (...) {
    call_failed(op.result());
    return nullptr;
  }
}

void remote_region::call() noexcept {
  remote_op& op = *of;
  if (op.heard) {
    op.result().set_cancelled(op.heard);
  } else {
    op.running = this;
    cancel_tree::locals(*this) = op.locals;
    charge_turn();
    try {
      op.start(op, *this);
    } catch (...) {
      call_failed(op.result());
    }
  }
  op.drop_operation();
}

void remote_region::end() {
  failures* problems = cancel_tree::problems_or_null(*this);
  if (problems != nullptr && !problems->cleanup.empty()) {
    outcome_base& out = of->result();
    if (out.is_value()) {
      of->drop_result();
      out.set_error(problems->cleanup.front());
    }
    out.notes().cleanup = std::move(problems->cleanup);
  }
  cancel_tree::leave(*current, *this);
  std::exchange(of, nullptr)->running = nullptr;
}

task<> run_remote(remote_run run) {
  {
    remote_region r(run.op());
    co_await remote_call{&r};
    if (has_entries(r)) co_await quietly(end_region(r, run.op().result()));
    r.end();
  }
  run.finish();
}

// ------------------------------------------------------------------ the caller's side

std::vector<run_place> callers_of(const context& c) {
  for (const context* at = &c; at != nullptr; at = cancel_tree::parent(*at)) {
    if (cancel_tree::kind(*at) != region_kind::timeout) continue;
    const auto& limited = static_cast<const limited_region&>(static_cast<const scope&>(*at));
    const auto* const remote = dynamic_cast<const remote_region*>(&limited);
    if (remote == nullptr) continue;
    if (remote->of == nullptr) return {};  // between two jobs
    const remote_op& op = *remote->of;
    if (op.home() == nullptr || !op.wants_result) return {};
    std::vector<run_place> found{{op.home()->serial(), op.caller, true}};
    if (op.origin != nullptr)
      found.insert(found.end(), op.origin->callers.begin(), op.origin->callers.end());
    return found;
  }
  return {};
}

void inherit(remote_op& op, const wait& caller, time_point limit, const void* clock) {
  const strand& s = *caller.waiting_strand();
  scope& around = cancel_tree::scope_of(*s.top);
  op.locals = cancel_tree::locals(around);
  op.caller = around.id();
  op.site = s.leaf->awaiting;
  // Only a loop that serves others has callers on other loops.
  std::vector<run_place> callers;
  if (loop::here()->serves_others()) callers = callers_of(*s.top);
  trail_ref trail = cancel_tree::trail_around(*s.top);
  // A simulated loop may crash: then the operation goes on without the locals of its caller.
  const bool may_lose_locals = op.locals != nullptr && loop::here()->own_door().simulated();
  if (trail || !callers.empty() || may_lose_locals) [[unlikely]] {
    op.origin = std::make_unique<remote_origin>();
    op.origin->callers = std::move(callers);
    if (trail || may_lose_locals) {
      op.origin->carried = {trail ? &cancel_tree::trail_key : nullptr, trail.get(), op.locals};
      op.origin->trail = std::move(trail);
      op.locals = &op.origin->carried;
    }
  }
  if (clock == loop::here()->own_door().clock())
    op.deadline = std::min(limit, s.top->deadline().value_or(time_point::max()));
}

bool remote_asker::ended_by_itself() const noexcept {
  return cancelling_ && !op_->is_asked() && !op_->result().is_cancelled();
}

void remote_asker::leave_operation(std::string_view object) noexcept {
  if (op_->is_asked()) {  // its loop has crashed; the answer frees it
    if (op_->origin != nullptr) op_->origin->carried.outer = nullptr;
    op_->detach();
    (void)op_.detach();
    return;
  }
  const outcome_base& result = op_->result();
  if (cancelling_ && !in_dead_world()) {
    if (result.is_value()) loop::here()->emit("value_discarded", object);
    if (result.is_error()) loop::here()->emit("suppressed", object, 0, 0, result.error());
  }
  if (op_->wants_result) op_->drop_result();
}

void remote_wait_base::fail_now(errc code, const char* what) {
  op_->drop_operation();
  op_->result().set_error(make_error(code, what));
  complete();
}

void remote_wait_base::arm() {
  loop& here = *loop::here();
  remote_op& op = *op_;
  op.there = here.find_door(there_.index(), there_.serial());
  if (op.there == nullptr)
    return fail_now(errc::loop_gone, "on: the loop has ended; start the operation on another one");
  if (op.there->simulated() != here.own_door().simulated())
    return fail_now(errc::wrong_loop, "on: one of the two loops is simulated and the other is not");
  inherit(op, *this, limit_, op.there->clock());
  op.ask(*this);
  op.there->remote_children.fetch_add(1, std::memory_order_relaxed);
  op.there->post(static_cast<remote_start&>(op));
}

void remote_wait_base::answered() noexcept {
  op_->there->remote_children.fetch_sub(1, std::memory_order_relaxed);
  complete();
}

cancel_result remote_wait_base::withdraw() noexcept {
  cancelling_ = true;
  if (in_dead_world()) return cancel_result::later;
  const context& top = *waiting_strand()->top;
  if (!op_->why) op_->why = remote_reason(cancel_tree::reason(top));
  nudge(*op_, *op_->there, cancel_tree::forced(top));
  return cancel_result::later;
}

void remote_wait_base::grace_over() noexcept { nudge(*op_, *op_->there, true); }

void remote_wait_base::describe(dump_line& line) const {
  const door_ref there = door_table::find(there_.index(), there_.serial());
  line.add("an operation on loop").add_name(there == nullptr ? "(gone)" : there->name());
}

// Only a simulation may inspect the other side: it runs on the same thread.
void remote_wait_base::blockers(blocker_list& list) const {
  if (op_->is_asked() && op_->there->simulated() && op_->runs_in != nullptr)
    list.fibers.push_back(op_->runs_in);
}

}  // namespace weir::detail
