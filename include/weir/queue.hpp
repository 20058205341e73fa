// SPDX-License-Identifier: MIT
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

namespace detail {

/// The type-independent part of a queue.
///
/// Invariants:
/// 1. A wait is in `consumers` only if the queue is empty and open and `producers` is empty.
/// 2. A wait is in `producers` only if the queue is open and holds `capacity` values or more (more
///    only if values were returned, see queue).
/// 3. A value goes directly to the longest waiter: a woken consumer has its value, a woken producer
///    has delivered.
class queue_base {
 public:
  queue_base(std::int64_t capacity, const queue_options& options);
  queue_base(const queue_base&) = delete;
  queue_base& operator=(const queue_base&) = delete;

 protected:
  ~queue_base();
  void check() {
    if (!home_.is_here()) [[unlikely]]
      settle_home();
  }
  object_name self() const noexcept { return {"queue", name_.view()}; }
  bool is_full(std::size_t size) const noexcept {
    return static_cast<std::int64_t>(size) >= capacity_;
  }
  [[noreturn]] void raise_closed() const;
  void require_error(const std::exception_ptr& error) const;
  void describe(dump_line& line, const char* what, std::size_t size) const;

  std::int64_t capacity_;
  wait_list consumers_;
  wait_list producers_;
  home home_;
  bool closed_ = false;
  std::exception_ptr error_;  // for the first `next` after the buffered values
  kept_name name_;

 private:
  void settle_home();
};

/// False while a crash destroys frames: values in them are destroyed, not returned.
bool values_come_back() noexcept;

template <class T>
class next_wait : public simple_wait<next_wait<T>, linked_wait> {
 public:
  struct args {
    queue<T>* of;
  };
  using result = std::optional<T>;

  // Constructed where it is awaited, which may differ from where `next` was called.
  explicit next_wait(args&& a) : queue_(a.of) { queue_->check(); }
  ~next_wait() {
    if (value_.has_value()) [[unlikely]]
      queue_->put_back(*value_);
  }
  bool try_now() { return queue_->poll_next(*this); }
  void arm() noexcept {
    if (queue_->closed_ || queue_->size() != 0) [[unlikely]]
      return arm_late();
    queue_->consumers_.push_back(*this);
  }
  cancel_result withdraw() noexcept override {
    queue_->consumers_.remove(*this);
    return cancel_result::done;
  }
  bool in_line() const noexcept override { return true; }
  void describe(dump_line& line) const override {
    queue_->describe(line, "next of", queue_->size());
  }
  bool failed() const noexcept { return error_ != nullptr; }
  void poll_failed(std::exception_ptr e) noexcept { error_ = std::move(e); }
  std::optional<T> take() {
    if (error_ != nullptr) [[unlikely]]
      std::rethrow_exception(std::exchange(error_, nullptr));
    std::optional<T> taken(std::move(value_));
    value_.reset();
    return taken;
  }

 private:
  friend class queue<T>;
  void end(const std::exception_ptr& error) noexcept {
    error_ = error;
    this->complete();
  }
  /// Since the poll another arm of the same composite wait has done something to the queue.
  void arm_late() noexcept {
    try {
      queue_->poll_next(*this);
    } catch (...) {
      error_ = std::current_exception();
    }
    this->complete();
  }
  queue<T>* queue_;
  std::optional<T> value_;
  std::exception_ptr error_;
};

template <class T>
class push_wait : public simple_wait<push_wait<T>, linked_wait> {
 public:
  struct args {
    queue<T>* to;
    T value;
  };
  using result = void;

  explicit push_wait(args&& a) : queue_(a.to), value_(std::move(a.value)) { queue_->check(); }
  bool try_now() { return queue_->poll_push(*this); }
  void arm() noexcept {
    if (queue_->closed_ || !queue_->is_full(queue_->size())) [[unlikely]]
      return arm_late();
    queue_->producers_.push_back(*this);
  }
  cancel_result withdraw() noexcept override {
    queue_->producers_.remove(*this);
    return cancel_result::done;
  }
  bool in_line() const noexcept override { return true; }
  void describe(dump_line& line) const override {
    queue_->describe(line, "push to", queue_->size());
  }
  bool failed() const noexcept { return refused_ || error_ != nullptr; }
  void poll_failed(std::exception_ptr e) noexcept { error_ = std::move(e); }
  void take() {
    if (refused_) [[unlikely]]
      queue_->raise_closed();
    if (error_ != nullptr) [[unlikely]]
      std::rethrow_exception(error_);
  }

 private:
  friend class queue<T>;
  /// Since the poll another arm of the same composite wait has done something to the queue.
  void arm_late() noexcept {
    try {
      queue_->poll_push(*this);
    } catch (...) {
      error_ = std::current_exception();
    }
    this->complete();
  }
  queue<T>* queue_;
  T value_;
  bool refused_ = false;
  std::exception_ptr error_;  // its value could not be moved
};

}  // namespace detail

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
      consumers_.remove(first);
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
