// SPDX-License-Identifier: MIT
// Runs a tree of combinators and checks what holds for every tree:
// - when an operation ends, in whatever way, nothing that it started is left;
// - a caller has the answer of the operation that it called: its value, or an error from below it;
// - locals and deadlines are those of the caller, on whichever loop;
// - a time limit or a cancellation ends what can be ended in its instant (simulation only);
// - accepted jobs run once, everything is joined, nothing is left in the end.
//
// What is noted about an operation is not atomic: on threads, ThreadSanitizer sees an answer that
// comes before the end of what it answers.
#include "stress/tree_climber.hpp"

namespace fuzz {

std::string run_tree(const tree_plan& plan, bool threads) {
  climber c(plan, threads);
  try {
    if (threads) {
      weir::run([&] { return c.climb(nullptr); });
      const weir::live_counts left = weir::live();
      if (left.loops + left.scopes + left.fibers + left.timers != 0) return "something is left";
    } else {
      weir::sim::world w(
          {.seed = plan.seed, .strategy = strategy_of(plan.in), .max_steps = 200'000});
      w.run([&] { return c.climb(&w); });
    }
  } catch (const std::exception& e) {
    return c.problem() + "\n" + e.what();
  }
  return c.problem();
}

}  // namespace fuzz
