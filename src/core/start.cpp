// SPDX-License-Identifier: MIT
#include <weir/start.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"

namespace weir::detail {

cancel_result start_wait::withdraw() noexcept {
  leaving_ = true;
  auto& child = static_cast<fiber&>(core());
  const strand& s = *waiting_strand();
  cancel_reason why(cancel_kind::user, "the caller of start was cancelled");
  if (const cancel_reason* reason = cancel_tree::reason(*s.top).get()) why = *reason;
  cancel_fiber(child, std::move(why));
  return cancel_result::later;
}

void start_wait::describe(dump_line& line) const { line.add("the start of a child"); }

void start_wait::say() noexcept {
  if (leaving_) return;
  said_ = true;
  leave();
  complete();
}

void started_base::claim() {
  if (said_)
    raise(errc::already_started, "a child said twice that it had started; call it only once");
  said_ = true;
}

void started_base::no_longer_starting() noexcept { child_->starting = false; }

void rethrow_start_failure(fiber& child) {
  child.note_observed();
  if (child.result().is_value())
    raise(errc::never_started, "child '" + std::string(child.name == nullptr ? "" : child.name) +
                                   "' ended without saying that it had started");
  child.result().rethrow_problem();
}

}  // namespace weir::detail
