// SPDX-License-Identifier: MIT
// Part of <weir/queue.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/item_wait.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>

namespace weir {

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
class next_wait : public item_wait<next_wait<T>, T> {
 public:
  struct args {
    queue<T>* of;
  };

  // Constructed where it is awaited, which may differ from where `next` was called.
  explicit next_wait(args&& a) : queue_(a.of) { queue_->check(); }
  ~next_wait() {
    if (this->value_.has_value()) [[unlikely]]
      queue_->put_back(*this->value_);
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
  void describe(dump_line& line) const override {
    queue_->describe(line, "next of", queue_->size());
  }

 private:
  friend class queue<T>;
  void end(const std::exception_ptr& error) noexcept {
    this->error_ = error;
    this->complete();
  }
  /// Since the poll another arm of the same composite wait has done something to the queue.
  void arm_late() noexcept {
    try {
      queue_->poll_next(*this);
    } catch (...) {
      this->error_ = std::current_exception();
    }
    this->complete();
  }
  queue<T>* queue_;
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
}  // namespace weir
