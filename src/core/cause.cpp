// SPDX-License-Identifier: MIT
// Scopes report a supervisor that gave up instead of the refusals of the agents it took down.
#include <algorithm>

#include <weir/error.hpp>

#include "core/cancel_tree.hpp"
#include "core/dump_tree.hpp"
#include "core/error_notes.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

bool lies_in(const takedown& run, const scope& s) {
  const std::uint32_t here = current_loop_serial();
  return std::any_of(run.around.begin(), run.around.end(), [&](const run_place& p) {
    return p.loop == here && (p.remote ? has_region(s, p.scope) : p.scope == s.id());
  });
}

// A nested supervisor runs where the outermost one does. If several gave up, the outermost error is
// used: it contains the others.
std::exception_ptr cancel_tree::cause_of(scope& s, const std::exception_ptr& error,
                                         std::string_view who) {
  takedown_ref run = takedown_of(error);
  if (run == nullptr) return error;
  std::exception_ptr cause = run->cause();
  for (; run->outer != nullptr; run = run->outer)
    if (std::exception_ptr outer = run->outer->cause()) cause = std::move(outer);
  if (cause == nullptr || !lies_in(*run, s)) return error;
  failures& f = problems(s);
  f.has_cause = true;
  f.suppressed.push_back(error);
  s.loop_->emit("suppressed", who, 0, s.id_, error);
  return cause;
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
