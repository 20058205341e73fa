// SPDX-License-Identifier: MIT
#include "sim/explore.hpp"

#include <ostream>
#include <typeinfo>

#include "core/error.hpp"
#include "sim/simulation.hpp"

namespace weir {

namespace detail {

namespace {

const char* name_of(errc code) noexcept {
  switch (code) {
    case errc::deadlock:
      return "deadlock";
    case errc::livelock:
      return "livelock";
    case errc::leak:
      return "leak";
    default:
      return "always";
  }
}

/// Describes the exception being handled.
void judge_error(run_result& r) {
  r.failed = true;
  r.message = describe(std::current_exception());
  while (!r.message.empty() && r.message.back() == '\n') r.message.pop_back();
  try {
    throw;
  } catch (const std::exception& e) {
    r.kind = typeid(e).name();
    r.what = what_of(e);
  } catch (...) {
    r.kind = "not a std::exception";
  }
}

std::int64_t require_positive(std::int64_t value, const char* name) {
  if (value <= 0)
    raise(errc::invalid_argument, std::string("sim::explore: ") + name + " is " +
                                      std::to_string(value) + "; give 1 or more");
  return value;
}

}  // namespace

run_result run_once(program& what, const sim::options& options, adversary chooser, bool watch) {
  auto core = std::make_unique<simulation>(options, std::move(chooser));
  simulation& in = *core;
  in.record();
  if (watch) in.watch_errors();
  sim::world world = world_maker::of(std::move(core));
  run_result r;
  try {
    what.run(world);
  } catch (...) {
    judge_error(r);
    r.tree = in.tree_of_error();
  }
  if (const auto& verdict = in.verdict()) {
    r.failed = true;
    r.kind = name_of(verdict->code);
    r.livelock = verdict->code == errc::livelock;
    r.what = r.message = verdict->message;
    r.tree = verdict->tree;
  }
  r.trace = in.take_trace();
  r.steps = in.steps();
  r.sometimes = in.sometimes_seen();
  return r;
}

explorer::explorer(const sim::explore_options& options, program& what)
    : options_(options), what_(what) {
  require_positive(options.runs, "runs");
  require_positive(options.max_steps, "max_steps");
  require_positive(options.jobs, "jobs");
  require_positive(options.check_every, "check_every");
  check_strategy(options.strategy, "sim::explore", true);
  if (options.strategy.what == sim::strategy::kind::dfs && options.jobs > 1)
    raise(errc::invalid_argument,
          "sim::explore: dfs makes each run from the one before, in one process; leave jobs at 1");
  if (const auto seed = environment_number("WEIR_SIM_SEED")) options_.seed = *seed;
  if (const auto runs = environment_number("WEIR_SIM_RUNS"))
    options_.runs = require_positive(static_cast<std::int64_t>(*runs), "WEIR_SIM_RUNS");
}

sim::report explorer::run() {
  require_no_loop();
  if (options_.strategy.what == sim::strategy::kind::dfs) {
    try_plans();
  } else if (options_.jobs > 1) {
    try_jobs();
  } else {
    try_seeds();
  }
  if (report_.ok_) check_sometimes();
  return std::move(report_);
}

sim::options explorer::single(std::uint64_t seed) const {
  sim::options one;
  one.seed = seed;
  one.strategy = options_.strategy;
  one.max_steps = options_.max_steps;
  return one;
}

// Repeats every `check_every`-th run: the same choices must lead to the same run.
run_result explorer::checked(run_result first, std::int64_t i, const adversary& again) {
  if (i % options_.check_every != 0) return first;
  const run_result second = run_once(what_, single(first.trace.seed()), again, false);
  if (second.trace == first.trace && second.steps == first.steps && second.failed == first.failed &&
      second.kind == first.kind)
    return first;
  const auto& a = first.trace.choices();
  const auto& b = second.trace.choices();
  std::size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  first.failed = true;
  first.kind = "nondeterminism";
  first.what = first.message =
      "hidden nondeterminism: two runs with seed " + std::to_string(first.trace.seed()) +
      (same < a.size() || same < b.size()
           ? " differ from choice " + std::to_string(same + 1) + " on"
           : " make the same choices and go on differently") +
      "; something outside the simulation (an address, a real clock, a thread, a static variable) "
      "influences the program";
  first.tree.clear();
  return first;
}

run_result explorer::try_run(std::int64_t i) {
  const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(i);
  const adversary chooser(options_.strategy, seed);
  return checked(run_once(what_, single(seed), chooser, false), i, chooser);
}

void explorer::count(const run_result& r) {
  ++report_.runs_;
  report_.steps_ += r.steps;
  for (const auto& [name, held] : r.sometimes) sometimes_[name] |= held;
}

void explorer::try_seeds() {
  progress line(options_.runs);
  for (std::int64_t i = 0; i < options_.runs; ++i) {
    run_result r = try_run(i);
    count(r);
    line.show(i + 1, r.failed ? 1 : 0);
    if (r.failed) return failed(std::move(r), i);
  }
}

void explorer::try_plans() {
  progress line(options_.runs);
  frontier plans(options_.strategy.depth, options_.runs);
  for (std::int64_t i = 0; i < options_.runs; ++i) {
    const auto plan = plans.next();
    if (!plan) break;
    const adversary chooser(options_.strategy, options_.seed, *plan);
    run_result r = checked(run_once(what_, single(options_.seed), chooser, false), i, chooser);
    count(r);
    line.show(i + 1, r.failed ? 1 : 0);
    if (r.failed) return failed(std::move(r), i);
    plans.ran(*plan, r.trace);
  }
  report_.exhausted_ = plans.exhausted();
}

void explorer::try_jobs() {
  const jobs_findings found = run_jobs(*this, options_.jobs, options_.runs);
  report_.runs_ = found.runs;
  report_.steps_ = found.steps;
  sometimes_ = found.sometimes;
  if (!found.failing) return;
  report_.runs_ = *found.failing + 1;
  const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(*found.failing);
  if (!found.died) {
    run_result again = try_run(*found.failing);
    if (again.failed) return failed(std::move(again), *found.failing);
  }
  report_.ok_ = false;
  report_.failures_ = 1;
  report_.trace_ = sim::trace::of_seed(options_.strategy, seed, options_.max_steps);
  report_.message_ = !found.message.empty()
                         ? found.message
                         : "a run failed in its process; that could not be repeated in this one";
}

// Shrinks the failing run, then repeats it once to get the tree at the moment of failure.
void explorer::failed(run_result r, std::int64_t run) {
  report_.ok_ = false;
  report_.failures_ = 1;
  const sim::options how = single(options_.strategy.what == sim::strategy::kind::dfs
                                      ? options_.seed
                                      : options_.seed + static_cast<std::uint64_t>(run));
  if (r.kind != "nondeterminism") {
    run_result best = shrink(what_, how, r);
    const run_result seen = run_once(what_, how, adversary(best.trace), true);
    if (seen.same_failure(best)) {
      best.message = seen.message;
      best.tree = seen.tree;
    } else {
      best.message.append(
          "\n(the run could not be repeated exactly: something outside the simulation "
          "influences the program)");
    }
    r = std::move(best);
  }
  report_.trace_ = std::move(r.trace);
  report_.message_ = std::move(r.message);
  report_.tree_ = std::move(r.tree);
  report_.livelock_ = r.livelock;
}

void explorer::check_sometimes() {
  std::string never;
  for (const auto& [name, held] : sometimes_)
    if (!held) never.append(never.empty() ? "'" : ", '").append(name).append("'");
  if (never.empty()) return;
  report_.ok_ = false;
  report_.trace_ = sim::trace::of_seed(options_.strategy, options_.seed, options_.max_steps);
  report_.message_ = "sometimes " + never + " was never true in " + std::to_string(report_.runs_) +
                     (report_.runs_ == 1 ? " run" : " runs");
}

sim::report explore(const sim::explore_options& options, program& what) {
  return explorer(options, what).run();
}

}  // namespace detail
}  // namespace weir
