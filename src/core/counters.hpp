// SPDX-License-Identifier: MIT
// Event counts of the whole process, as read by weir::stats().
#pragma once

#include <cstdint>
#include <string_view>

#include <weir/cancel_reason.hpp>

namespace weir::detail {

/// Each thread counts in its own table: single writer, relaxed. When a thread ends, its table keeps
/// the counts and is reused by a later thread, so nothing is lost and nothing is merged.
///
/// Bounded: a table distinguishes up to `pairs_max` pairs, as long as their texts fit, and counts
/// the rest as one number. Costs: a hash of the two texts and, usually, one comparison; only the
/// first count of a thread allocates.
struct counters {
  static constexpr std::size_t pairs_max = 700;
  static constexpr std::size_t object_max = 200;  // bytes that distinguish objects

  /// Gives this thread its table in advance.
  static void prepare() noexcept;
  static void count(std::string_view object, std::string_view what) noexcept;
  static void count_cancel(cancel_kind kind) noexcept;

  // Any thread.
  static std::uint64_t read(std::string_view object, std::string_view what);
  static std::uint64_t read_cancels(cancel_kind kind) noexcept;
  static std::uint64_t read_uncounted();
};

}  // namespace weir::detail
