// SPDX-License-Identifier: MIT
// flat_map with a number or a governor: the streams of several items at once. The first pull starts
// a child of the consumer's scope on the same loop; it pulls the source, and a child of its own
// pulls the stream of each item. The stage owns these children and streams: closing or destroying
// it cancels them. It ends when the source and all inner streams have ended, or with the first
// error.
#pragma once

#include <utility>

#include <weir/detail/flow/flat_map.hpp>
#include <weir/detail/flow/pump.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/queue.hpp>
#include <weir/scope.hpp>
#include <weir/stream/async.hpp>
#include <weir/stream/join.hpp>

namespace weir {

/// Maps each item to a stream by `fn` and merges several of these at once, in order of arrival. A
/// permit is held from the pull of an item to the end of its stream. The first error cancels
/// everything else and is thrown when that is joined.
template <detail::permits G, class F>
auto flat_map(G&& g, F fn) {
  return detail::stage_op<detail::flat_map_async_stage, detail::permits_t<G>, F>(
      detail::permits_from(std::forward<G>(g)), std::move(fn));
}

}  // namespace weir
