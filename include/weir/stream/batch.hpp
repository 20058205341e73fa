// SPDX-License-Identifier: MIT
// Batches: chunks, ready_chunks, sliding, group_by; and time limits: throttle, timeout_each. A
// stage owns its source and the items of the batch that is being filled. It works inside the
// consumer's `next()`, on its loop, and starts no fiber. When the source ends, `chunks` and
// `group_by` deliver what is left; an error of the source drops it.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <weir/detail/flow/stream_batch.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/stream/transform.hpp>
#include <weir/time.hpp>

namespace weir {

/// Vectors of `size` items; the last one may be shorter. A size below 1: errc::invalid_argument, as
/// below.
inline auto chunks(std::int64_t size) {
  return detail::stage_op<detail::chunks_stage, std::int64_t>(detail::require_size(size, "chunks"));
}
/// The same, but also emits an incomplete chunk when its first item is `limit` old.
template <class Rep, class Period>
auto chunks(std::int64_t size, std::chrono::duration<Rep, Period> limit) {
  return detail::stage_op<detail::timed_chunks_stage, std::int64_t, duration>(
      detail::require_size(size, "chunks"),
      detail::require_length(detail::saturating_cast(limit), "chunks"));
}
/// The items available without waiting, at least one and at most `size`.
inline auto ready_chunks(std::int64_t size) {
  return detail::stage_op<detail::ready_chunks_stage, std::int64_t>(
      detail::require_size(size, "ready_chunks"));
}
/// The last `size` items, after each item from the `size`th on.
inline auto sliding(std::int64_t size) {
  return detail::stage_op<detail::sliding_stage, std::int64_t>(
      detail::require_size(size, "sliding"));
}
/// Pairs of a key and the consecutive items with that key.
template <class F>
auto group_by(F fn) {
  return detail::stage_op<detail::group_by_stage, F>(std::move(fn));
}
/// Passes an item, then drops items for `length`; the event `throttled` counts them.
template <class Rep, class Period>
auto throttle(std::chrono::duration<Rep, Period> length) {
  return detail::stage_op<detail::throttle_stage, duration>(
      detail::require_length(detail::saturating_cast(length), "throttle"));
}
/// timeout_error if a pull takes longer than `limit`.
template <class Rep, class Period>
auto timeout_each(std::chrono::duration<Rep, Period> limit) {
  return detail::stage_op<detail::timeout_each_stage, duration>(
      detail::require_length(detail::saturating_cast(limit), "timeout_each"));
}

}  // namespace weir
