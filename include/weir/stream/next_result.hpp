// SPDX-License-Identifier: MIT
// The result of next_for: an item, the end of the stream, or a timeout. It owns its item and refers
// to nothing, so it may be moved and kept. A pull that timed out has not ended the stream: the next
// pull continues it.
#pragma once

#include <optional>
#include <utility>

#include <weir/policy/deadline.hpp>
#include <weir/stream/stream.hpp>

namespace weir {

/// The result of `co_await st.next_for(d)`: exactly one of item(), ended() and timed_out().
template <class T>
class [[nodiscard]] next_result {
 public:
  /// The item; empty if there is none.
  const std::optional<T>& item() const& noexcept { return item_; }
  std::optional<T>& item() & noexcept { return item_; }
  std::optional<T>&& item() && noexcept { return std::move(item_); }
  /// The stream has ended: there are no further items.
  bool ended() const noexcept { return !item_ && !timed_out_; }
  /// No item arrived in time; the next pull continues the stream.
  bool timed_out() const noexcept { return timed_out_; }

 private:
  template <class S>
  friend class detail::next_for_wait;
  next_result(std::optional<T>&& item, bool timed_out)
      : item_(std::move(item)), timed_out_(timed_out) {}
  std::optional<T> item_;
  bool timed_out_;
};

}  // namespace weir

#include <weir/detail/flow/next_result.hpp>

namespace weir {

template <class S>
template <class Rep, class Period>
auto pipeline<S>::next_for(std::chrono::duration<Rep, Period> d) {
  return detail::pending<detail::next_for_wait<S>>(
      {{this}, {detail::saturating_cast(d), {}, false}});
}

}  // namespace weir
