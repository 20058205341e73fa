// SPDX-License-Identifier: MIT
// One life of an agent: construct the object, handle messages one at a time, end.
#include <weir/detail/agents/agent_life.hpp>

#include <weir/detail/agents/agent_timer.hpp>
#include <weir/detail/core/dump_line.hpp>

#include "agents/agent_extra.hpp"
#include "core/cancel_tree.hpp"

namespace weir::detail {

struct agent_life::extra {
  std::exception_ptr crash;
  counted_ref<chain_link> link;  // of the message being handled; made on first request
  std::unique_ptr<scope> area;   // the scope of the incarnation
  outcome<void> body;            // how the work in that scope ended
  outcome<void> closing;         // result of the frame that ends the scope
  birth_listener* listener = nullptr;
  door_ref listening;  // the loop of `listener`; null: this one
  agent_timer* timers = nullptr;
};

namespace {

/// Notifies an owner on another loop. It arrives before the end of the life does, so the listener
/// still exists.
struct birth_message final : message {
  explicit birth_message(birth_listener& l) noexcept : listener(&l) {}
  void deliver(loop&) noexcept override {
    listener->born();
    delete this;
  }
  void refuse() noexcept override { delete this; }
  birth_listener* listener;
};

}  // namespace

agent_life::agent_life(agent_core& of) noexcept : of_(agent_handle::share(&of)) {}
agent_life::~agent_life() = default;

agent_life::extra& agent_life::need_extra() {
  if (extra_ == nullptr) extra_ = std::make_unique<extra>();
  return *extra_;
}

void agent_life::notify(birth_listener* listener, const std::shared_ptr<door>& listening) {
  need_extra().listener = listener;
  need_extra().listening = listening;
}

// ------------------------------------------------------------------ turns

driven_fiber::next_step agent_life::drive() {
  switch (stage_) {
    case stage::fresh:
      stage_ = stage::serving;
      if (cancel_tree::may_not_park(*this) || core().cycle_.phase() == agent_phase::cut)
        return end();
      construct();
      break;
    case stage::serving:
      if (handling_ != nullptr) handled();
      break;
    case stage::closing:
      return scope_ended();
    case stage::over:
      return next_step::end;
  }
  return serve();
}

void agent_life::construct() {
  agent_core& c = core();
  try {
    scope* area = nullptr;
    if (c.wants_scope()) {
      scope_options options;
      options.name = c.name();
      need_extra().area = std::make_unique<scope>(scope_setup(options, site), region_kind::scope);
      area = need_extra().area.get();
      cancel_tree::enter(*this, *area);
    }
    c.construct(*this, area);
    constructed_ = true;
  } catch (...) {
    need_extra().crash = std::current_exception();
  }
  if (!c.keeps_) c.drop_arguments();
  if (constructed_ && extra_ != nullptr && extra_->listener != nullptr) {
    if (extra_->listening == nullptr) {
      extra_->listener->born();
    } else {
      extra_->listening->post(*new birth_message(*extra_->listener));
    }
  }
}

bool agent_life::must_end() const noexcept {
  return core().cycle_.is_end_due() || cancel_tree::may_not_park(*this) ||
         (extra_ != nullptr && extra_->crash != nullptr);
}

namespace {

/// Whether the caller no longer waits for the answer.
bool is_stale(call_envelope& e) noexcept {
  if (e.is_given_up()) {
    e.dispose();
    return true;
  }
  if (e.deadline == time_point::max() || e.deadline > loop::here()->now()) return false;
  if (!e.decline()) e.dispose();
  return true;
}

}  // namespace

driven_fiber::next_step agent_life::serve() {
  agent_core& c = core();
  bool granted = std::exchange(put_off_, false);
  while (!must_end()) {
    if (c.mail_.empty()) return pause();
    if (--budget < 0 && !granted) return put_off();
    granted = false;
    envelope& e = c.take();
    if (e.is_call && is_stale(static_cast<call_envelope&>(e))) {
      c.skipped_.store(c.skipped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      continue;
    }
    handling_ = &e;
    c.cycle_.on(life_event::handle);
    if (e.start(object(), *this)) return next_step::run;
    handled();
  }
  return begin_end();
}

driven_fiber::next_step agent_life::pause() noexcept {
  agent_core& c = core();
  c.cycle_.on(life_event::pause);
  park_quietly(*this, mail_);
  next = static_cast<strand*>(std::exchange(c.idle_, this));
  return next_step::pause;
}

driven_fiber::next_step agent_life::put_off() noexcept {
  put_off_ = preempted = true;
  loop::here()->push(*this);
  return next_step::pause;
}

cancel_result agent_life::mail_wait::withdraw() noexcept {
  auto& life = static_cast<agent_life&>(static_cast<fiber&>(*waiting_strand()));
  agent_core& c = life.core();
  if (c.idle_ == &life) {
    c.idle_ = static_cast<agent_life*>(static_cast<fiber*>(life.next));
  } else {
    strand* at = c.idle_;
    while (at->next != &life) at = at->next;
    at->next = life.next;
  }
  life.next = nullptr;
  return cancel_result::done;
}

void agent_life::mail_wait::describe(dump_line& line) const { line.add("its mailbox"); }

void agent_life::add_details(dump_line& line) const {
  line.add(", ").add(core().mail_.queued()).add(" queued, ");
  line.add(core().handled_.load(std::memory_order_relaxed)).add(" handled");
}

// The handler has ended or was unwound.
void agent_life::handled() noexcept {
  agent_core& c = core();
  envelope& e = *std::exchange(handling_, nullptr);
  outcome_base& result = e.result();
  result.destroy_frame();
  leave_chain();
  c.handled_.store(c.handled_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool unwound = result.pending();
  // The error belongs to the caller, perhaps on another thread: keep it only if the agent crashes.
  if (result.is_error() && (!e.is_call || c.crash_on_error_) && need_extra().crash == nullptr)
    need_extra().crash = result.error();
  if (!e.is_call) {
    e.dispose();
  } else if (unwound) {
    c.set_aside(e);
  } else {
    c.answer(static_cast<call_envelope&>(e));
  }
}

void agent_life::crash(std::exception_ptr error) noexcept {
  if (stage_ == stage::over || stage_ == stage::closing || need_extra().crash != nullptr) return;
  need_extra().crash = std::move(error);
  cancel_reason why(cancel_kind::custom, "the agent crashes");
  why.source = scope_id();
  why.when = loop::here()->now();
  cancel_tree::cancel(*this, make_reason(std::move(why)), false);
}

trail_ref agent_life::trail_of(const scope* inside) {
  if (handling_ == nullptr) return {};
  if (inside != nullptr && extra_ != nullptr && inside == extra_->area.get()) return {};
  extra& b = need_extra();
  if (!b.link) {
    trail_ref outer;
    if (handling_->is_call) outer = static_cast<call_envelope*>(handling_)->chain;
    b.link = counted_ref<chain_link>(new chain_link(core(), std::move(outer)));
    core().links_.fetch_add(1, std::memory_order_relaxed);
  }
  return trail_ref::share(b.link.get());
}

void agent_life::leave_chain() noexcept {
  if (extra_ == nullptr || !extra_->link) return;
  extra_->link->running.store(false, std::memory_order_release);
  extra_->link = {};
  core().links_.fetch_sub(1, std::memory_order_relaxed);
}

// ------------------------------------------------------------------ the end

driven_fiber::next_step agent_life::begin_end() {
  core().cycle_.on(life_event::wind_up);
  if (extra_ == nullptr || extra_->area == nullptr) return end();
  extra& b = *extra_;
  if (b.crash != nullptr) {
    b.body.set_error(b.crash);
  } else if (cancel_tree::reason(*b.area)) {
    b.body.set_cancelled(cancel_tree::reason(*b.area));
  } else {
    b.body.emplace();
  }
  body_ended(*b.area, b.body);
  if (!has_loose_ends(*b.area)) return scope_ended();
  stage_ = stage::closing;
  b.closing.own_frame(end_scope(*b.area, b.body).release());
  frame& root = frame_of(b.closing.frame());
  root.out = &b.closing;
  leaf = &root;
  return next_step::run;
}

driven_fiber::next_step agent_life::scope_ended() noexcept {
  extra& b = *extra_;
  b.closing.destroy_frame();
  const verdict v = judge_scope(*b.area, b.body);
  if (v.what == verdict::action::fail && b.crash == nullptr) b.crash = v.error;
  b.area.reset();
  return end();
}

driven_fiber::next_step agent_life::end() noexcept {
  stage_ = stage::over;
  out_.reset();
  if (extra_ != nullptr && extra_->crash != nullptr) {
    out_.set_error(extra_->crash);
  } else if (cancel_tree::reason(*this)) {
    out_.set_cancelled(cancel_tree::reason(*this));
  } else {
    out_.emplace();
  }
  return next_step::end;
}

// Runs after the life's defers.
void agent_life::drop_operation() noexcept {
  if (std::exchange(constructed_, false)) destroy_object();
  if (extra_ != nullptr) {
    while (extra_->timers != nullptr) extra_->timers->drop();
    leave_chain();
    if (in_dead_world()) extra_->area.reset();
  }
  if (!in_dead_world() || ended) return;
  if (envelope* e = std::exchange(handling_, nullptr)) {
    e->result().forget_frame();
    core().set_aside(*e);
  }
  core().loop_crashed(*this);
}

void agent_life::finished() noexcept { core().life_ended(*this); }

agent_timer*& agent_life::timers() { return need_extra().timers; }

}  // namespace weir::detail
