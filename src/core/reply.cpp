// SPDX-License-Identifier: MIT
#include <weir/detail/core/reply.hpp>

#include "core/loop.hpp"

namespace weir::detail {

void answer_due::expect() noexcept {
  if (at_ == nullptr) expect(*loop::here());
}

void answer_due::expect(loop& at) noexcept {
  if (at_ != nullptr) return;
  at_ = &at;
  at.expect_answer(1);
}

void answer_due::settle() noexcept {
  if (loop* const at = std::exchange(at_, nullptr)) at->expect_answer(-1);
}

void reply::open(bool elsewhere) noexcept {
  loop& here = *loop::here();
  if (serial_ != here.serial()) {
    home_ = here.shared_door();
    serial_ = here.serial();
  }
  if (elsewhere) here.expect_answer(1);
  due_ = elsewhere;
  set_phase(phase::waiting);
}

// A future may outlive its loop.
void reply::settle_now() noexcept {
  if (is_due_here()) no_longer_due();
  due_ = false;
}

void reply::no_longer_due() noexcept { loop::here()->expect_answer(-1); }

reply::phase reply::forsake() noexcept {
  phase seen = phase_.load(std::memory_order_acquire);
  if (seen == phase::waiting && leave_waiting(phase::abandoned)) return phase::waiting;
  return seen == phase::waiting ? phase_.load(std::memory_order_acquire) : seen;
}

// The door is held: once posted, the message may be delivered and freed on another thread.
void reply::post_home(message& carrier) noexcept {
  if (loop* const here = loop::here()) {
    here->keep(home_).post(carrier);
    return;
  }
  const std::shared_ptr<door> there = home_;
  there->post(carrier);
}

}  // namespace weir::detail
