// SPDX-License-Identifier: MIT
#include <weir/detail/core/generator.hpp>

#include <string>
#include <utility>
#include <vector>

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "core/error_notes.hpp"
#include "core/generator_carrier.hpp"
#include "core/loop.hpp"

namespace weir::detail {

pull generator_base::settled(composite& owner, const void* place) {
  if (phase_ != phase::ended) {
    if (place != nullptr) note_puller(place);
    if (link_.state != arm_link::phase::confirming) link_.state = arm_link::phase::armed;
    link_.owner = &owner;
    return pull::pending;
  }
  if (std::exchange(thrown_, true)) return pull::end;
  if (out_.is_error()) std::rethrow_exception(out_.error());
  if (out_.is_cancelled()) raise_interrupted();
  return pull::end;
}

// Continues on a turn of its own.
void generator_base::go_on() {
  parent_ = current->top;
  phase_ = phase::waiting;
  given_up_ = false;
  if (!queued) loop::here()->push(*this);
}

// Not nested: restarts the wait it was paused in, or takes a turn of its own.
void generator_base::run_slowly() {
  if (phase_ == phase::stopped) return go_on();
  strand& consumer = *current;
  if (phase_ == phase::quiet) {  // too deep for nested calls
    leaf = root_;
    if (loop::here() != nullptr) return go_on();
    enter(consumer);
    leaf->handle().resume();
    return leave(consumer);
  }
  if (phase_ != phase::paused) return;
  wait& w = *std::exchange(paused_, nullptr);
  enter(consumer);
  leaf = std::exchange(paused_at_, nullptr);
  if (w.poll()) {
    leaf->handle().resume();
  } else {
    w.belongs_to(*this);
    parked = &w;
    w.link();
  }
  leave(consumer);
}

void generator_base::stopped_short() noexcept {
  if (leaf == nullptr) return finish();
  phase_ = phase::waiting;
  if (parked != nullptr || queued) return;
  // Too deep for nested calls: continue on the loop.
  if (loop* here = loop::here()) return here->push(*this);
  current = this;
  phase_ = phase::running;
  while (leaf != nullptr && parked == nullptr) {
    nesting = 0;
    leaf->handle().resume();
  }
  current = consumer_;
  if (phase_ == phase::running) finish();
}

void generator_base::finish() noexcept {
  phase_ = phase::ended;
  if (!reason_) return;
  if (out_.is_error()) loop::here()->emit("suppressed", "stream", 0, 0, out_.error());
  out_.set_cancelled(reason_);
}

// Its queued wait has completed while no pull is pending: it keeps the result, and continues with
// the next pull.
bool generator_base::begin_turn() noexcept {
  if (phase_ == phase::stopped) return false;
  return !std::exchange(in_line_, false) || !stop_if_ready();
}

void generator_base::end_turn() noexcept {
  if (phase_ == phase::stopped) return quiet_after_stop();
  if (!quiet_after_turn()) return;
  given_up_ = false;
  if (is_in_flight()) {
    const bool dropped = dropped_;
    end_flight();
    if (dropped) {
      destroy();
      return dispose();
    }
  }
  notify();
}

// Whether the pending pull, if any, can end.
bool generator_base::quiet_after_turn() noexcept {
  if (queued) return false;
  if (leaf == nullptr) {
    if (phase_ == phase::waiting) finish();
    return true;
  }
  if (parked == nullptr) return false;  // held: unwound after the children of its scope have ended
  if (given_up_) return pause();
  // In flight, and no pull waits for the next value.
  return is_in_flight() && !dropped_ && link_.state != arm_link::phase::armed && !reason_ &&
         pause_unless_in_line();
}

// Stopped in the middle of its turn: its new wait must be withdrawn, too.
void generator_base::quiet_after_stop() noexcept {
  if (queued) return;
  if (leaf == nullptr) return finish();
  if (parked == nullptr || needs_start) return;
  if (given_up_ ? pause_without_effect() : pause_unless_in_line()) return;
  phase_ = phase::waiting;
  carry();
  if (std::exchange(given_up_, false))
    cancel_tree::interrupt(*this,
                           make_reason(cancel_reason(cancel_kind::user, "next() was cancelled")));
}

void generator_base::notify() noexcept {
  if (link_.state != arm_link::phase::idle) link_.owner->arm_completed(link_);
}

// ------------------------------------------------------------------ the end of a pull

namespace {

/// Generators nested too deeply to be withdrawn by nested calls; a loop handles them.
struct standing_down {
  int depth = 0;
  std::vector<std::pair<generator_base*, pull_end>> later;
};
constinit thread_local standing_down deep;

}  // namespace

unsigned generator_base::withdraw_all() noexcept {
  if (link_.state == arm_link::phase::confirming) return 1;
  if (link_.state != arm_link::phase::armed) return 0;
  link_.state = arm_link::phase::idle;
  if (phase_ != phase::waiting) return 0;
  const pull_end why = link_.owner->why_ending();
  if (deep.depth >= nesting_limit) {
    deep.later.emplace_back(this, why);
    return 0;
  }
  ++deep.depth;
  const unsigned leaving = leave_pull(why);
  --deep.depth;
  while (deep.depth == 0 && !deep.later.empty()) {
    const auto [deferred, reason] = deep.later.back();
    deep.later.pop_back();
    ++deep.depth;
    deferred->stand_down_later(reason);
    --deep.depth;
  }
  return leaving;
}

// The pull has ended already: a generator that must be awaited is left to the scope.
void generator_base::stand_down_later(pull_end why) noexcept {
  if (leave_pull(why) == 0) return;
  link_.state = arm_link::phase::idle;
  carry();
}

unsigned generator_base::leave_pull(pull_end why) noexcept {
  const bool gives_up = why == pull_end::given_up;
  const bool is_ready = parked == nullptr || needs_start;
  if (inner_ == nullptr && is_ready && !reason_) {
    given_up_ = gives_up;
    phase_ = phase::stopped;
    end_flight();
    return 0;
  }
  if (is_in_flight() && !gives_up) {
    in_line_ = inner_ == nullptr && !is_ready && parked->in_line();
    return 0;
  }
  if (!gives_up && (!reason_ || why == pull_end::paused)) {
    if (is_ready || reason_ || !pause_unless_in_line()) carry();
    return 0;
  }
  given_up_ = true;
  if (!is_ready && !reason_ && pause()) {
    given_up_ = false;
    end_flight();
    return 0;
  }
  link_.state = arm_link::phase::confirming;
  return 1;
}

bool generator_base::stop_if_ready() noexcept {
  const bool is_ready = parked == nullptr || needs_start;
  if (!is_in_flight() || dropped_ || !is_ready || unwinding || inner_ != nullptr || reason_)
    return false;
  if (link_.state != arm_link::phase::idle) return false;  // a pull is pending
  phase_ = phase::stopped;
  end_flight();
  return true;
}

bool generator_base::stop_in_flight() noexcept {
  if (!is_in_flight() || dropped_ || reason_ || link_.state != arm_link::phase::idle) return false;
  if (in_dead_world()) return false;  // its wait was withdrawn with its carrier
  if (parked == nullptr || needs_start) return queued && stop_if_ready();
  if (!pause_without_effect()) return false;
  end_flight();
  return true;
}

// Keeps the withdrawn wait for the next pull.
bool generator_base::withdrawn() noexcept {
  paused_ = std::exchange(parked, nullptr);
  paused_at_ = leaf;
  phase_ = phase::paused;
  return true;
}

// A pull was given up. True if the generator is quiet. If the wait answers `no`, it completes, and
// the generator is paused at its next wait.
bool generator_base::pause() noexcept {
  const bool may_ask = inner_ == nullptr && (!shield_ || parked->pausable());
  if (!may_ask) {
    if (!shield_) cancel_tree::interrupt(*this, cancel_tree::why_given_up(*link_.owner));
    return false;
  }
  const wait& on = *parked;
  switch (parked->withdraw()) {
    case cancel_result::done:
      return withdrawn();
    case cancel_result::later:
      note_interrupted(&on);
      cancel_tree::interrupt_when_confirmed(*this, cancel_tree::why_given_up(*link_.owner));
      return false;
    case cancel_result::no:
      return false;
  }
  return false;
}

bool generator_base::pause_without_effect() noexcept {
  return inner_ == nullptr && parked->pausable() && parked->pause() == cancel_result::done &&
         withdrawn();
}

// A queued wait keeps its place: if every value of another stream re-queued it, it would never
// reach the front.
bool generator_base::pause_unless_in_line() noexcept {
  in_line_ = inner_ == nullptr && parked->in_line();
  return !in_line_ && pause_without_effect();
}

void generator_base::carry() noexcept {
  if (!is_in_flight()) carrier_ = generator_carrier::start(*this);
}

void generator_base::end_flight() noexcept {
  if (generator_carrier* const carrier = std::exchange(carrier_, nullptr)) carrier->landed();
}

// Records what it waits for, while that is still known.
void generator_base::note_interrupted(const wait* on) {
  if (dropped_ || cut_off_ != nullptr || root_ == nullptr) return;
  auto cut = std::make_unique<cut_off>();
  cut->place.append(root_->function.function_name()).append(" was cancelled in its await at ");
  cut->place.append(text_of(root_->awaiting.line() == 0 ? root_->function : root_->awaiting));
  dump_line line(cut->awaited);
  if (on == nullptr) {
    line.add("its turn");
  } else {
    on->describe(line);
  }
  cut_off_ = std::move(cut);
}

void generator_base::raise_interrupted() const {
  if (cut_off_ == nullptr) raise(errc::stream_interrupted, "the generator was cancelled");
  raise(errc::stream_interrupted,
        "generator " + cut_off_->place + ", where it waited for " + cut_off_->awaited +
            "; that cannot be paused, so it has ended; keep such a wait out of generators whose "
            "next() may be cancelled, or put a buffer behind them");
}

void generator_base::make_shielded() noexcept { cancel_tree::make_shield(*this); }

// ------------------------------------------------------------------ destruction

core_ref generator_base::drop() noexcept {
  if (is_in_flight() && !(in_line_ && stop_in_flight())) return cancel_dropped();
  destroy();
  loop::free(*this);
  return core_ref();
}

// Cancels it at once; what cannot be destroyed immediately is left to the carrier.
core_ref generator_base::cancel_dropped() noexcept {
  core_ref rest(carrier_);
  dropped_ = true;
  if (in_dead_world()) return core_ref();
  shield_ = false;
  link_.state = arm_link::phase::idle;
  reason_ref why = cancel_tree::why_destroying();
  if (!why) why = make_reason(cancel_kind::abandoned);
  if (inner_ != nullptr || parked == nullptr || queued || reason_) {
    cancel_tree::interrupt(*this, why);
    return rest;
  }
  reason_ = why;
  switch (parked->withdraw()) {
    case cancel_result::no:
      return rest;
    case cancel_result::later:
      if (parked == nullptr) break;  // it confirmed inside the call
      unwind_when_done = true;
      return rest;
    case cancel_result::done:
      parked = nullptr;
      break;
  }
  end_flight();
  destroy();
  loop::free(*this);
  return core_ref();
}

void generator_base::note_puller(const void* place) noexcept {
  place_ = place;
  if (parent_->kind_ != region_kind::stream || parent_ == puller_) return;
  if (puller_ != nullptr) puller_->pulls_ = nullptr;
  puller_ = static_cast<generator_base*>(parent_);
  if (puller_->pulls_ != nullptr) puller_->pulls_->puller_ = nullptr;
  puller_->pulls_ = this;
}

void generator_base::forget_pulls() noexcept {
  forget_puller();
  if (pulls_ != nullptr) pulls_->puller_ = nullptr;
}

// The generator that it pulled last, if that one is destroyed with its frame.
generator_base* generator_base::owned_below() const noexcept {
  generator_base* const g = pulls_;
  if (g == nullptr || g->root_ == nullptr || !g->out_.frame() || g->is_in_flight()) return nullptr;
  return memory_.holds(g->place_) ? g : nullptr;
}

// Innermost first: by nested destructors, or in a loop if the nesting is too deep.
void generator_base::destroy() noexcept {
  if (root_ == nullptr || !out_.frame()) return;  // never begun, or unwound already
  generator_base* last = this;
  int below = 0;
  while (generator_base* inner = last->owned_below()) {
    last = inner;
    ++below;
  }
  while (below >= nesting_limit && last != this) {
    generator_base* const puller = last->puller_;
    last->destroy_frames();
    last = puller;
  }
  destroy_frames();
}

void generator_base::destroy_frames() noexcept {
  frame* at = leaf != nullptr ? leaf : root_;
  if (phase_ == phase::paused) at = paused_at_;
  root_ = nullptr;
  linked_ = false;
  strand* const outer = current;
  if (outer != nullptr) {
    if (!reason_) reason_ = cancel_tree::why_destroying();
    parent_ = outer->top;
    current = this;
  } else if (loop* const here = loop::here()) {
    // No strand runs: destroyed at the end of its own turn, inside its carrier, or by a message.
    if (!dropped_) parent_ = here->root_scope();
    current = this;
  }
  destroying = true;
  while (at != nullptr) {
    frame* const parent = at->parent;
    at->out->forget_frame();
    at->handle().destroy();
    at = parent;
  }
  current = outer;
}

void generator_base::describe(dump_line& line) const {
  if (cut_off_ != nullptr) {
    line.add(cut_off_->awaited);
  } else if (parked == nullptr || needs_start) {
    line.add("a generator");
  } else {
    parked->describe(line);
  }
}

// ------------------------------------------------------------------ the carrier

generator_carrier::generator_carrier(generator_base& g) noexcept
    : entry(kind::background), of_(&g) {
  begun = true;
  background = carries = isolated = observed = true;
  registration = this;
  name = "stream";
  site = g.root_->function;
}

generator_carrier* generator_carrier::start(generator_base& g) {
  loop& here = *loop::here();
  auto* c = new generator_carrier(g);
  c->home = here.serial();
  c->top = c;
  cancel_tree::add_carrier(cancel_tree::owner_of(stream_part::flight, cancel_tree::consumer_of(g)),
                           *c);
  cancel_tree::move_generator(g, *c);
  c->wait_.belongs_to(*c);
  c->parked = &c->wait_;
  c->retain();  // the scope's
  here.own_door().fibers.add(1);
  if (run_seam* run = here.seam()) [[unlikely]]
    run->fiber_begins(*c);
  return c;
}

// Its generator is quiet: the carrier ends on its next turn.
void generator_carrier::landed() noexcept {
  generator_base& g = *std::exchange(of_, nullptr);
  cancel_tree::unlink_generator(g);
  if (cancel_requested()) {
    out.set_cancelled(cancel_tree::reason(*this));
  } else {
    out.emplace();
  }
  wait_.end();
}

void generator_carrier::drop_operation() noexcept {
  generator_base* const g = std::exchange(of_, nullptr);
  if (g == nullptr) return;
  g->carrier_ = nullptr;  // the loop crashes
  cancel_tree::mark_evicted(*g, cancel_tree::reason(*this));
  if (!g->dropped_) return;
  g->destroy();
  g->dispose();
}

void generator_carrier::flight_wait::describe(dump_line& line) const {
  if (of->of_ != nullptr) of->of_->describe(line);
}

void generator_carrier::flight_wait::blockers(blocker_list& list) const {
  if (of->of_ != nullptr && of->of_->parked != nullptr) of->of_->parked->blockers(list);
}

// The generator inside has been asked before.
cancel_result generator_carrier::flight_wait::withdraw() noexcept {
  if (!in_dead_world()) return cancel_result::later;
  generator_base* const g = of->of_;
  if (g != nullptr && g->parked != nullptr && !g->needs_start) (void)g->parked->withdraw();
  return cancel_result::done;
}

}  // namespace weir::detail
