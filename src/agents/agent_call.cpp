// SPDX-License-Identifier: MIT
// Waits on agents: for an answer, for room in a mailbox.
#include <weir/detail/agents/agent_call.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>

#include "agents/agent_extra.hpp"
#include "core/cancel_tree.hpp"

namespace weir::detail {

void raise_empty_handler() {
  raise(errc::empty_job, "a null pointer was given as the handler of a message");
}

// ------------------------------------------------------------------ call chains

chain_link::chain_link(agent_core& handler, trail_ref around)
    : agent(agent_handle::share(&handler)), outer(std::move(around)) {}
chain_link::~chain_link() {
  // Destroys a long chain iteratively, not recursively.
  trail_ref rest = std::move(outer);
  while (rest) {
    auto& link = static_cast<chain_link&>(*rest.get());
    if (!link.has_one_owner()) return;
    trail_ref next = std::move(link.outer);
    rest = std::move(next);
  }
}

// Chains may be long, and most callees have no pending call: check the link count first.
std::exception_ptr agent_core::cycle_here(const trail_ref& chain) const {
  const std::uint32_t all = !has_extra() ? 1 : extra().lives;
  if (links_.load(std::memory_order_relaxed) < all) return nullptr;
  std::uint32_t waiting = 0;
  const auto outer_of = [](const trail* t) { return static_cast<const chain_link*>(t); };
  for (const chain_link* l = outer_of(chain.get()); l != nullptr; l = outer_of(l->outer.get()))
    if (l->agent.get() == this && l->running.load(std::memory_order_acquire)) ++waiting;
  if (waiting < all) return nullptr;
  std::vector<std::string> names;
  for (const chain_link* l = outer_of(chain.get()); l != nullptr; l = outer_of(l->outer.get()))
    names.insert(names.begin(), std::string(l->agent->name()));
  std::string text("call cycle: ");
  for (const std::string& one : names) text.append("'").append(one).append("' -> ");
  text.append("'").append(name()).append("', whose handler waits for this call; cast instead, or ");
  text.append("answer later");
  return std::make_exception_ptr(agent_error(errc::call_cycle, text, std::move(names)));
}

void agent_core::blockers(blocker_list& list) const {
  const bool visible = is_here() || (has_home() && door_->simulated() && may_be_reached());
  if (!visible) return;
  for (const agent_life* l = lives_; l != nullptr; l = l->sibling_) list.fibers.push_back(l);
}

// ------------------------------------------------------------------ answers

void agent_core::answer(call_envelope& e) const noexcept {
  if (!e.claim()) {
    if (!e.orphaned && loop::here() != nullptr && !in_dead_world())
      loop::here()->emit("late_reply", name());
    return e.dispose();
  }
  e.chain = {};
  e.answer();
}

void agent_core::answer(call_envelope& e, std::exception_ptr problem) const noexcept {
  e.result().set_error(std::move(problem));
  answer(e);
}

// ------------------------------------------------------------------ call

bool call_wait_base::try_now() noexcept {
  const trail_ref chain = cancel_tree::trail_around(*current->top);
  if (chain) error_ = to_->cycle_here(chain);
  return error_ != nullptr;
}

void call_wait_base::arm() noexcept {
  loop& here = *loop::here();
  call_envelope& e = *message_;
  context& top = *waiting_strand()->top;
  e.chain = cancel_tree::trail_around(top);
  if (to_->clock() == here.own_door().clock() || to_->is_here()) {
    if (const auto deadline = top.deadline()) e.deadline = *deadline;
    if (limit_ < e.deadline) e.deadline = limit_;
  }
  e.ask(*this, !to_->is_here());
  switch (to_->offer(e)) {
    case agent_core::room::yes:
    case agent_core::room::lost:
      return;
    case agent_core::room::wait:
      (void)to_->enter_line(e);
      return;
    case agent_core::room::full:
      return to_->answer(e, to_->problem(errc::mailbox_full));
    case agent_core::room::crashed:
      return to_->answer(e, to_->problem(errc::agent_crashed));
    case agent_core::room::gone:
      return to_->answer(e, to_->refusal());
  }
}

void call_wait_base::answered() noexcept { complete(); }

void call_wait_base::abandon() noexcept {
  call_envelope& e = *std::exchange(message_, nullptr);
  if (to_->is_here() && e.in_line) {
    to_->leave_line(e);
    e.take_back();
    return e.dispose();
  }
  if (in_dead_world()) e.orphaned = true;
  if (e.leave() == reply::phase::answered && !in_dead_world())
    loop::here()->emit("late_reply", to_->name());
}

// Returns `later`, not `done`: a call that was sent cannot be withdrawn and started again. It
// completes at once.
cancel_result call_wait_base::withdraw() noexcept {
  abandon();
  complete();
  return cancel_result::later;
}

call_wait_base::~call_wait_base() {
  if (message_ == nullptr) return;
  if (message_->is_idle()) {  // answered, declined or never sent
    message_->detach();
    message_->dispose();
  } else {
    abandon();
  }
}

void call_wait_base::describe(dump_line& line) const {
  line.add("call of agent").add_name(to_->name());
}

void call_wait_base::blockers(blocker_list& list) const { to_->blockers(list); }

// ------------------------------------------------------------------ send

bool mail_send_wait::try_now() {
  require_no_run_for("agent", *to_);
  switch (crashing ? agent_core::room::gone : to_->offer(*message_)) {
    case agent_core::room::yes:
      message_ = nullptr;
      return true;
    case agent_core::room::wait:
      error_ = to_->cycle_here(cancel_tree::trail_around(*current->top));
      return error_ != nullptr;
    case agent_core::room::lost:
      message_ = nullptr;
      error_ = to_->problem(errc::loop_gone);
      return true;
    case agent_core::room::full:
    case agent_core::room::crashed:
      error_ = to_->problem(errc::mailbox_full);
      return true;
    case agent_core::room::gone:
      error_ = to_->refusal();
      return true;
  }
  return true;
}

void mail_send_wait::arm() noexcept {
  ticket_ = new room_ticket;
  ticket_->ask(*this, !to_->is_here());
  message_->ticket = ticket_;
  envelope& e = *std::exchange(message_, nullptr);
  if (to_->enter_line(e) && ticket_ != nullptr) message_ = &e;
}

void mail_send_wait::answered() noexcept {
  room_ticket* const ticket = std::exchange(ticket_, nullptr);
  error_ = ticket->problem;
  message_ = nullptr;
  ticket->dispose();
  complete();
}

bool room_ticket::decide(std::exception_ptr why) noexcept {
  if (!claim()) {
    dispose();
    return false;
  }
  problem = std::move(why);
  return true;
}

cancel_result mail_send_wait::withdraw() noexcept {
  if (message_ != nullptr) {  // in the line of an agent of this loop: withdraw it
    to_->leave_line(*message_);
    message_->ticket = nullptr;
    ticket_->take_back();
    std::exchange(ticket_, nullptr)->dispose();
    return cancel_result::done;
  }
  if (!ticket_->abandon()) {
    if (!in_dead_world()) return cancel_result::no;  // already decided: the ticket is on its way
    ticket_->detach();
  }
  ticket_ = nullptr;
  complete();
  return cancel_result::later;
}

mail_send_wait::~mail_send_wait() {
  if (message_ != nullptr) message_->dispose();
}

void mail_send_wait::describe(dump_line& line) const {
  line.add("room in the mailbox of agent").add_name(to_->name());
}

void mail_send_wait::blockers(blocker_list& list) const { to_->blockers(list); }

}  // namespace weir::detail
