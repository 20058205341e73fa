// SPDX-License-Identifier: MIT
// Stream sinks: to_vector, for_each, any_of, all_of, none_of, find, reduce, fold, first, last,
// count. `stream | sink` is an operation: it owns the stream, pulls it to its end in the fiber that
// awaits it, and returns the result. Callbacks return a value or a task. A sink that needs no more
// items closes the stream; an error of the stream or of a callback is thrown after it was closed.
#pragma once

#include <utility>
#include <vector>

#include <weir/detail/core/arms.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/detail/flow/stream_sink.hpp>
#include <weir/policy/settle.hpp>
#include <weir/stream/transform.hpp>

namespace weir {

/// All items, in order.
inline auto to_vector() { return detail::sink_op<detail::to_vector_sink>(); }
/// Calls `fn` with each item.
template <class F>
auto for_each(F fn) {
  return detail::sink_op<detail::for_each_sink, F>(std::move(fn));
}
/// Whether `fn` is true for some item; ends at the first one.
template <class F>
auto any_of(F fn) {
  return detail::sink_op<detail::any_of_sink, F>(std::move(fn));
}
/// Whether `fn` is true for all items; ends at the first for which it is not.
template <class F>
auto all_of(F fn) {
  return detail::sink_op<detail::all_of_sink, F>(std::move(fn));
}
/// Whether `fn` is true for no item.
template <class F>
auto none_of(F fn) {
  return detail::sink_op<detail::none_of_sink, F>(std::move(fn));
}
/// The first item for which `fn` is true, if any.
template <class F>
auto find(F fn) {
  return detail::sink_op<detail::find_sink, F>(std::move(fn));
}
/// fn(...fn(fn(init, first), second)..., last).
template <class A, class F>
auto fold(A init, F fn) {
  return detail::sink_op<detail::fold_sink, A, F>(std::move(init), std::move(fn));
}
/// The same, beginning with the first item; empty without items.
template <class F>
auto reduce(F fn) {
  return detail::sink_op<detail::reduce_sink, F>(std::move(fn));
}
/// The first item, if any; pulls no other.
inline auto first() { return detail::sink_op<detail::first_sink>(); }
/// The last item, if any.
inline auto last() { return detail::sink_op<detail::last_sink>(); }
/// How many items there are.
inline auto count() { return detail::sink_op<detail::count_sink>(); }

}  // namespace weir
