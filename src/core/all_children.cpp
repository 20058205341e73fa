// SPDX-License-Identifier: MIT
#include <weir/combinators.hpp>

#include <weir/detail/core/composite.hpp>
#include <weir/detail/core/dump_line.hpp>
#include <weir/parallel_map.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

all_scope::all_scope(bool of_range) noexcept
    : scope(region_kind::arms, rule_name(rule::all)), of_range_(of_range) {
  is_all_ = true;
}

void all_scope::wake() noexcept {
  if (waiting_ == nullptr) return;
  strand& parent = *std::exchange(waiting_, nullptr)->waiting_strand();
  parent.parked = nullptr;
  cancel_tree::loop_of(*this).push_parent(parent);
}

// A parent that is not parked yet finds out by itself.
void all_scope::arm_failed(const fiber& f) noexcept {
  some_failed_ = true;
  if (waiting_ == nullptr) return;
  decided_by_ = 0;
  while (&arm(decided_by_) != &f) ++decided_by_;
  wake();
  cancel_rest();
}

void all_scope::cancel_rest() noexcept { cancel_losers(*this, cancel_kind::sibling_failed); }

void all_scope::start_failed() {
  cancel_tree::problems(*this).raised.push_back(std::current_exception());
  decided_by_ = its_start;
  some_failed_ = true;
}

std::exception_ptr all_scope::take_problem() {
  if (decided_by_ == its_start) return cancel_tree::problems(*this).raised.front();
  fiber& f = arm(decided_by_);
  f.note_observed();
  try {
    f.result().rethrow_problem();
  } catch (...) {
    return problem_of(std::current_exception());
  }
}

std::exception_ptr all_scope::problem_of(const std::exception_ptr& error) {
  return cancel_tree::cause_of(*this, error, name());
}

void all_scope::count_unseen() {
  for (std::size_t i = 0; i < count_; ++i) emit_unseen(arm(i), *this);
}

bool all_wait::try_now() noexcept {
  if (of_->some_failed_) {
    if (of_->decided_by_ == all_scope::its_start) return true;
    for (std::size_t i = 0; i < of_->count_; ++i) {
      fiber& f = of_->arm(i);
      if (!f.done() || f.result().is_value()) continue;
      of_->decided_by_ = i;
      return true;
    }
  }
  return cancel_tree::first_child(*of_) == nullptr;
}

bool has_children_next() noexcept { return loop::here()->has_deep(); }

void children_first::describe(dump_line& line) const { line.add("its calls"); }

void call_missing::describe(dump_line& line) const { line.add("a call that never began"); }

void all_wait::describe(dump_line& line) const {
  line.add(rule_name(rule::all)).add(" of ").add(of_->count_);
  if (of_->of_range_) return;
  for (std::size_t i = 0; i < of_->count_; ++i) {
    line.add(i == 0 ? " (" : ", ");
    of_->arm(i).describe(line);
  }
  line.add(")");
}

void all_wait::blockers(blocker_list& list) const {
  for (std::size_t i = 0; i < of_->count_; ++i)
    if (!of_->arm(i).done()) list.fibers.push_back(&of_->arm(i));
}

}  // namespace weir::detail
