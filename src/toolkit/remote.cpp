// SPDX-License-Identifier: MIT
#include "toolkit/remote.hpp"

#include <algorithm>
#include <string>

#include <weir/deadline.hpp>
#include <weir/detail/dump_line.hpp>
#include <weir/detail/region_await.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"

namespace weir::detail {

remote_op::remote_op(caller how) : call_(how), parts_(std::make_unique<remote_parts>(*this)) {}
remote_op::~remote_op() = default;

// ------------------------------------------------------------------ messages

namespace {

void begin(remote_op& op, loop& here) {
  const std::source_location site = op.parts().site;
  auto* f = scope::make(run_remote(remote_run(remote_ref(&op))));
  op.parts().runs_in = f;
  const core_ref keep = core_ref::adopt(
      here.root_scope()->adopt(f, {.name = "remote"}, site, scope::launch::ordinary));
}

}  // namespace

// A message holds a reference; the one of `start` goes over to whoever runs it.
void remote_message::deliver(loop& here) noexcept {
  switch (kind) {
    case sort::start:
      return begin(*of, here);
    case sort::cancel: {
      const remote_ref held(of);
      remote_parts& parts = of->parts();
      parts.cancelled = true;
      if (parts.running != nullptr) region::cancel(*parts.running, parts.why, false);
      return;
    }
    case sort::answer: {
      const remote_ref held(of);
      if (remote_wait_base* w = std::exchange(of->parts().waiter, nullptr)) w->arrived();
      return;
    }
  }
}

void remote_message::refuse() noexcept {
  if (kind == sort::start) {
    const remote_run refused{remote_ref(of)};  // which answers
  } else {
    of->release();
  }
}

// The reference goes with the message, so that the result dies where it arrives.
void answer(remote_ref op) noexcept {
  remote_parts& parts = op->parts();
  if (parts.home == nullptr) return;
  parts.there->remote_children.fetch_sub(1, std::memory_order_relaxed);
  op.detach();
  parts.home->post(parts.answer);
}

void request_cancel(remote_op& op, reason_ref why) noexcept {
  remote_parts& parts = op.parts();
  if (parts.why || parts.there == nullptr) return;
  parts.why = std::move(why);
  op.retain();
  parts.there->post(parts.cancel);
}

// ------------------------------------------------------------------ the running side

remote_run::~remote_run() {
  if (!op_) return;
  op_->parts().running = nullptr;
  op_->parts().runs_in = nullptr;
  const door_ref& there = op_->parts().there;
  std::string text("loop ");
  if (there != nullptr) text.append("'").append(there->name()).append("' ");
  text.append("ended before the operation that ran on it");
  op_->drop_operation();
  op_->result().set_error(std::make_exception_ptr(error(errc::loop_gone, text)));
  answer(std::move(op_));
}

void remote_run::finish(outcome<void>& how, bool past_deadline) {
  if (how.is_cancelled() && !op_->parts().cancelled && !past_deadline) return;  // the loop ends
  op_->drop_operation();
  if (how.is_error()) {
    op_->result().set_error(how.error());
  } else if (how.is_cancelled() && past_deadline) {
    op_->result().set_error(timeout_of({{}, {}, true}));
  } else if (how.is_cancelled()) {
    op_->result().set_cancelled(how.reason_reference());
  }
  op_->parts().running = nullptr;
  op_->parts().runs_in = nullptr;
  answer(std::move(op_));
}

remote_region::remote_region(remote_op& op)
    : limited_region(region_kind::timeout, "remote"), of(op) {
  if (!op.parts().deadline) return;
  set_deadline(*op.parts().deadline, cancel_kind::deadline);
  current->unarmed_deadlines = true;
}

remote_region::~remote_region() { of.parts().running = nullptr; }

task<> run_remote(remote_run run) {
  outcome<void> how;
  bool past_deadline = false;
  {
    remote_op& op = run.op();
    remote_region r(op);
    if (op.parts().cancelled) {
      how.set_cancelled(op.parts().why);
    } else {
      auto call = [&] {
        op.parts().running = &r;
        region::locals(r) = op.parts().locals;
        return op.call(r);
      };
      co_await inside(r, how, call);
      if (has_entries(r)) co_await quietly(end_region(r, how));
      past_deadline = r.ended_by_it;
      region::leave(*current, r);
    }
  }
  run.finish(how, past_deadline);
}

// ------------------------------------------------------------------ the caller's side

std::optional<time_point> earlier(std::optional<time_point> outer, time_point limit) noexcept {
  if (limit == time_point::max()) return outer;
  return outer ? std::min(*outer, limit) : limit;
}

void remote_wait_base::fail_now(errc code, const char* what) {
  op_->drop_operation();
  op_->result().set_error(std::make_exception_ptr(error(code, what)));
  complete();
}

void remote_wait_base::arm() {
  loop& here = *loop::here();
  remote_parts& parts = op_->parts();
  parts.there = door_table::find(there_.index(), there_.serial());
  if (parts.there == nullptr)
    return fail_now(errc::loop_gone, "on: the loop has ended; start the operation on another one");
  if (parts.there->simulated() != here.own_door().simulated())
    return fail_now(errc::wrong_loop, "on: one of the two loops is simulated and the other is not");
  const strand& s = *waiting_strand();
  parts.home = here.shared_door();
  parts.locals = region::locals(region::scope_of(*s.top));
  parts.deadline = earlier(s.top->deadline(), limit_);
  parts.site = s.leaf->awaiting;
  parts.waiter = this;
  waiting_ = true;
  parts.there->remote_children.fetch_add(1, std::memory_order_relaxed);
  here.expect_answer(1);
  op_->retain();
  parts.there->post(parts.start);
}

void remote_wait_base::arrived() noexcept {
  waiting_ = false;
  loop::here()->expect_answer(-1);
  if (cancelling_ && op_->result().is_value()) loop::here()->emit("value_discarded", "on");
  complete();
}

cancel_result remote_wait_base::withdraw() noexcept {
  cancelling_ = true;
  if (in_dead_world()) return cancel_result::later;
  const reason_ref& why = region::reason(*waiting_strand()->top);
  request_cancel(*op_.get(), remote_reason(why, loop::here()->now()));
  return cancel_result::later;
}

remote_wait_base::~remote_wait_base() {
  if (!waiting_) return;
  op_->parts().waiter = nullptr;
  loop::here()->expect_answer(-1);
}

void remote_wait_base::describe(dump_line& line) const {
  const door_ref there = door_table::find(there_.index(), there_.serial());
  line.add("an operation on loop").add_name(there == nullptr ? "(gone)" : there->name());
}

// Only a simulation may look at the other side: it is on the same thread.
void remote_wait_base::blockers(blocker_list& list) const {
  remote_parts& parts = op_->parts();
  if (waiting_ && parts.there->simulated() && parts.runs_in != nullptr)
    list.fibers.push_back(parts.runs_in);
}

}  // namespace weir::detail
