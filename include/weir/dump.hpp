// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <iosfwd>

namespace weir {

/// Prints the tree of scopes and fibers of every loop of the process: name, state, what each waits
/// on, where, and the chain of awaiting tasks. Any thread; a loop's part is made by its own thread,
/// which is waited for at most one second.
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
