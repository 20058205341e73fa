// SPDX-License-Identifier: MIT
// Errors and cleanup of streams: catch_with, retry_stream, finally. A stage owns its source and the
// stream that replaces it after an error. It works inside the consumer's `next()`, on its loop;
// pauses between attempts are waits of that `next()`. The stream ends with the replacement, or with
// the error that is left when there are no more attempts.
#pragma once

#include <exception>
#include <utility>

#include <weir/detail/flow/stream_error.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/policy/retry.hpp>
#include <weir/policy/settle.hpp>
#include <weir/stream/join.hpp>

namespace weir {

/// After an error, continues with the stream that `fn(exception_ptr)` returns.
template <class F>
auto catch_with(F fn) {
  return detail::stage_op<detail::catch_with_stage, F>(std::move(fn));
}
/// The items of the stream that `fn()` returns; after an error `fn` is called again, as by
/// `retry(options)`. A delivered item resets the count of attempts, unless `.reset_on_item` is
/// false.
template <class F>
class [[nodiscard]] retry_stream : public pipeline<detail::retry_stage<F>> {
  using stage = detail::retry_stage<F>;

 public:
  explicit retry_stream(F fn, retry_options options = {})
      : pipeline<stage>(stage(std::move(fn), detail::stream_retry(options), {})) {}
  /// `retry_stream(fn, options).when(predicate)`: the predicate works as in `retry`.
  template <class P>
  auto when(P predicate) && {
    static_assert(std::is_invocable_r_v<retry_decision, P&, const std::exception_ptr&>,
                  "the predicate of retry_stream takes a const std::exception_ptr& and returns "
                  "bool or weir::retry_decision");
    return detail::make_pipeline(std::move(*this).release().with(std::move(predicate)));
  }
};

template <class F>
struct detail::stage_type<retry_stream<F>> {
  using type = retry_stage<F>;
};

/// `stream | finally(fn)`: `fn`, plain or a task, runs once when the stream ends, fails or is
/// closed, after everything upstream; not if nothing was ever pulled. A task is awaited by `next`,
/// `close` and sinks; if the stream is destroyed early without `close`, it does not run: event
/// `cleanup_skipped`.
template <detail::any_pipeline P, class F>
auto operator|(P&& source, finally<F> last) {
  return detail::make_pipeline(detail::finally_stage<detail::stage_of<P>, F>(
      detail::stage_from(std::forward<P>(source)), std::move(last).release()));
}

}  // namespace weir
