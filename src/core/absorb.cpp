// SPDX-License-Identifier: MIT
#include <weir/policy/absorb.hpp>

#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/run_seam.hpp>

#include "core/cancel_tree.hpp"

namespace weir::detail {

absorb_region::absorb_region()
    : plain_region(region_kind::settle, "absorb"), run_(run_outside_step("absorb")) {}

void absorb_region::enter() {
  if (run_ == nullptr) return;
  known_ = true;
  run_->enter_absorb(*this);
}

// If a crash or an eviction destroys the frame, the run forgets the region.
absorb_region::~absorb_region() {
  if (known_) run_->leave_absorb(*this, false);
}

verdict absorb_region::judge(outcome_base& out) {
  const bool by_run = cancel_requested() && !cancel_tree::cancelled_above(*this);
  verdict v = judge_region(*this, out);
  if (known_) {
    known_ = false;
    run_->leave_absorb(*this, by_run && out.is_cancelled());
  }
  return v;
}

}  // namespace weir::detail
