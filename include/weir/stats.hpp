// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include <weir/cancel_reason.hpp>

namespace weir {

/// Counters of this process over all loops, including loops that have ended.
///
/// Threads: any. Costs: counting writes to memory of the thread, without a lock after its first
/// count; reading adds up the counts of all threads. A recent count may become visible a moment
/// later.
class process_stats {
 public:
  /// How many events of the name `what` had this `object`; a `trace` counts `value`, `error` and
  /// `cancelled`. Objects are distinguished by their first 200 bytes.
  std::uint64_t counter(std::string_view object, std::string_view what) const;
  /// How many cancellations of this kind were requested (event `cancel`).
  std::uint64_t cancels(cancel_kind kind) const noexcept;
  /// Events that counter() does not include: each thread distinguishes up to 700 pairs of object
  /// and name, fewer if the texts are long.
  std::uint64_t uncounted() const;
};

inline process_stats stats() noexcept { return {}; }

}  // namespace weir
