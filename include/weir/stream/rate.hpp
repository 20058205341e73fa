// SPDX-License-Identifier: MIT
// Stages that run ahead of their consumer: buffer, conflate, sample, debounce, delay. The first
// `next()` starts a child of the consumer's scope on the same loop, which pulls the source and
// keeps what has arrived. The stage owns the child and these items: closing or destroying the
// stream cancels the child. When the source ends, the items that are left are delivered first, then
// its end or error.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/pump.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/detail/flow/stream_rate.hpp>
#include <weir/event.hpp>
#include <weir/overflow.hpp>
#include <weir/stream/batch.hpp>
#include <weir/time.hpp>

namespace weir {

/// Keeps up to `capacity` items for a slow consumer. When full: `wait` stops pulling; drop_oldest,
/// drop_newest and conflate (drops all but the new item) are counted by the event `dropped`. A
/// capacity below 1, or another policy: errc::invalid_argument.
inline auto buffer(std::int64_t capacity, overflow policy = overflow::wait) {
  return detail::stage_op<detail::buffer_stage, std::int64_t, overflow>(
      detail::require_size(capacity, "buffer"), detail::require_buffer_policy(policy));
}
/// Combines the items that a slow consumer has not taken: `fn(kept, item)`.
template <class F>
auto conflate(F fn) {
  return detail::stage_op<detail::conflate_stage, F>(std::move(fn));
}
/// The latest item at each tick, if there is a new one.
template <class Rep, class Period>
auto sample(std::chrono::duration<Rep, Period> every) {
  return detail::stage_op<detail::sample_stage, duration>(
      detail::require_positive(detail::saturating_cast(every), "sample"));
}
/// An item after which none followed for `quiet`; also the last item at the end.
template <class Rep, class Period>
auto debounce(std::chrono::duration<Rep, Period> quiet) {
  return detail::stage_op<detail::debounce_stage, duration>(
      detail::require_length(detail::saturating_cast(quiet), "debounce"));
}
/// Every item delayed by `by`; the intervals between items are kept.
template <class Rep, class Period>
auto delay(std::chrono::duration<Rep, Period> by) {
  return detail::stage_op<detail::delay_stage, duration>(
      detail::require_length(detail::saturating_cast(by), "delay"));
}

}  // namespace weir
