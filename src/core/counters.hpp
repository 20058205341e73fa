// SPDX-License-Identifier: MIT
// How often what happened, for the whole process: what weir::stats() reads.
#pragma once

#include <cstdint>
#include <string_view>

#include <weir/cancel_reason.hpp>

namespace weir::detail {

/// Each thread counts in a table of its own: single writer, relaxed. When a thread ends, its table
/// waits with its counts for a later one, so nothing is lost and nothing is merged.
///
/// Bounded: a table tells up to `pairs_max` pairs apart, as far as there is room for their texts,
/// and counts the rest as one number. Costs: a hash of the two texts and one comparison; memory is
/// asked for once per thread.
struct counters {
  static constexpr std::size_t pairs_max = 700;
  static constexpr std::size_t object_max = 200;  // bytes by which objects are told apart

  /// Makes sure that this thread has its table.
  static void prepare() noexcept;
  static void count(std::string_view object, std::string_view what) noexcept;
  static void count_cancel(cancel_kind kind) noexcept;

  // Any thread.
  static std::uint64_t read(std::string_view object, std::string_view what);
  static std::uint64_t read_cancels(cancel_kind kind) noexcept;
  static std::uint64_t read_uncounted();
};

}  // namespace weir::detail
