// SPDX-License-Identifier: MIT
// `from_callback`: the items that foreign callbacks emit, as a stream. The stream and its emitters
// share a bounded buffer; the last of them frees it. Emitters work on any thread and do not block;
// the stream is pulled on its home loop, which an item wakes. It ends when an emitter closes or
// fails it, after the items before; if it is closed or destroyed early, the stop function is called
// and later items are refused.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/from_callback.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/overflow.hpp>

namespace weir {

/// Puts items into a `from_callback` stream. Copyable; usable on any thread, also after the stream
/// was destroyed.
template <class T>
class emitter {
 public:
  explicit emitter(std::shared_ptr<detail::callback_core<T>> core) noexcept
      : core_(std::move(core)) {}
  /// Returns whether the item was kept; does not wait for room.
  bool emit(T value) const { return !detail::crashing && reach().emit(std::move(value)); }
  /// Ends the stream after the items emitted so far.
  void close() const { reach().end(nullptr); }
  /// The same, with an error.
  void fail(std::exception_ptr error) const { reach().end(std::move(error)); }

 private:
  detail::callback_core<T>& reach() const {
    detail::require_no_run("emitter");
    return *core_;
  }
  std::shared_ptr<detail::callback_core<T>> core_;
};

/// A stream of the items that callbacks emit on any thread. `start(emitter<T>)` is called at the
/// first pull and may return a stop function, which is called when the stream ends. Up to
/// `capacity` items wait for the consumer; then `policy` decides: reject, drop_oldest, drop_newest
/// or conflate (another, or a capacity below 1: errc::invalid_argument). The event `dropped`
/// counts. In a durable run, outside of steps: errc::not_journaled.
template <class T, class F>
auto from_callback(std::int64_t capacity, overflow policy, F start) {
  auto core = std::make_shared<detail::callback_core<T>>(
      detail::require_callback_options(capacity, policy), policy);
  return detail::make_pipeline(detail::callback_stage<T, F>(std::move(core), std::move(start)));
}

}  // namespace weir
