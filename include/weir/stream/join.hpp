// SPDX-License-Identifier: MIT
// Streams of streams and several streams: flat_map, flatten, switch_map, concat, merge, zip,
// combine_latest, race_streams, with_latest_from, take_until. A stage owns all streams that it
// combines. They are pulled inside the consumer's `next()`, on its loop, also several at a time; no
// fiber is started. Each operator says below when it ends; the first error ends it, and the streams
// that are left are closed with it.
#pragma once

#include <tuple>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/flow/stream_join.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/stream/transform.hpp>

namespace weir {

/// Maps each item to a stream by `fn` and concatenates them.
template <class F>
auto flat_map(F fn) {
  return detail::stage_op<detail::flat_map_stage, F>(std::move(fn));
}
/// Concatenates a stream of streams.
inline auto flatten() { return flat_map(detail::identity_fn{}); }
/// As flat_map, but each new item ends the stream of the previous one.
template <class F>
auto switch_map(F fn) {
  return detail::stage_op<detail::switch_map_stage, F>(std::move(fn));
}
/// Ends when `op`, which starts with the first pull, has ended; its error is the stream's.
template <detail::operation Op>
auto take_until(Op op) {
  return detail::stage_op<detail::take_until_stage, Op>(std::move(op));
}

/// Concatenates streams.
template <detail::any_pipeline... P>
auto concat(P&&... streams) {
  return detail::make_pipeline(detail::concat_stage<detail::stage_of<P>...>(
      detail::stage_from(std::forward<P>(streams))...));
}
/// Merges streams in order of arrival; ends when all have ended. The first error closes the others.
template <detail::any_pipeline... P>
auto merge(P&&... streams) {
  return detail::make_pipeline(
      detail::merge_stage<detail::stage_of<P>...>(detail::stage_from(std::forward<P>(streams))...));
}
/// Tuples of the first items, the second items, ...; ends when the first of the streams ends.
template <detail::any_pipeline... P>
auto zip(P&&... streams) {
  return detail::make_pipeline(
      detail::zip_stage<detail::stage_of<P>...>(detail::stage_from(std::forward<P>(streams))...));
}
/// A tuple of the latest items for each new item, once each stream has one; ends when all have
/// ended.
template <detail::any_pipeline... P>
auto combine_latest(P&&... streams) {
  return detail::make_pipeline(detail::combine_latest_stage<detail::stage_of<P>...>(
      detail::stage_from(std::forward<P>(streams))...));
}
/// The first stream to yield an item or to end; the others are closed.
template <detail::any_pipeline... P>
auto race_streams(P&&... streams) {
  return detail::make_pipeline(detail::race_streams_stage<detail::stage_of<P>...>(
      detail::stage_from(std::forward<P>(streams))...));
}
/// Tuples of each item and the latest item of `other`, once `other` has one.
template <detail::any_pipeline P>
auto with_latest_from(P&& other) {
  return detail::stage_op<detail::with_latest_stage, detail::stage_of<P>>(
      detail::stage_from(std::forward<P>(other)));
}

}  // namespace weir
