// SPDX-License-Identifier: MIT
// Shrinking: removes preemptions from a failing run, then searches all runs with fewer.
#include <algorithm>

#include "sim/explore.hpp"

namespace weir::detail {

namespace {

constexpr std::int64_t free_steps = 3'000'000;  // plus four times the failing run
constexpr std::int64_t free_runs = 20'000;
constexpr std::uint64_t other_ways = 150;  // alternative schedules to try
constexpr std::size_t few = 3;             // preemptions; up to this many need no alternatives

/// Tries plans that may reproduce the failure with fewer preemptions; keeps the best.
class shrinker {
 public:
  shrinker(program& what, const sim::options& options, run_result failing)
      : what_(what),
        options_(options),
        best_(std::move(failing)),
        plan_(preemptions_of(best_.trace)),
        steps_left_(free_steps + 4 * best_.steps) {}

  run_result run() {
    if (!plan_.empty() && !better({})) {
      thin_out();
      if (plan_.size() > few) look_elsewhere();
      look_below();
    }
    return std::move(best_);
  }

 private:
  /// Starts from another run, with the remaining budget.
  shrinker(const shrinker& outer, run_result other)
      : what_(outer.what_),
        options_(outer.options_),
        best_(std::move(other)),
        plan_(preemptions_of(best_.trace)),
        steps_left_(outer.steps_left_),
        runs_left_(outer.runs_left_) {}

  bool may_go_on() const noexcept { return steps_left_ > 0 && runs_left_ > 0; }

  run_result attempt(std::vector<preemption> plan) {
    adversary chooser(options_.strategy, options_.seed, std::move(plan));
    run_result r = run_once(what_, options_, std::move(chooser), false);
    steps_left_ -= r.steps;
    --runs_left_;
    return r;
  }

  bool keep_if_better(run_result r) {
    if (!r.same_failure(best_)) return false;
    std::vector<preemption> made = preemptions_of(r.trace);
    if (made.size() >= plan_.size()) return false;
    plan_ = std::move(made);
    best_ = std::move(r);
    return true;
  }

  bool better(std::vector<preemption> plan) { return keep_if_better(attempt(std::move(plan))); }

  /// One pass over the plan, from its end: tries it without each `chunk` in turn.
  bool leave_out(std::size_t chunk) {
    bool any = false;
    for (std::size_t end = plan_.size(); end > 0 && may_go_on();) {
      const std::size_t begin = end > chunk ? end - chunk : 0;
      std::vector<preemption> rest(plan_.begin(),
                                   plan_.begin() + static_cast<std::ptrdiff_t>(begin));
      rest.insert(rest.end(), plan_.begin() + static_cast<std::ptrdiff_t>(end), plan_.end());
      any = better(std::move(rest)) || any;
      end = std::min(begin, plan_.size());
    }
    return any;
  }

  void thin_out() {
    for (std::size_t chunk = std::max<std::size_t>(plan_.size() / 2, 1);; chunk /= 2) {
      while (leave_out(chunk)) {
      }
      if (chunk <= 1) break;
    }
  }

  /// A random run has preemptions everywhere, and removing one moves all later ones. pct, whose
  /// priorities change rarely, may reach the same failure with fewer.
  void look_elsewhere() {
    for (std::uint64_t i = 0; i < other_ways && may_go_on(); ++i) {
      const int depth = 1 + static_cast<int>(i % 3);
      adversary other = adversary::otherwise(sim::pct(depth), options_.seed + i, options_.strategy,
                                             options_.seed);
      run_result r = run_once(what_, options_, std::move(other), false);
      steps_left_ -= r.steps;
      --runs_left_;
      if (!r.same_failure(best_)) continue;
      shrinker inner(*this, std::move(r));
      inner.thin_out();
      steps_left_ = inner.steps_left_;
      runs_left_ = inner.runs_left_;
      keep_if_better(std::move(inner.best_));
      if (plan_.size() <= few) return;
    }
  }

  /// The plan may be a local minimum: tries every run with fewer preemptions while the budget
  /// lasts.
  void look_below() {
    if (plan_.size() < 2) return;
    frontier plans(static_cast<int>(plan_.size()) - 1, runs_left_);
    while (may_go_on()) {
      const auto plan = plans.next();
      if (!plan || plan->size() >= plan_.size()) return;
      run_result r = attempt(*plan);
      if (!r.failed) {
        plans.ran(*plan, r.trace);
      } else if (keep_if_better(std::move(r))) {
        return;  // plans are tried in order of size, so none is smaller
      }
    }
  }

  program& what_;
  sim::options options_;
  run_result best_;
  std::vector<preemption> plan_;
  std::int64_t steps_left_;
  std::int64_t runs_left_ = free_runs;
};

}  // namespace

std::vector<preemption> preemptions_of(const sim::trace& trace) {
  std::vector<preemption> found;
  const auto& choices = trace.choices();
  for (std::size_t i = 0; i < choices.size(); ++i)
    if (choices[i].of != sim::trace::random_number && choices[i].pick != 0)
      found.push_back({i, choices[i].pick});
  return found;
}

run_result shrink(program& what, const sim::options& options, run_result failing) {
  return shrinker(what, options, std::move(failing)).run();
}

// ------------------------------------------------------------------ all plans

frontier::frontier(int preemptions, std::int64_t runs)
    : preemptions_(static_cast<std::size_t>(preemptions)), left_(static_cast<std::uint64_t>(runs)) {
  waiting_.emplace_back();
}

std::optional<std::vector<preemption>> frontier::next() {
  if (waiting_.empty() || left_ == 0) return std::nullopt;
  --left_;
  auto plan = std::move(waiting_.front());
  waiting_.pop_front();
  return plan;
}

void frontier::ran(const std::vector<preemption>& plan, const sim::trace& trace) {
  if (plan.size() >= preemptions_) return;
  const auto& choices = trace.choices();
  for (std::size_t at = plan.empty() ? 0 : plan.back().at + 1; at < choices.size(); ++at) {
    const std::uint32_t of = choices[at].of;
    if (of == sim::trace::random_number) continue;
    for (std::uint64_t pick = 1; pick < std::max<std::uint32_t>(of, 2); ++pick) {
      if (waiting_.size() >= left_) {
        dropped_ = true;
        return;
      }
      auto& longer = waiting_.emplace_back(plan);
      longer.push_back({at, pick});
    }
  }
}

}  // namespace weir::detail
