// SPDX-License-Identifier: MIT
// Waiters of a shared governor, and how they are notified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir/detail/core/reply.hpp>
#include <weir/governor/shared.hpp>
#include <weir/name.hpp>

#include "core/door.hpp"

namespace weir::detail {

/// A waiter's place in the queue, then the message that notifies its loop.
class shared_request final : public reply_to<shared_wait>, public frame_allocated {
 public:
  explicit shared_request(std::int64_t units) noexcept : weight(units) {}
  void dispose() noexcept override { delete this; }

  const std::int64_t weight;

  // Guarded by the queue's lock.
  bool queued = false;
  shared_wait::fate how = shared_wait::fate::waiting;
  shared_request* previous = nullptr;
  shared_request* next = nullptr;  // in the queue, or in the list of requests to answer
};

/// Requests in order.
struct shared_request_list {
  void push_back(shared_request& r) noexcept;
  void remove(shared_request& r) noexcept;
  shared_request* first = nullptr;
  shared_request* last = nullptr;
};

/// The slow path of a shared governor: everything that needs the lock.
class shared_queue {
 public:
  using fate = shared_wait::fate;
  shared_queue(shared_governor& of, std::int64_t capacity, const governor_options& options);
  shared_queue(const shared_queue&) = delete;
  shared_queue& operator=(const shared_queue&) = delete;

  /// Aborts if units are out or a request waits.
  void require_unused() const;
  void enter(shared_wait& w);
  void leave(shared_request& r) noexcept;
  /// Units have come back; `free_then` is how many were free at that moment.
  void settle(std::int64_t free_then) noexcept;
  void resize(std::int64_t capacity);
  void close() noexcept;
  void add_listener(std::unique_ptr<idle_listener> listener);

  std::int64_t capacity() const;
  std::int64_t active() const;
  std::int64_t waiting() const;
  std::int64_t max_waiting() const noexcept { return max_waiting_; }
  object_name self() const noexcept { return {"governor", name_.view()}; }

 private:
  /// A snapshot of the listeners; may outlive the governor.
  struct listener_list {
    std::string governor;
    std::vector<std::shared_ptr<idle_listener>> all;
    void notify() const noexcept;
  };
  using listeners_ref = std::shared_ptr<const listener_list>;

  /// Work to do after the lock is released. None of it touches the governor.
  struct to_do {
    shared_request_list answered;
    listeners_ref idle;
    void run() noexcept;
  };

  void require_capacity(std::int64_t capacity) const;
  std::int64_t free() const noexcept;
  void grant(to_do& later) noexcept;
  void answer_first(fate how, to_do& later) noexcept;
  void unlink(shared_request& r) noexcept;
  void note_empty() noexcept;
  void note_idle(to_do& later) const noexcept;

  shared_governor& of_;
  mutable std::mutex mutex_;
  std::int64_t capacity_;
  std::int64_t waiting_ = 0;
  std::int64_t requests_ = 0;
  const std::int64_t max_waiting_;
  shared_request_list requests_in_order_;
  listeners_ref listeners_;
  const kept_name name_;
};

}  // namespace weir::detail
