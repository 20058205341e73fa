// SPDX-License-Identifier: MIT
#include <weir/stream/from_callback.hpp>

#include <atomic>
#include <mutex>
#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/error.hpp>
#include <weir/stream/share.hpp>

#include "core/loop.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ doorbell

/// It is also the message. Only the caller that clears `waiting` posts it, so at most one is in
/// flight.
struct doorbell::shared final : message {
  void deliver(loop&) noexcept override {
    const std::shared_ptr<shared> keep = std::move(self);
    notify();
  }
  void refuse() noexcept override { self.reset(); }
  void notify() noexcept {
    due = false;
    if (link.state != arm_link::phase::armed) return;
    answer.settle();
    link.owner->arm_completed(link);
  }

  std::atomic<bool> waiting{false};
  door_ref home;                 // written before `waiting` is set
  std::shared_ptr<shared> self;  // set while the message is in flight
  // Used on the home loop only.
  bool due = false;  // a wake-up or its message is expected
  answer_due answer;
  arm_link link;
};

doorbell::doorbell() : shared_(std::make_shared<shared>()) {}

doorbell::~doorbell() = default;

void doorbell::wake() noexcept {
  shared& s = *shared_;
  if (!s.waiting.load(std::memory_order_seq_cst)) return;
  if (!s.waiting.exchange(false, std::memory_order_seq_cst)) return;
  loop* const here = loop::here();
  if (here != nullptr && here->serial() == s.home->serial()) return s.notify();
  const door_ref there = s.home;
  s.self = shared_;
  there->post(s);
}

void doorbell::wait_for(composite& owner) noexcept {
  shared& s = *shared_;
  loop& here = *loop::here();
  s.answer.expect(here);
  s.link.owner = &owner;
  s.link.state = arm_link::phase::armed;
  if (s.due) return;
  s.due = true;
  s.home = here.shared_door();
  s.waiting.store(true, std::memory_order_seq_cst);
}

unsigned doorbell::withdraw_all() noexcept {
  shared& s = *shared_;
  s.answer.settle();
  s.link.state = arm_link::phase::idle;
  if (s.due && s.waiting.exchange(false, std::memory_order_seq_cst)) s.due = false;
  return 0;
}

// ------------------------------------------------------------------ locks, checks and errors

struct small_lock::body {
  std::mutex mutex;
};
small_lock::small_lock() : body_(std::make_unique<body>()) {}
small_lock::~small_lock() = default;
void small_lock::lock() noexcept { body_->mutex.lock(); }
void small_lock::unlock() noexcept { body_->mutex.unlock(); }

void emit_callback_dropped(std::uint64_t count) noexcept {
  loop::here()->emit("dropped", "from_callback", count);
}

std::int64_t require_callback_options(std::int64_t capacity, overflow policy) {
  require_no_run("from_callback");
  if (policy != overflow::reject && policy != overflow::drop_oldest &&
      policy != overflow::drop_newest && policy != overflow::conflate)
    raise_overflow("from_callback", policy, "reject, drop_oldest, drop_newest or conflate");
  if (capacity < 1)
    raise(errc::invalid_argument,
          "from_callback: a capacity of " + std::to_string(capacity) + "; give 1 or more");
  return capacity;
}

void describe_callback(dump_line& line) { line.add("a callback"); }

std::exception_ptr share_interrupted() noexcept {
  if (in_dead_world()) return nullptr;
  try {
    raise(errc::stream_interrupted,
          "share: the source was closed before its end, because the scope of the share has ended");
  } catch (...) {
    return std::current_exception();
  }
}

void require_share_options(const share_options& options) {
  if (options.start != when::first_subscriber && options.start != when::now)
    raise(errc::invalid_argument, "share: start is when::first_subscriber or when::now");
  if (options.stop != when::no_subscribers && options.stop != when::never)
    raise(errc::invalid_argument, "share: stop is when::no_subscribers or when::never");
  require_subscribe_options({.overflow = options.overflow, .replay = options.replay});
}

}  // namespace weir::detail
