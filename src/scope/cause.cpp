// SPDX-License-Identifier: MIT
// A supervisor that gave up is reported before the refusals of the agents that it took down.
#include <algorithm>

#include <weir/error.hpp>

#include "core/dump_tree.hpp"
#include "core/error_notes.hpp"
#include "core/region.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

bool lies_in(const takedown& run, const scope& s) {
  const std::uint32_t here = current_loop_serial();
  return std::any_of(run.around.begin(), run.around.end(), [&](const run_place& p) {
    return p.loop == here && (p.remote ? has_region(s, p.scope) : p.scope == s.id());
  });
}

void region::suppress_refusal(scope& s, const std::exception_ptr& refusal, std::string_view who) {
  failures& f = problems(s);
  f.has_cause = true;
  f.suppressed.push_back(refusal);
  s.loop_->emit("suppressed", who, 0, s.id_, refusal);
}

std::exception_ptr region::cause_of(scope& s, const std::exception_ptr& error,
                                    std::string_view who) {
  takedown_ref run = takedown_of(error);
  if (run == nullptr) return error;
  while (run->outer != nullptr) run = run->outer;  // what a nested one throws stays inside
  if (!lies_in(*run, s)) return error;
  if (std::exception_ptr cause = run->cause()) {
    suppress_refusal(s, error, who);
    return cause;
  }
  problems(s).undecided.emplace_back(error, std::move(run));
  return error;
}

std::exception_ptr region::decided_cause(scope& s, const std::exception_ptr& error) {
  if (s.failures_ == nullptr) return error;
  for (const auto& [refusal, run] : s.failures_->undecided) {
    if (refusal != error) continue;
    if (std::exception_ptr cause = run->cause()) {
      suppress_refusal(s, error, s.name());
      return cause;
    }
  }
  return error;
}

void region::decide_causes(scope& s) {
  failures& f = *s.failures_;
  std::vector<std::exception_ptr> before = std::exchange(f.raised, {});
  for (const std::exception_ptr& error : before) {
    std::exception_ptr decided = decided_cause(s, error);
    if (!f.has_cause || !is_raised(f, decided)) f.raised.push_back(std::move(decided));
  }
  f.undecided.clear();
}

namespace {

const void* errors_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const error_group& group) {
    return &group.errors();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

bool is_raised(const failures& f, const std::exception_ptr& error) {
  const void* const errors = errors_of(error);
  return std::any_of(f.raised.begin(), f.raised.end(), [&](const std::exception_ptr& e) {
    return e == error || (errors != nullptr && errors_of(e) == errors);
  });
}

}  // namespace weir::detail
