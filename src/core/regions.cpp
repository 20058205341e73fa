// SPDX-License-Identifier: MIT
// The regions of with_timeout, shield and with_local, and the common part of all regions.
#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/local.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/settle.hpp>

#include "core/cancel_tree.hpp"
#include "core/cleanup.hpp"
#include "core/loop.hpp"

namespace weir::detail {

bool has_entries(const scope& r) noexcept {
  return cancel_tree::entries(const_cast<scope&>(r)) != nullptr;
}

task<> end_region(scope& r, outcome_base& out) {
  std::vector<std::exception_ptr> errors;
  co_await quietly(pop_entries(r, out, errors));
  if (!errors.empty()) cancel_tree::problems(r).cleanup = std::move(errors);
}

verdict judge_region(scope& r, outcome_base& out) {
  const bool was_entered = cancel_tree::entered(r);
  cancel_tree::leave(*current, r);
  failures* problems = cancel_tree::problems_or_null(r);
  if (problems != nullptr) {
    auto& kept = out.notes().cleanup;
    kept.insert(kept.end(), problems->cleanup.begin(), problems->cleanup.end());
  }
  if (cancel_tree::cancelled(*current) && !out.is_value() && was_entered) {
    if (out.is_error()) loop::here()->emit("suppressed", r.name(), 0, r.id(), out.error());
    return {verdict::action::unwind, nullptr};
  }
  if (out.is_value() && problems != nullptr && !problems->cleanup.empty())
    return {verdict::action::fail, problems->cleanup.front()};
  return {};
}

// ------------------------------------------------------------------ time limits

std::exception_ptr timeout_of(const time_limit& limit) {
  if (limit.absolute)
    return std::make_exception_ptr(timeout_error("the deadline of with_deadline has passed"));
  const auto ms = std::chrono::duration<double, std::milli>(limit.length).count();
  std::string text = std::to_string(ms);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return std::make_exception_ptr(timeout_error("the time limit of " + text + " ms was reached"));
}

void emit_late(const time_limit& limit, bool failed) {
  loop::here()->emit(failed ? "suppressed" : "late",
                     limit.absolute ? "with_deadline" : "with_timeout", 0, 0,
                     failed ? timeout_of(limit) : nullptr);
}

timeout_region::timeout_region(time_limit limit)
    : limited_region(region_kind::timeout, limit.absolute ? "with_deadline" : "with_timeout"),
      limit_(limit) {
  const time_point now = loop::here()->now();
  at = limit.absolute ? limit.at : saturating_add(now, limit.length);
}

bool timeout_region::may_start(outcome_base& out) {
  const bool over = limit_.absolute ? at <= loop::here()->now() : limit_.length <= duration::zero();
  if (over) {
    out.set_error(timeout_of(limit_));
    return false;
  }
  if (at != time_point::max()) {
    set_deadline(at, limit_.absolute ? cancel_kind::deadline : cancel_kind::timeout);
    current->unarmed_deadlines = true;
  }
  return true;
}

verdict timeout_region::judge(outcome_base& out) {
  if (armed()) loop::here()->cancel_deadline(*this);
  verdict v = judge_region(*this, out);
  if (!ended_by_it || v.what == verdict::action::unwind) return v;
  if (out.is_value()) {
    loop::here()->emit("late", name(), 0, id());
  } else if (out.is_error()) {
    const std::exception_ptr timeout = timeout_of(limit_);
    out.notes().suppressed.push_back(timeout);
    loop::here()->emit("suppressed", name(), 0, id(), timeout);
  } else {
    return {verdict::action::fail, timeout_of(limit_)};
  }
  return v;
}

void limit_wait::begin() noexcept {
  if (fixed_) return;
  fixed_ = true;
  loop& here = *loop::here();
  order = here.next_order();
  at_ = limit_.absolute                     ? limit_.at
        : limit_.length <= duration::zero() ? here.now()
                                            : saturating_add(here.now(), limit_.length);
}

bool limit_wait::passed() const noexcept { return at_ <= loop::here()->now(); }

void limit_wait::arm() noexcept {
  if (at_ != time_point::max()) loop::here()->arm_deadline(*this, at_, order);
}

cancel_result limit_wait::withdraw() noexcept {
  if (armed()) loop::here()->cancel_deadline(*this);
  return cancel_result::done;
}

void limit_wait::describe(dump_line& line) const { line.add("time limit"); }

// ------------------------------------------------------------------ shields and locals

shield_region::shield_region(setup s) : limited_region(region_kind::shield, "shield") {
  cancel_tree::make_shield(*this);
  shield_limit = s.limit;
}

verdict shield_region::judge(outcome_base& out) {
  if (armed()) loop::here()->cancel_deadline(*this);
  if (!out.is_error()) return judge_region(*this, out);
  cancel_tree::leave(*current, *this);
  return {};
}

local_region_base::local_region_base(const void* key, void* value, const char* name)
    : plain_region(region_kind::local, name), bound{key, value, nullptr} {}

namespace {

void* find_local_in(context& c, const void* key) noexcept {
  for (binding* b = cancel_tree::locals(cancel_tree::scope_of(c)); b != nullptr; b = b->outer)
    if (b->key == key) return b->value;
  return nullptr;
}

}  // namespace

void* find_local(const void* key) noexcept {
  return current == nullptr ? nullptr : find_local_in(*current->top, key);
}

trail_ref cancel_tree::trail_around(context& c) {
  const scope* child_of = nullptr;  // the scope of the outermost fiber so far
  for (context* at = &c; at != nullptr; at = at->parent_) {
    if (at->kind_ != region_kind::fiber) continue;
    auto& f = static_cast<fiber&>(*at);
    if (f.driven) return static_cast<driven_fiber&>(f).trail_of(child_of);
    child_of = static_cast<const scope*>(at->parent_);
  }
  return trail_ref::share(static_cast<trail*>(find_local_in(c, &trail_key)));
}

}  // namespace weir::detail
