// SPDX-License-Identifier: MIT
// What probes share: they run small programs with promises of weir in them in many orders, each in
// a process of its own, and say with which strategy a broken promise is found.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <utility>

#include <weir/sim.hpp>

namespace probe {

namespace sim = weir::sim;

// The status of a probe.
inline constexpr int held = 0;    // every promise holds
inline constexpr int broken = 1;  // the simulation says that one does not
inline constexpr int died = 2;    // a program only died or hung

inline constexpr int says_broken = 33;  // of a program: no sanitizer or library ends like that

struct plan {
  sim::strategy strategy;
  std::int64_t runs;
  std::int64_t jobs;  // with more than one, a run that ends its process is a failing run
};
inline constexpr plan plans[] = {
    {sim::fifo, 1, 2}, {sim::random, 300, 2}, {sim::pct(3), 300, 2}, {sim::dfs(2), 300, 1}};
inline constexpr std::int64_t max_steps = 20'000;

struct program {
  const char* name;
  sim::report (*explore)(const sim::explore_options&);
};

template <auto Op>
sim::report explored(const sim::explore_options& options) {
  return sim::explore(options, Op);
}

/// Looks with every strategy, to show which of them find it; the first finding is printed in full.
inline bool holds(const program& p) {
  std::optional<sim::report> first;
  for (const plan& how : plans) {
    if (first && how.jobs == 1) break;  // it would end this process, if the defect does that
    sim::report found = p.explore({.runs = how.runs,
                                   .strategy = how.strategy,
                                   .seed = 1,
                                   .max_steps = max_steps,
                                   .jobs = how.jobs});
    if (found.ok()) continue;
    std::cout << p.name << ": " << to_string(how.strategy) << " finds it in run " << found.runs()
              << ": " << found.message().substr(0, found.message().find('\n')) << std::endl;
    if (!first) first = std::move(found);
  }
  if (first) std::cout << *first;
  return !first;
}

/// In a process of its own, because a defect may end it in any way.
inline int outcome_of(const program& p, unsigned limit_s) {
  std::cout.flush();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::alarm(limit_s);
    const bool all_well = holds(p);
    std::cout.flush();
    ::_exit(all_well ? 0 : says_broken);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    std::cout << p.name << ": cannot be run in a process of its own\n";
    return died;
  }
  ::kill(-child, SIGKILL);  // the processes of its explorations, if it was ended
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return held;
  if (WIFEXITED(status) && WEXITSTATUS(status) == says_broken) return broken;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    std::cout << p.name << ": hangs\n";
  } else {
    std::cout << p.name << ": dies" << (WIFSIGNALED(status) ? " of signal " : " with status ")
              << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)) << "\n";
  }
  return died;
}

/// The status of the probe; no program takes longer than `limit_s`.
inline int outcome_of(std::span<const program> programs, unsigned limit_s) {
  bool any_broken = false;
  bool any_died = false;
  for (const program& p : programs) {
    const int how = outcome_of(p, limit_s);
    any_broken = any_broken || how == broken;
    any_died = any_died || how == died;
  }
  if (any_broken) return broken;
  if (any_died) return died;
  std::cout << "every promise holds\n";
  return held;
}

}  // namespace probe
