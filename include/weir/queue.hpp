// SPDX-License-Identifier: MIT
// `queue<T>`: values between fibers of one loop, first in, first out. The queue owns the values
// that no consumer has taken; producers wait while it is full, consumers while it is empty. Home
// loop, without locks; for several threads use a channel. `close()` ends it: consumers get the
// values that are left and then the end, or the error given to `fail()`; later pushes fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>

namespace weir {

struct queue_options {
  weir::name name{};
};

template <class T>
class queue;

}  // namespace weir

#include <weir/detail/flow/queue.hpp>

namespace weir {

/// A FIFO queue between any number of producers and consumers of one loop. Each value goes to one
/// consumer.
///
/// Holds at most `capacity` values (`weir::unbounded`: any number; 0: every push waits for a next).
/// Waiting is fair on both sides and hands over directly. A consumer or producer that is cancelled
/// or loses a race leaves without effect; a value that was handed to a consumer and not taken
/// returns to the front, even if the queue then exceeds its capacity. Destructors of values may use
/// the queue.
///
/// Threads: home loop only (errc::wrong_loop); across threads use a channel. Destroying it while
/// fibers wait aborts with their names. Costs: allocates only the buffer, which grows by doubling.
template <class T>
class queue : private detail::queue_base {
  static_assert(std::is_object_v<T> && std::is_move_constructible_v<T>,
                "weir::queue<T>: T is moved through the queue");

 public:
  /// Negative capacity: errc::invalid_argument.
  explicit queue(std::int64_t capacity, queue_options options = {})
      : queue_base(capacity, options) {}
  ~queue() {
    closed_ = discarded_ = true;  // for the destructors of the remaining values
  }

  /// Empty if accepted, else errc::queue_full or queue_closed, and `v` is untouched.
  [[nodiscard]] std::error_code try_push(T&& v) { return try_put(std::move(v)); }
  [[nodiscard]] std::error_code try_push(const T& v)
    requires std::is_copy_constructible_v<T>
  {
    return try_put(v);
  }
  /// Waits for room, behind all earlier waiters. errc::queue_closed, also while it waits.
  [[nodiscard]] auto push(detail::awaited_argument<T> v) {
    check();
    return detail::pending<detail::push_wait<T>>({this, std::move(v)});
  }
  /// Waits for a value; empty if the queue is closed and no value is left. After fail(e): throws
  /// `e` once, then empty.
  [[nodiscard]] auto next() {
    check();
    return detail::pending<detail::next_wait<T>>({this});
  }
  /// A value that `next` would return without waiting, if there is one.
  [[nodiscard]] std::optional<T> try_next() {
    check();
    detail::next_wait<T> now({this});
    if (!now.try_now()) return std::nullopt;
    return now.take();
  }

  /// Accepts no more values: buffered values still arrive, waiting pushes are refused.
  void close() { end(nullptr); }
  /// As close, and destroys the buffered values.
  void discard() {
    end(nullptr);
    discarded_ = true;
    values_.clear();
  }
  /// As close, with an error for every `next` that waits now; if none does, for the first one after
  /// the buffered values. Null: errc::invalid_argument.
  void fail(std::exception_ptr error) {
    require_error(error);
    end(error);
  }

  /// The values of `next` as a stream; the queue must outlive it. In weir/stream/source.hpp.
  [[nodiscard]] auto stream() &;
  template <class U = T>
  auto stream() && {
    static_assert(!std::is_same_v<T, U>,
                  "stream() of a temporary weir::queue: the stream refers to the queue, which must "
                  "outlive it; give the queue a name");
  }

  std::size_t size() const noexcept { return values_.size(); }
  std::int64_t capacity() const noexcept { return capacity_; }
  bool closed() const noexcept { return closed_; }
  std::string_view name() const noexcept { return name_.view(); }

 private:
  friend class detail::next_wait<T>;
  friend class detail::push_wait<T>;
  using next_wait = detail::next_wait<T>;
  using push_wait = detail::push_wait<T>;

  template <class U>
  std::error_code try_put(U&& v) {
    check();
    if (closed_) return make_error_code(errc::queue_closed);
    if (!put(std::forward<U>(v))) return make_error_code(errc::queue_full);
    return {};
  }
  /// Hands a value to a waiting consumer, or buffers it; false: no room.
  template <class U>
  bool put(U&& v) {
    if (!consumers_.empty()) {
      auto& first = static_cast<next_wait&>(*consumers_.first());
      first.value_.emplace(std::forward<U>(v));
      consumers_.pop_front();
      first.complete();
      return true;
    }
    if (is_full(values_.size())) return false;
    values_.push_back(std::forward<U>(v));
    return true;
  }
  bool poll_push(push_wait& w) {
    w.refused_ = closed_;
    return closed_ || put(std::move(w.value_));
  }
  bool poll_next(next_wait& w) {
    if (values_.empty() && producers_.empty() && !closed_) return false;
    return poll_slowly(w);
  }
  // Not inlined: then the common case above is, into the awaiting coroutine.
  [[gnu::noinline]] bool poll_slowly(next_wait& w) {
    if (values_.empty()) return poll_empty(w);
    w.value_.emplace(std::move(values_.front()));
    values_.pop_front();
    if (!producers_.empty()) refill();
    return true;
  }
  bool poll_empty(next_wait& w) {
    if (!producers_.empty()) {  // only if the capacity is 0
      auto& first = static_cast<push_wait&>(*producers_.first());
      w.value_.emplace(std::move(first.value_));
      delivered(first);
      return true;
    }
    if (closed_) w.error_ = std::exchange(error_, nullptr);
    return closed_;
  }
  void refill() noexcept {
    while (!producers_.empty() && !is_full(values_.size())) {
      std::exception_ptr problem;
      try {
        if (values_.make_room()) continue;  // destructors have run: look again
        values_.push_back(std::move(first_producer().value_));
      } catch (...) {
        problem = std::current_exception();
      }
      if (producers_.empty()) return;
      first_producer().error_ = problem;
      delivered(first_producer());
    }
  }
  push_wait& first_producer() noexcept { return static_cast<push_wait&>(*producers_.first()); }
  void delivered(push_wait& w) noexcept {
    producers_.remove(w);
    w.complete();
  }
  void put_back(T& v) noexcept {
    if (discarded_ || !detail::values_come_back()) return;
    if (!consumers_.empty()) {
      put(std::move(v));
    } else {
      values_.push_front(std::move(v));
    }
  }
  void end(const std::exception_ptr& error) {
    check();
    if (std::exchange(closed_, true)) return;
    if (consumers_.empty()) error_ = error;
    while (!consumers_.empty()) {
      auto& first = static_cast<next_wait&>(*consumers_.first());
      consumers_.remove(first);
      first.end(error);
    }
    while (!producers_.empty()) {
      auto& first = static_cast<push_wait&>(*producers_.first());
      first.refused_ = true;
      delivered(first);
    }
  }

  detail::circular_buffer<T> values_;
  bool discarded_ = false;
};

}  // namespace weir
