// SPDX-License-Identifier: MIT
#include <weir/policy/retry.hpp>

#include <algorithm>
#include <unordered_map>

#include <weir/context.hpp>
#include <weir/detail/core/frame_allocator.hpp>
#include <weir/detail/toolkit/policy_event.hpp>
#include <weir/error.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"
#include "toolkit/budget_core.hpp"
#include "toolkit/option.hpp"

namespace weir::detail {

namespace {

constexpr std::int64_t attempts_max = 1000;
constexpr int frames_walked_max = 1000;
constexpr duration stop_here{-1};

/// Default without a predicate: retry everything but cancellations.
retry_decision usual_answer(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const cancelled_error&) {
    return retry_decision::stop();
  } catch (...) {
    return retry_decision::retry();
  }
}

/// All leaves of a group must be retryable; the longest delay requested by one of them is used.
retry_decision decide(const std::exception_ptr& error, retry_question ask, void* predicate) {
  std::vector<std::exception_ptr> leaves;
  try {
    std::rethrow_exception(error);
  } catch (const error_group& group) {
    leaves = group.flatten();
  } catch (...) {
    leaves.push_back(error);
  }
  retry_decision all = retry_decision::retry();
  for (const std::exception_ptr& leaf : leaves) {
    const retry_decision one = ask == nullptr ? usual_answer(leaf) : ask(predicate, leaf);
    if (!one.again()) return one;
    if (one.delay() && (!all.delay() || *all.delay() < *one.delay())) all = one;
  }
  return all;
}

std::exception_ptr error_of(const outcome_base& out) {
  if (out.is_error()) return out.error();
  return std::make_exception_ptr(cancelled_error(out.reason()));
}

/// The product; unbounded if it overflows or a factor is unbounded.
std::int64_t times(std::int64_t a, std::int64_t b) noexcept {
  constexpr std::int64_t most = unbounded;
  return a > most / b ? most : a * b;
}

/// Whether this pause would reach the deadline around the running code.
bool reaches_deadline(duration pause) {
  const std::optional<time_point> deadline = this_context().deadline();
  return deadline && saturating_add(loop::here()->now(), pause) >= *deadline;
}

}  // namespace

/// The retry runs on this thread that nested retries must know, by frame: those that have retried,
/// and those with another retry in their own pipeline. Every run of such a pipeline adds itself, so
/// the nodes come from the frame cache.
struct retry_list {
  using map = std::unordered_map<const frame*, retry_run*, std::hash<const frame*>,
                                 std::equal_to<const frame*>,
                                 frame_allocator<std::pair<const frame* const, retry_run*>>>;
  static map& here() {
    static thread_local map runs;
    return runs;
  }
};

namespace {

/// The frame that awaits `f`; for an arm (of hedge, race, ...), that of its combinator.
const frame* outer_frame(const frame& f, const context*& at) {
  if (f.parent != nullptr) return f.parent;
  const fiber* running = cancel_tree::fiber_of(*at);
  if (running == nullptr) return nullptr;
  const context* owner = cancel_tree::parent(*running);
  if (owner == nullptr || cancel_tree::kind(*owner) != region_kind::arms) return nullptr;
  at = owner;
  return cancel_tree::body_strand(static_cast<const scope&>(*owner))->leaf;
}

}  // namespace

retry_rules::retry_rules(const retry_options& given)
    : delays{given.base, given.factor, given.ceiling, given.jitter},
      attempts(given.attempts),
      budget(core_of(given.budget)) {
  require_option(
      attempts == std::int64_t{unbounded} || (attempts >= 1 && attempts <= attempts_max), "retry",
      "attempts is neither in 1..1000 nor unbounded; it counts all attempts, the first one too");
  delays.check("retry");
}

void retry_run::go_on_after(std::int64_t made) {
  attempt_ = made;
  delays_.skip(rules_.delays, made);
}

void retry_run::begin_attempt() {
  begin_quietly();
  if (attempt_ == 1) emit_policy_event("attempt", "retry", 1);
}

void retry_run::begin_quietly() {
  if (++attempt_ > 1)
    return emit_policy_event("attempt", "retry", static_cast<std::uint64_t>(attempt_));
  if (rules_.budget != nullptr) rules_.budget->first_attempt(loop::here()->now());
}

duration retry_run::after_failure(outcome_base& out, retry_question ask, void* predicate) {
  if (attempt_ >= rules_.attempts) return stop_here;
  try {
    const retry_decision decided = decide(error_of(out), ask, predicate);
    return decided.again() ? plan(out, decided) : stop_here;
  } catch (...) {
    const std::exception_ptr original = error_of(out);
    out.set_error(std::current_exception());
    suppress(out, original, "retry");
    return stop_here;
  }
}

duration retry_run::plan(outcome_base& out, const retry_decision& decided) {
  const duration pause =
      decided.delay() ? std::max(*decided.delay(), duration::zero()) : delays_.next(rules_.delays);
  if (reaches_deadline(pause)) return stop_here;
  if (rules_.budget != nullptr && !rules_.budget->grants(loop::here()->now())) {
    emit_policy_event("budget_denied", "retry", static_cast<std::uint64_t>(attempt_),
                      error_of(out));
    return stop_here;
  }
  emit_policy_event("retry", "retry", static_cast<std::uint64_t>(attempt_), error_of(out));
  if (!has_frame_) return pause;
  if (attempt_ == 1) emit_amplified();
  if (listed_ == nullptr) enter_list();
  return pause;
}

void retry_run::enter_list() {
  listed_ = current->leaf;
  retry_list::here().emplace(listed_, this);
}

void retry_run::leave_list() noexcept { retry_list::here().erase(listed_); }

// Emitted once for each outermost run, and again if the product has grown.
void retry_run::emit_amplified() {
  const auto& runs = retry_list::here();
  if (runs.empty()) return;
  std::int64_t product = rules_.attempts;
  retry_run* outermost = nullptr;
  const context* at = current->top;
  const frame* f = outer_frame(*current->leaf, at);
  for (int i = 0; f != nullptr && i < frames_walked_max; ++i, f = outer_frame(*f, at)) {
    const auto found = runs.find(f);
    if (found == runs.end()) continue;
    outermost = found->second;
    product = times(product, outermost->rules_.attempts);
  }
  if (outermost == nullptr || product <= outermost->reported_) return;
  outermost->reported_ = product;
  emit_policy_event("retry_amplified", "retry", static_cast<std::uint64_t>(product));
}

}  // namespace weir::detail
