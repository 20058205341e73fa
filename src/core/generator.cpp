// SPDX-License-Identifier: MIT
#include <weir/detail/generator.hpp>

#include <utility>

#include <weir/detail/dump_line.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"

namespace weir::detail {

pull generator_base::settled(composite& owner) {
  if (phase_ != phase::ended) {
    if (link_.state != arm_link::phase::confirming) link_.state = arm_link::phase::armed;
    link_.owner = &owner;
    return pull::pending;
  }
  if (std::exchange(told_, true)) return pull::end;
  if (out_.is_error()) std::rethrow_exception(out_.error());
  if (out_.is_cancelled())
    raise(errc::stream_interrupted,
          "the generator was cancelled in a wait that cannot be paused (it had started a fiber, or "
          "waited for another loop), and has ended; keep such waits out of generators whose next() "
          "may be cancelled, or put a buffer behind them");
  return pull::end;
}

// Starts the wait again that it was paused in.
void generator_base::run_slowly() {
  if (phase_ != phase::paused) return;
  wait& w = *std::exchange(paused_, nullptr);
  enter();
  leaf = std::exchange(paused_at_, nullptr);
  bool complete = false;
  try {
    complete = w.poll();
  } catch (...) {
    // The wait keeps its own errors for the frame; what is thrown here is the frame's as well.
    current = consumer_;
    phase_ = phase::paused;
    paused_ = &w;
    paused_at_ = leaf;
    throw;
  }
  if (complete) {
    leaf->handle().resume();
  } else {
    w.belongs_to(*this);
    parked = &w;
    w.link();
  }
  leave();
}

void generator_base::stopped_short() noexcept {
  if (leaf == nullptr) return finish();
  phase_ = phase::waiting;
  if (parked != nullptr || queued) return;
  // Too deep for nested calls: the loop goes on with it.
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
  if (reason_) out_.set_cancelled(reason_);
}

void generator_base::end_turn() noexcept {
  if (queued) return;
  if (leaf == nullptr) {
    if (phase_ == phase::waiting) finish();
  } else if (parked != nullptr) {
    if (!pausing_ || !pause()) return;
  } else {
    return;  // held: it is unwound when the children of its scope have ended
  }
  pausing_ = false;
  tell();
}

void generator_base::tell() noexcept {
  if (link_.state != arm_link::phase::idle) link_.owner->arm_completed(link_);
}

// True if it is quiet. What answers `no` goes on to its next wait, and is paused there.
bool generator_base::pause() noexcept {
  if (inner_ != nullptr) {
    if (!shield_) region::interrupt(*this);
    return false;
  }
  switch (parked->withdraw()) {
    case cancel_result::done:
      paused_ = std::exchange(parked, nullptr);
      paused_at_ = leaf;
      phase_ = phase::paused;
      return true;
    case cancel_result::later:
      region::interrupt_when_confirmed(*this);
      return false;
    case cancel_result::no:
      return false;
  }
  return false;
}

unsigned generator_base::stand_down() noexcept {
  if (link_.state == arm_link::phase::confirming) return 1;
  if (link_.state != arm_link::phase::armed) return 0;
  link_.state = arm_link::phase::idle;
  if (phase_ != phase::waiting) return 0;
  pausing_ = true;
  if (!queued && parked != nullptr && !reason_ && pause()) {
    pausing_ = false;
    return 0;
  }
  link_.state = arm_link::phase::confirming;
  return 1;
}

void generator_base::make_shielded() noexcept { region::make_shield(*this); }

void generator_base::destroy() noexcept {
  if (root_ == nullptr || !out_.frame()) return;  // never begun, or unwound already
  frame* at = leaf != nullptr ? leaf : root_;
  if (phase_ == phase::paused) at = paused_at_;
  root_ = nullptr;
  strand* const outer = current;
  if (outer != nullptr) {
    parent_ = outer->top;
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
  if (parked == nullptr) {
    line.add("a generator");
  } else {
    parked->describe(line);
  }
}

}  // namespace weir::detail
