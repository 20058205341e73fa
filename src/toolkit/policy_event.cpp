// SPDX-License-Identifier: MIT
#include <weir/detail/toolkit/policy_event.hpp>

#include <utility>

#include <weir/policy/trace.hpp>

#include "core/cancel_tree.hpp"
#include "core/counters.hpp"
#include "core/loop.hpp"

namespace weir::detail {

extern const char trace_key = 0;

void emit_policy_event(std::string_view event, std::string_view object, std::uint64_t number,
                       const std::exception_ptr& error) noexcept {
  loop* here = loop::here();
  if (here == nullptr || here->dead()) return;
  if (current == nullptr) return here->emit(event, object, number, 0, error);
  scope& around = cancel_tree::scope_of(*current->top);
  for (const binding* b = cancel_tree::locals(around); b != nullptr; b = b->outer) {
    if (b->key != &trace_key) continue;
    object = *static_cast<const std::string_view*>(b->value);
    break;
  }
  here->emit(event, object, number, around.id(), error);
}

void suppress(outcome_base& out, std::exception_ptr original, std::string_view object) {
  emit_policy_event("suppressed", object, 0, original);
  out.notes().suppressed.push_back(std::move(original));
}

shared_name::shared_name(const weir::name& given) : text_(given.view()) {
  if (given.is_literal() || given.empty()) return;
  copy_ = std::make_shared<const kept_name>(given);
  text_ = copy_->view();
}

trace_region::trace_region(setup s)
    : local_region_base(&trace_key, &text_, "trace"),
      name_(std::move(s.name)),
      text_(name_.view()) {}

verdict trace_region::judge(outcome_base& out) {
  counters::count(text_, out.is_value() ? "value" : out.is_error() ? "error" : "cancelled");
  return judge_region(*this, out);
}

}  // namespace weir::detail
