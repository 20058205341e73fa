// SPDX-License-Identifier: MIT
// Stream stages that work item by item: map, filter, filter_map, scan, enumerate, tap, dedup,
// distinct, start_with; take, take_while, drop, drop_while, take_last, skip_last. A stage owns its
// source and its callback, which is plain code: callbacks that wait go into map_async. It works
// inside the consumer's `next()`, on its loop, without a fiber or a buffer of its own. It ends with
// its source, `take` and `take_while` before; an error of a callback ends the stream.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/detail/flow/stream_transform.hpp>

namespace weir {

/// Applies `fn` to each item.
template <class F>
auto map(F fn) {
  return detail::stage_op<detail::map_stage, F>(std::move(fn));
}
/// Only the items for which `fn` is true.
template <class F>
auto filter(F fn) {
  return detail::stage_op<detail::filter_stage, F>(std::move(fn));
}
/// map and filter in one: `fn` returns an optional.
template <class F>
auto filter_map(F fn) {
  return detail::stage_op<detail::filter_map_stage, F>(std::move(fn));
}
/// The states `fn(state, item)` after each item; the first state, `init`, is not an item.
template <class A, class F>
auto scan(A init, F fn) {
  return detail::stage_op<detail::scan_stage, A, F>(std::move(init), std::move(fn));
}
/// Pairs of a number, from 0 on, and the item.
inline auto enumerate() { return detail::stage_op<detail::enumerate_stage>(); }
/// Calls `fn` with each item and passes the item on.
template <class F>
auto tap(F fn) {
  return detail::stage_op<detail::tap_stage, F>(std::move(fn));
}
/// Leaves out an item that is equal to the one before it.
inline auto dedup() { return detail::stage_op<detail::dedup_stage>(); }

/// Leaves out an item that is equal to one of the last `max` different ones. O(max) for each item.
/// `max` below 1: errc::invalid_argument.
inline auto distinct(std::int64_t max) {
  return detail::stage_op<detail::distinct_stage, std::int64_t>(
      detail::require_size(max, "distinct"));
}
/// `first`, then the items of the stream.
template <class T>
auto start_with(T first) {
  return detail::stage_op<detail::start_with_stage, T>(std::move(first));
}

/// The first `count` items; pulls no more than that. Negative: errc::invalid_argument, as below.
inline auto take(std::int64_t count) {
  return detail::stage_op<detail::take_stage, std::int64_t>(detail::require_count(count, "take"));
}
/// Up to the first item for which `fn` is false.
template <class F>
auto take_while(F fn) {
  return detail::stage_op<detail::take_while_stage, F>(std::move(fn));
}
/// All but the first `count` items.
inline auto drop(std::int64_t count) {
  return detail::stage_op<detail::drop_stage, std::int64_t>(detail::require_count(count, "drop"));
}
/// From the first item on for which `fn` is false.
template <class F>
auto drop_while(F fn) {
  return detail::stage_op<detail::drop_while_stage, F>(std::move(fn));
}
/// The last `count` items, delivered at the end of the stream.
inline auto take_last(std::int64_t count) {
  return detail::stage_op<detail::take_last_stage, std::int64_t>(
      detail::require_count(count, "take_last"));
}
/// All but the last `count` items; each is delivered when `count` items have followed it.
inline auto skip_last(std::int64_t count) {
  return detail::stage_op<detail::skip_last_stage, std::int64_t>(
      detail::require_count(count, "skip_last"));
}

}  // namespace weir
