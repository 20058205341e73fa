// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weir/sim/explore.hpp>

#include "sim/adversary.hpp"
#include "sim/settings.hpp"

namespace weir::detail {

using sometimes_map = std::map<std::string, bool, std::less<>>;

/// The result of one run.
struct run_result {
  bool failed = false;
  bool livelock = false;
  std::string kind;     // of the failure: its code or type
  std::string what;     // its text; kind and what identify "the same failure"
  std::string message;  // for the report: includes where it was thrown, awaited and spawned
  std::string tree;     // at the moment of the failure
  sim::trace trace;
  std::int64_t steps = 0;
  sometimes_map sometimes;

  bool same_failure(const run_result& other) const noexcept {
    return failed && other.failed && kind == other.kind && what == other.what;
  }
};

/// Runs the program once in its own world and judges the result. `watch`: also keeps the tree at
/// the moment an error was thrown, at the cost of a dump for each error.
run_result run_once(program& what, const sim::options& options, adversary chooser, bool watch);

/// All plans with up to a given number of preemptions, those with fewer first, generated on demand.
///
/// A run with k preemptions is extended by one more, at each later choice and with each other
/// option, so every plan is generated exactly once. Plans beyond the last allowed run are dropped.
class frontier {
 public:
  frontier(int preemptions, std::int64_t runs);
  /// The next plan; nullopt if there is none.
  std::optional<std::vector<preemption>> next();
  /// Reports the choices of the run of `plan`.
  void ran(const std::vector<preemption>& plan, const sim::trace& trace);
  /// True if no plan is left and none was dropped.
  bool exhausted() const noexcept { return waiting_.empty() && !dropped_; }

 private:
  std::size_t preemptions_;
  std::uint64_t left_;
  std::deque<std::vector<preemption>> waiting_;
  bool dropped_ = false;
};

std::vector<preemption> preemptions_of(const sim::trace& trace);

/// Searches for a run with the same failure and fewer preemptions.
run_result shrink(program& what, const sim::options& options, run_result failing);

/// Results of the processes of `.jobs`.
struct jobs_findings {
  std::int64_t runs = 0;
  std::int64_t steps = 0;
  std::optional<std::int64_t> failing;  // the lowest failing run
  std::string message;                  // of that run
  bool died = false;                    // its process died in it
  sometimes_map sometimes;
};
class explorer;
jobs_findings run_jobs(explorer& work, std::int64_t jobs, std::int64_t runs);

/// A progress line on stderr, if that is a terminal and the work takes more than a second.
class progress {
 public:
  explicit progress(std::int64_t runs);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();
  void show(std::int64_t done, std::int64_t failures);

 private:
  time_point clock() { return machine_.now(); }
  real_environment machine_;
  std::int64_t runs_;
  bool shown_ = false;
  bool terminal_;
  time_point begun_;
  time_point next_;
};

/// Implements `sim::explore`.
class explorer {
 public:
  explorer(const sim::explore_options& options, program& what);
  sim::report run();

  /// Run number i; runs that are due for a check are made twice. Also used by the processes of
  /// `.jobs`.
  run_result try_run(std::int64_t i);

 private:
  void try_seeds();
  void try_plans();
  void try_jobs();
  void count(const run_result& r);
  void failed(run_result r, std::int64_t run);
  void check_sometimes();
  run_result checked(run_result first, std::int64_t i, const adversary& again);
  sim::options single(std::uint64_t seed) const;

  sim::explore_options options_;
  program& what_;
  sim::report report_;
  sometimes_map sometimes_;
};

}  // namespace weir::detail
