// SPDX-License-Identifier: MIT
// Simulation: the production scheduler on virtual time, under a seeded, replayable adversary.
//
// `run` runs a program once, `explore` runs it many times to find a failing run, `replay` repeats
// one exactly. A run depends on seed, strategy and program only.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include <weir/run.hpp>
#include <weir/sim/trace.hpp>
#include <weir/sim/world.hpp>
#include <weir/test_clock.hpp>

namespace weir {

namespace detail {
class explorer;
}

namespace sim {

struct explore_options {
  std::int64_t runs = 1000;
  sim::strategy strategy = sim::random;
  std::uint64_t seed = 0;              // run i has seed + i
  std::int64_t max_steps = 1'000'000;  // per run; more is a livelock
  std::int64_t jobs = 1;               // processes
  std::int64_t check_every = 100;      // one in this many seeds runs twice
};

/// The result of `explore`.
class report {
 public:
  report() = default;

  bool ok() const noexcept { return ok_; }
  /// Number of runs, without those for shrinking and the self-check.
  std::int64_t runs() const noexcept { return runs_; }
  /// Number of failing runs: 0 or 1, because `explore` stops at the first.
  std::int64_t failures() const noexcept { return failures_; }
  /// True if dfs has covered every run up to its limit of preemptions.
  bool exhausted() const noexcept { return exhausted_; }
  /// Steps of fibers and deliveries of messages in all these runs.
  std::int64_t steps() const noexcept { return steps_; }
  /// The seed of the failing run; `run` with it and the same strategy fails again.
  std::uint64_t seed() const noexcept { return trace_.seed(); }
  /// The trace of the failing run, shrunk.
  const sim::trace& trace() const noexcept { return trace_; }
  /// What failed; empty if nothing did.
  const std::string& message() const noexcept { return message_; }
  /// The tree at the moment of the failure, as weir::dump prints it.
  const std::string& tree() const noexcept { return tree_; }

  friend std::ostream& operator<<(std::ostream& out, const report& r);

 private:
  friend class detail::explorer;
  bool ok_ = true;
  bool exhausted_ = false;
  bool livelock_ = false;
  std::int64_t runs_ = 0;
  std::int64_t failures_ = 0;
  std::int64_t steps_ = 0;
  sim::trace trace_;
  std::string message_;
  std::string tree_;
};

}  // namespace sim

}  // namespace weir

#include <weir/detail/sim/explore.hpp>

namespace weir {

namespace sim {

/// Runs `op` like weir::run, on virtual time: sleeping for a day takes microseconds. Time jumps to
/// the next timer when nothing is ready. Throws the program's error, or sim::failure.
template <detail::simulated_program Op>
auto run(const sim::options& options, Op&& op,
         std::source_location site = std::source_location::current()) {
  return world(options).run(std::forward<Op>(op), site);
}

/// Runs the program `.runs` times, or until a run fails; the failing run is shrunk to fewer
/// preemptions. `op` is a callable that makes an operation (it may take the sim::world& of its
/// run). Errors of the program are reported, never thrown; bad options are errc::invalid_argument.
template <class F>
  requires detail::simulated_program<F&>
report explore(const explore_options& options, F&& op,
               std::source_location site = std::source_location::current()) {
  static_assert(std::is_invocable_v<F&> || std::is_invocable_v<F&, context&> ||
                    std::is_invocable_v<F&, world&>,
                "sim::explore runs its program many times: give a callable that makes the task");
  detail::program_of<std::remove_reference_t<F>> what(op, site);
  return detail::explore(options, what);
}

/// Repeats a run exactly; returns and throws like `run`. A trace that no longer fits the program:
/// errc::trace_mismatch.
template <detail::simulated_program Op>
auto replay(const sim::trace& trace, Op&& op,
            std::source_location site = std::source_location::current()) {
  return detail::make_replay(trace).run(std::forward<Op>(op), site);
}
template <detail::simulated_program Op>
auto replay(std::uint64_t seed, sim::strategy strategy, Op&& op,
            std::source_location site = std::source_location::current()) {
  return detail::make_replay(seed, strategy).run(std::forward<Op>(op), site);
}

}  // namespace sim
}  // namespace weir
