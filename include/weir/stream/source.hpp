// SPDX-License-Identifier: MIT
// Stream sources: from, iota, unfold, once, empty, never, interval, defer_stream, lines. A source
// owns its values or its function; one made from an lvalue refers to that, which must outlive it.
// It is pulled on the loop of its consumer and does nothing before the first pull. It ends after
// its last value; `iota` without a bound, `interval` and `never` have none.
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/channel.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/detail/flow/stream_source.hpp>
#include <weir/queue.hpp>
#include <weir/time.hpp>

namespace weir {

/// The elements of a range. An rvalue range is kept and its elements are moved out; an lvalue must
/// outlive the stream.
template <class Range>
  requires(detail::iterable<Range> && !detail::any_pipeline<Range>)
auto from(Range&& range) {
  using kept =
      std::conditional_t<std::is_lvalue_reference_v<Range>, Range, std::remove_cv_t<Range>>;
  return detail::make_pipeline(detail::range_stage<kept>(std::forward<Range>(range)));
}
/// The values of the queue, until it ends. Ending the stream early does not close the queue, which
/// must outlive the stream.
template <class T>
auto from(queue<T>& q) {
  return detail::make_pipeline(detail::wait_stage<T, detail::next_wait<T>>({&q}));
}
template <class T>
auto queue<T>::stream() & {
  return from(*this);
}
template <class T>
auto receiver<T>::stream() & {
  require();
  return detail::make_pipeline(detail::wait_stage<T, detail::receive_wait<T>>({state_}));
}
template <class T>
auto receiver<T>::stream() && {
  require();
  const typename detail::receive_wait<T>::args from{state_};
  return detail::make_pipeline(
      detail::owning_wait_stage<T, detail::receive_wait<T>, receiver>(std::move(*this), from));
}
/// first, first + 1, ... without end.
template <class T>
auto iota(T first) {
  return detail::make_pipeline(detail::iota_stage<T>(std::move(first), std::nullopt));
}
/// first, first + 1, ... before `end`.
template <class T, class U>
auto iota(T first, U end) {
  return detail::make_pipeline(detail::iota_stage<T>(std::move(first), T(std::move(end))));
}
/// `fn(state)` returns an item and the next state, or nothing at the end.
template <class State, class F>
auto unfold(State seed, F fn) {
  return detail::make_pipeline(detail::unfold_stage<State, F>(std::move(seed), std::move(fn)));
}
/// One item.
template <class T>
auto once(T value) {
  return detail::make_pipeline(detail::once_stage<T>(std::move(value)));
}
/// No item.
template <class T>
auto empty() {
  return detail::make_pipeline(detail::once_stage<T>(std::nullopt));
}
/// No item and no end; cancellable.
template <class T>
auto never() {
  return detail::make_pipeline(detail::never_stage<T>());
}
/// 0, 1, 2, ...: the first `every` after the first pull, then on that grid. Ticks that were not
/// pulled in time are skipped: their numbers are left out, and the event `interval_skipped` counts
/// them. Not positive: errc::invalid_argument.
template <class Rep, class Period>
auto interval(std::chrono::duration<Rep, Period> every) {
  return detail::make_pipeline(detail::interval_stage(detail::saturating_cast(every)));
}
/// The stream that `fn` returns, called at the first pull.
template <class F>
auto defer_stream(F fn) {
  return detail::make_pipeline(detail::defer_stage<F>(std::move(fn)));
}
/// The lines of `in`, without line ends. Reading blocks the loop: use it for files and string
/// streams.
inline auto lines(std::istream& in) { return detail::make_pipeline(detail::lines_stage(in)); }

}  // namespace weir
