// SPDX-License-Identifier: MIT
#include <weir/detail/agents/agent_timer.hpp>

#include <string>

#include "agents/agent_extra.hpp"
#include "core/home.hpp"

namespace weir::detail {

void check_period(duration d, std::string_view agent) {
  if (d > duration::zero()) return;
  raise(errc::invalid_argument, "cast_every to " + text_of({"agent", agent}) +
                                    ": the period is not positive; give more than 0");
}

void agent_timer::start() noexcept {
  if (crashing) return;
  retain();  // the message's reference, which passes to the life
  to_->run_at_home(*this, &agent_timer::start_here);
}

void agent_timer::start_here() noexcept {
  agent_life* const life = to_->life();
  if (life == nullptr && to_->await_life(*this)) return;
  if (life == nullptr || loop::here() == nullptr || !to_->is_here() || cancelled_.load()) {
    if (!cancelled_.load()) to_->count_dropped(1);
    return release();
  }
  life_ = life;
  agent_timer*& first = life->timers();
  after_ = std::exchange(first, this);
  if (after_ != nullptr) after_->before_ = this;
  due_ = saturating_add(loop::here()->now(), period_);
  set(due_);
}

void agent_timer::cancel() noexcept {
  if (crashing || cancelled_.exchange(true, std::memory_order_acq_rel)) return;
  retain();
  to_->run_at_home(*this, &agent_timer::cancel_here);
}

void agent_timer::cancel_here() noexcept {
  if (life_ != nullptr) drop();
  release();
}

void agent_timer::drop() noexcept {
  alarm::cancel();
  (before_ == nullptr ? life_->timers() : before_->after_) = after_;
  if (after_ != nullptr) after_->before_ = before_;
  before_ = after_ = nullptr;
  life_ = nullptr;
  release();
}

// Copying an argument, or destroying a displaced message, may cancel this timer.
void agent_timer::rang() noexcept {
  const auto keep = counted_ref<agent_timer>::share(this);
  envelope* message = nullptr;
  try {
    message = make_message();
  } catch (...) {
    to_->count_dropped(1);  // an argument could not be copied
  }
  if (message != nullptr && to_->cast(message) == sent::full) to_->count_dropped(1);
  if (life_ == nullptr) return;
  if (!repeats_) return drop();
  // Keep the original phase; skip missed ticks.
  const time_point now = loop::here()->now();
  due_ = saturating_add(due_, period_);
  if (due_ <= now) due_ += period_ * ((now - due_) / period_ + 1);
  set(due_);
}

}  // namespace weir::detail
