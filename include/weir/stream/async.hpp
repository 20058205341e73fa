// SPDX-License-Identifier: MIT
// Concurrent stages and sinks: map_async, map_async_unordered, buffered, limit. Each takes a number
// or a governor, which must outlive the stream; a permit is held from the pull of an item until its
// value is taken (`limit`: during each pull). The first pull starts a child of the consumer's scope
// on the same loop, which pulls the source and runs the callbacks. The stage owns that child:
// closing or destroying the stream cancels it, and the end of the stream is delivered after the
// child has ended.
#pragma once

#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/pump.hpp>
#include <weir/detail/flow/stream_async.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/governor/counting.hpp>
#include <weir/policy/bulkhead.hpp>
#include <weir/scope.hpp>
#include <weir/stream/sink.hpp>

namespace weir {

/// `fn(item)` for several items at once, results in order. An error arrives in its place: later
/// items are cancelled at once, earlier results still arrive.
template <detail::permits G, class F>
auto map_async(G&& g, F fn) {
  return detail::stage_op<detail::map_async_stage, detail::permits_t<G>, F>(
      detail::permits_from(std::forward<G>(g)), std::move(fn));
}
/// The same, results in order of completion. An error arrives as soon as everything else is
/// cancelled and joined.
template <detail::permits G, class F>
auto map_async_unordered(G&& g, F fn) {
  return detail::stage_op<detail::map_unordered_stage, detail::permits_t<G>, F>(
      detail::permits_from(std::forward<G>(g)), std::move(fn));
}
/// Pulls ahead of the consumer while there are permits. `prepopulate`: starts at once instead of at
/// the first pull, as a child of the enclosing scope or of the service that runs the code (outside
/// a fiber: errc::no_current_fiber).
template <detail::permits G>
auto buffered(G&& g, bool prepopulate = false) {
  return detail::stage_op<detail::buffered_stage, detail::permits_t<G>, bool>(
      detail::permits_from(std::forward<G>(g)), prepopulate);
}
/// Each pull holds a permit while it is pending.
template <detail::permits G>
auto limit(G&& g) {
  return detail::stage_op<detail::limit_stage, detail::permits_t<G>>(
      detail::permits_from(std::forward<G>(g)));
}

namespace detail {

template <class G, any_pipeline P>
struct wrapped<G, P> {
  static auto make(G& g, P stream) { return std::move(stream) | weir::limit(g); }
};

}  // namespace detail

// ------------------------------------------------------------------ sinks with a governor

}  // namespace weir

#include <weir/detail/flow/governed_sink.hpp>

namespace weir {

template <detail::permits G>
auto to_vector(G&& g) {
  return detail::with_permits<detail::map_async_stage>(std::forward<G>(g), detail::pass_on{},
                                                       to_vector());
}
template <class F, detail::permits G>
auto for_each(F fn, G&& g) {
  return detail::with_permits<detail::map_unordered_stage>(std::forward<G>(g), std::move(fn),
                                                           for_each(detail::drop_result{}));
}
template <class F, detail::permits G>
auto any_of(F fn, G&& g) {
  return detail::with_permits<detail::map_unordered_stage>(std::forward<G>(g), std::move(fn),
                                                           any_of(detail::is_true{}));
}
template <class F, detail::permits G>
auto all_of(F fn, G&& g) {
  return detail::with_permits<detail::map_unordered_stage>(std::forward<G>(g), std::move(fn),
                                                           all_of(detail::is_true{}));
}
template <class F, detail::permits G>
auto none_of(F fn, G&& g) {
  return detail::with_permits<detail::map_unordered_stage>(std::forward<G>(g), std::move(fn),
                                                           none_of(detail::is_true{}));
}
/// The first match in source order.
template <class F, detail::permits G>
auto find(F fn, G&& g) {
  return detail::with_permits<detail::map_async_stage>(
      std::forward<G>(g), detail::keep_if<F>{std::move(fn)}, detail::sink_op<detail::found_sink>());
}
/// The reducer itself stays sequential and in order; pulls run ahead of it.
template <class A, class F, detail::permits G>
auto fold(A init, F fn, G&& g) {
  return detail::with_permits<detail::map_async_stage>(std::forward<G>(g), detail::pass_on{},
                                                       fold(std::move(init), std::move(fn)));
}
template <class F, detail::permits G>
auto reduce(F fn, G&& g) {
  return detail::with_permits<detail::map_async_stage>(std::forward<G>(g), detail::pass_on{},
                                                       reduce(std::move(fn)));
}
template <detail::permits G>
auto first(G&& g) {
  return detail::with_permits<detail::map_async_stage>(std::forward<G>(g), detail::pass_on{},
                                                       first());
}
template <detail::permits G>
auto last(G&& g) {
  return detail::with_permits<detail::map_async_stage>(std::forward<G>(g), detail::pass_on{},
                                                       last());
}
template <detail::permits G>
auto count(G&& g) {
  return detail::with_permits<detail::map_async_stage>(std::forward<G>(g), detail::pass_on{},
                                                       count());
}

}  // namespace weir
