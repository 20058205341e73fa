// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <iosfwd>

namespace weir {

/// Prints the tree of scopes and fibers of every loop of the process: name, state, what each waits
/// on, where, and the chain of awaiting tasks. Any thread; each loop's thread prints its own part,
/// and dump waits for it for at most one second.
void dump(std::ostream& out);

/// What is alive in the process.
struct live_counts {
  std::int64_t loops = 0;
  std::int64_t scopes = 0;
  std::int64_t fibers = 0;
  std::int64_t timers = 0;
};

/// Counts of all loops together. Any thread.
live_counts live() noexcept;

}  // namespace weir
