// SPDX-License-Identifier: MIT
// `channel<T>`: values from any thread to the fibers of one loop. `sender` is copyable and works on
// any thread and any loop; `receiver` belongs to the loop that created it, or else to the first
// that uses it. Both own the channel together, and it owns the values that were not received. It
// ends when a sender closes it or the last sender is destroyed: the values that are left still
// arrive. After the receiver is gone, sends are refused.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/detail/flow/channel_core.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>

namespace weir {

template <class T>
class sender;
template <class T>
class receiver;

/// The result of `try_send`: accepted, full, or closed. Equal to the error code that it converts
/// to: none, errc::queue_full, errc::queue_closed. It is not a bool, because a caller that retries
/// must tell "full" from "closed", which never has room again. `!result` is accepted().
class [[nodiscard]] send_result {
 public:
  bool accepted() const noexcept { return is_ == what::accepted; }
  /// There was no room; a retry may succeed.
  bool full() const noexcept { return is_ == what::full; }
  /// The channel is closed; no retry can succeed.
  bool closed() const noexcept { return is_ == what::closed; }
  bool operator!() const noexcept { return accepted(); }
  std::error_code code() const noexcept {
    if (accepted()) return {};
    return make_error_code(full() ? errc::queue_full : errc::queue_closed);
  }
  operator std::error_code() const noexcept { return code(); }
  friend bool operator==(send_result a, send_result b) noexcept = default;
  friend bool operator==(send_result a, const std::error_code& b) noexcept { return a.code() == b; }
  friend bool operator==(send_result a, errc b) noexcept { return a.code() == b; }

  template <std::same_as<bool> B>
  explicit operator B() const {
    static_assert(!std::same_as<B, bool>,
                  "the result of try_send is no bool: ask .accepted(), .full() or .closed(), or "
                  "compare it with weir::errc::queue_full or weir::errc::queue_closed");
    return false;
  }

 private:
  template <class T>
  friend class sender;
  enum class what : std::uint8_t { accepted, full, closed };
  explicit send_result(what is) noexcept : is_(is) {}
  what is_;
};

}  // namespace weir

#include <weir/detail/flow/channel.hpp>

namespace weir {

/// The sending end of a channel. Copyable; usable on any thread.
///
/// A channel ends when its last sender is destroyed or one of them closes it; buffered values still
/// arrive. A moved-from sender does not count, and sends nothing (errc::queue_closed).
template <class T>
class sender {
 public:
  sender() noexcept = default;
  sender(const sender& other) noexcept : state_(other.state_) {
    if (state_ != nullptr) state_->add_sender();
  }
  sender(sender&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  sender& operator=(sender other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~sender() {
    if (state_ != nullptr) state_->drop_sender();
  }

  /// Never waits. If the value is not accepted, `v` is untouched. Any thread. To retry while it is
  /// full: `while (tx.try_send(v).full()) ...`.
  send_result try_send(T&& v) const { return put(std::move(v)); }
  send_result try_send(const T& v) const
    requires std::is_copy_constructible_v<T>
  {
    return put(v);
  }
  /// Blocks the thread until there is room, behind all earlier waiters. On the thread of a running
  /// loop: errc::would_deadlock; use `co_await send(v)` there. errc::queue_closed, also while it
  /// waits.
  void send_blocking(T v) const { block(std::move(v), duration::max()); }
  /// The same, for at most `limit`; then it throws timeout_error and `v` is not sent.
  template <class Rep, class Period>
  void send_blocking(T v, std::chrono::duration<Rep, Period> limit) const {
    block(std::move(v), detail::saturating_cast(limit));
  }
  /// Waits for room, behind all earlier waiters; inside any loop. errc::queue_closed, also while it
  /// waits. The sender must live until the operation is started.
  [[nodiscard]] auto send(detail::awaited_argument<T> v) const {
    return detail::pending<detail::send_wait<T>>({state_, std::move(v)});
  }
  /// Closes the channel for all senders; buffered values still arrive.
  void close() const {
    if (!closed()) state_->end_sending();
  }
  bool closed() const {
    detail::require_no_run("channel");
    return state_ == nullptr || state_->is_closed();
  }

 private:
  template <class U>
  friend std::pair<sender<U>, receiver<U>> detail::make_channel(std::int64_t,
                                                                const channel_options&);
  explicit sender(detail::channel_state<T>& adopted) noexcept : state_(&adopted) {}
  template <class U>
  send_result put(U&& v) const {
    using room = detail::channel_core::room;
    const bool mute = state_ == nullptr || detail::crashing;
    const room answer = mute ? room::closed : state_->put(std::forward<U>(v));
    return send_result(answer == room::yes    ? send_result::what::accepted
                       : answer == room::full ? send_result::what::full
                                              : send_result::what::closed);
  }
  void block(T&& v, duration limit) const {
    detail::require_no_loop("send_blocking", "co_await send(v)");
    const send_result now = put(std::move(v));
    if (now.accepted()) return;
    if (now.closed()) detail::raise_send_closed(state_);
    detail::wait_for_room(
        *new detail::send_envelope_of<T>(*state_, detail::this_thread_t{}, std::move(v)), limit);
  }
  detail::channel_state<T>* state_ = nullptr;
};

/// The receiving end of a channel. Movable; bound to the loop that created it (created outside a
/// loop: to the first that uses it; elsewhere: errc::wrong_loop).
///
/// When it is destroyed, senders get errc::queue_closed and buffered values are destroyed.
/// Destroying it while fibers wait aborts with their names. Destructors of values may use it and
/// its senders.
template <class T>
class receiver {
 public:
  receiver() noexcept = default;
  receiver(receiver&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  receiver& operator=(receiver other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~receiver() {
    if (state_ != nullptr) state_->drop_receiver();
  }

  /// Waits for a value; empty when the channel has ended and no value is left. Several fibers may
  /// wait; they are served in order.
  [[nodiscard]] auto next() {
    require();
    return detail::pending<detail::receive_wait<T>>({state_});
  }
  /// A value that `next` would return without waiting, if there is one.
  [[nodiscard]] std::optional<T> try_next() {
    require();
    detail::receive_wait<T> now({state_});
    if (!now.try_now()) return std::nullopt;
    return now.take();
  }
  /// The values of `next` as a stream. The receiver must outlive it; a temporary one is moved into
  /// the stream. In weir/stream/source.hpp.
  [[nodiscard]] auto stream() &;
  [[nodiscard]] auto stream() &&;
  /// Closes the channel; buffered values can still be taken.
  void close() {
    require();
    state_->end_sending();
  }

 private:
  template <class U>
  friend std::pair<sender<U>, receiver<U>> detail::make_channel(std::int64_t,
                                                                const channel_options&);
  explicit receiver(detail::channel_state<T>& adopted) noexcept : state_(&adopted) {}
  void require() const {
    if (state_ == nullptr || !state_->is_home()) [[unlikely]]
      detail::require_receiver(state_);
  }
  detail::channel_state<T>* state_ = nullptr;
};

template <class T>
std::pair<sender<T>, receiver<T>> detail::make_channel(std::int64_t capacity,
                                                       const channel_options& options) {
  auto* state = new channel_state<T>(capacity, options);
  return {sender<T>(*state), receiver<T>(*state)};
}

/// A queue across threads: any number of senders on any threads, one receiver on one loop. Holds at
/// most `capacity` values, 1 or more (else errc::invalid_argument). Values of one sender arrive in
/// order; waiting senders are served first come, first served.
///
/// Costs: the buffer is allocated at once. A send or a receive is a few atomic operations; a
/// message between loops is sent only when the other side waits. In a durable run, outside of
/// steps: errc::not_journaled.
template <class T>
std::pair<sender<T>, receiver<T>> channel(std::int64_t capacity, channel_options options = {}) {
  static_assert(std::is_object_v<T> && std::is_move_constructible_v<T>,
                "weir::channel<T>: T is moved through the channel");
  return detail::make_channel<T>(capacity, options);
}

}  // namespace weir
