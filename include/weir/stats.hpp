// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include <weir/cancel_reason.hpp>

namespace weir {

/// What happened in this process so far, in all its loops, also those that have ended.
///
/// Threads: any. Costs: whoever counts writes to its own memory and never waits; whoever reads adds
/// up the counts of all threads. What a thread has just counted may be seen a moment later.
class process_stats {
 public:
  /// How many events of the name `what` had this `object`; a `trace` counts `value`, `error` and
  /// `cancelled`. Objects are told apart by their first 200 bytes.
  std::uint64_t counter(std::string_view object, std::string_view what) const;
  /// How many cancellations of this kind were asked for (event `cancel`).
  std::uint64_t cancels(cancel_kind kind) const noexcept;
  /// Events that counter() does not know of: each thread tells up to 700 pairs of object and name
  /// apart, fewer if the texts are long.
  std::uint64_t uncounted() const;
};

inline process_stats stats() noexcept { return {}; }

}  // namespace weir
