// SPDX-License-Identifier: MIT
// `blocking_range(stream)`: a stream that does not wait, as an input range for a `for` loop. It
// owns the stream and runs it on the calling thread, without a loop. It ends with the stream; an
// error of the stream is thrown by the loop's increment.
#pragma once

#include <utility>

#include <weir/detail/flow/blocking_range.hpp>
#include <weir/detail/flow/stream_op.hpp>

namespace weir {

/// A stream that never waits, as a range for `for` and std::ranges, without a loop. If the stream
/// has to wait: errc::would_deadlock.
template <detail::any_pipeline P>
auto blocking_range(P&& stream) {
  return detail::stream_range<detail::stage_of<P>>(detail::stage_from(std::forward<P>(stream)));
}

}  // namespace weir
