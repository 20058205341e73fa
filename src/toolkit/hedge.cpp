// SPDX-License-Identifier: MIT
#include <weir/policy/hedge.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <weir/combinators.hpp>
#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/toolkit/policy_event.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"
#include "toolkit/budget_core.hpp"
#include "toolkit/option.hpp"

namespace weir::detail {

namespace {

constexpr std::int64_t hedges_max = 1000;
constexpr std::int64_t samples_max = 100'000;
constexpr std::int64_t samples_kept = 1000;

}  // namespace

/// The latest times to a value, in order of arrival and sorted. Used on one home loop: the first
/// that uses it or, after that one has ended, the next.
class hedge_samples {
 public:
  hedge_samples(double quantile, std::int64_t needed)
      : quantile_(quantile),
        needed_(static_cast<std::size_t>(std::max<std::int64_t>(needed, 1))),
        kept_(static_cast<std::size_t>(std::max(needed, samples_kept))) {}

  void require_home();
  void add(duration length);
  /// Empty if there are not enough samples yet.
  std::optional<duration> delay() const {
    if (sorted_.size() < needed_) return std::nullopt;
    const double rank = std::ceil(quantile_ * static_cast<double>(sorted_.size()));
    const auto index = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
    // Never 0: calls that take no time must not all be made twice.
    return std::max(sorted_[std::min(index, sorted_.size() - 1)], duration(1));
  }

 private:
  double quantile_;
  std::size_t needed_;
  std::size_t kept_;
  std::size_t oldest_ = 0;
  std::vector<duration> arrived_;  // circular once it is full
  std::vector<duration> sorted_;
  made_in_run made_;
  std::uint32_t home_ = 0;
};

void hedge_samples::require_home() {
  made_.require_here({"hedge", "quantile"});
  const std::uint32_t here = current_loop_serial();
  if (home_ == here) return;
  if (home_ != 0) {
    if (const door_ref home = door_table::find_serial(home_))
      raise(errc::wrong_loop, "the samples of a hedge of loop '" + home->name() +
                                  "' used on loop '" + loop::here()->own_door().name() +
                                  "'; make one hedge for each loop");
  }
  home_ = here;
}

void hedge_samples::add(duration length) {
  if (arrived_.size() < kept_) {
    arrived_.push_back(length);
  } else {
    const duration dropped = std::exchange(arrived_[oldest_], length);
    oldest_ = (oldest_ + 1) % kept_;
    sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), dropped));
  }
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), length), length);
}

hedge_rules::hedge_rules(const hedge_options& given)
    : options(given), budget(core_of(given.budget)) {
  require_option(given.after >= duration::zero(), "hedge", "after is negative; give 0 or more");
  require_option(given.max >= 1 && given.max <= hedges_max, "hedge",
                 "max is not in 1..1000; it counts all attempts, the first one too");
  require_option(given.quantile >= 0 && given.quantile <= 1, "hedge", "quantile is not in 0..1");
  require_option(given.min_samples >= 0 && given.min_samples <= samples_max, "hedge",
                 "min_samples is not in 0..100000");
  if (given.quantile > 0)
    samples = std::make_shared<hedge_samples>(given.quantile, given.min_samples);
}

time_point hedge_now() noexcept { return loop::here()->now(); }

// ------------------------------------------------------------------ attempts

hedge_core::hedge_core(const hedge_rules& rules) : rules_(rules) {
  if (rules.samples != nullptr) rules.samples->require_home();
  if (rules.budget != nullptr) rules.budget->first_attempt(loop::here()->now());
}

void hedge_core::launch(task<> attempt) {
  if (++started_ > 1) emit_policy_event("hedge", "hedge", static_cast<std::uint64_t>(started_));
  ++running_;
  due_ = failed_ = false;
  fiber* f =
      region_.adopt(scope::make(std::move(attempt)), {}, caller_site(), scope::launch::hidden);
  (void)core_ref::adopt(f);  // the region owns it
  duration delay = rules_.options.after;
  if (rules_.samples != nullptr) delay = rules_.samples->delay().value_or(delay);
  next_at_ = saturating_add(loop::here()->now(), delay);
  if (delay == duration::zero()) due_ = true;
}

bool hedge_core::wants_another() {
  if (decided_ || !(due_ || failed_) || !may_start_more()) return false;
  if (rules_.budget == nullptr || rules_.budget->grants(loop::here()->now())) return true;
  denied_ = true;
  emit_policy_event("budget_denied", "hedge", static_cast<std::uint64_t>(started_));
  return false;
}

void hedge_core::cancel_losers() noexcept {
  if (running_ > 0) detail::cancel_losers(region_, cancel_kind::hedge_lost);
}

bool hedge_core::value_came(time_point started) {
  --running_;
  if (rules_.samples != nullptr) rules_.samples->add(loop::here()->now() - started);
  if (decided_) {
    emit_policy_event("value_discarded", "hedge");
    return false;
  }
  decided_ = true;
  if (parked_ != nullptr) {
    parked_->wake();
    cancel_losers();
  }
  return true;
}

bool hedge_core::failure_came(const outcome_base& failed, const outcome_base& before) {
  --running_;
  const outcome_base& lost = decided_ ? failed : before;
  if (!lost.pending())
    emit_policy_event("suppressed", "hedge", 0,
                      lost.is_error() ? lost.error() : std::exception_ptr());
  if (decided_) return false;
  failed_ = true;
  if (parked_ != nullptr && parked_->try_now()) parked_->wake();
  return true;
}

// ------------------------------------------------------------------ waiting for attempts

bool hedge_wait::try_now() const noexcept {
  const hedge_core& c = *core_;
  return c.decided_ || c.running_ == 0 || ((c.failed_ || c.due_) && c.may_start_more());
}

void hedge_wait::arm() noexcept {
  core_->parked_ = this;
  if (core_->may_start_more() && core_->next_at_ != time_point::max())
    loop::here()->arm_deadline(*this, core_->next_at_, loop::here()->next_order());
}

cancel_result hedge_wait::withdraw() noexcept {
  core_->parked_ = nullptr;
  if (armed()) loop::here()->cancel_deadline(*this);
  return cancel_result::done;
}

void hedge_wait::wake() noexcept {
  (void)withdraw();
  complete();
}

void hedge_wait::expired() noexcept {
  core_->due_ = true;
  wake();
}

void hedge_wait::describe(dump_line& line) const {
  line.add("hedge of ").add(static_cast<std::uint64_t>(core_->running_)).add(" attempts");
}

void hedge_wait::blockers(blocker_list& list) const {
  for (const fiber* f = cancel_tree::first_child(core_->region_); f != nullptr; f = f->following)
    list.fibers.push_back(f);
}

}  // namespace weir::detail
