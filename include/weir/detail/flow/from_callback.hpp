// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/from_callback.hpp>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/overflow.hpp>

namespace weir {

template <class T>
class emitter;

namespace detail {

/// Wakes one loop from any thread; at most one message is in flight.
class doorbell {
 public:
  doorbell();
  doorbell(const doorbell&) = delete;
  doorbell& operator=(const doorbell&) = delete;
  ~doorbell();

  /// Any thread.
  void wake() noexcept;
  /// On the loop: the next `wake` notifies `owner`. Check for items after this call, not before.
  void wait_for(composite& owner) noexcept;
  unsigned withdraw_all() noexcept;

 private:
  struct shared;
  std::shared_ptr<shared> shared_;
};

/// Locks without <mutex> in a public header.
class small_lock {
 public:
  small_lock();
  small_lock(const small_lock&) = delete;
  small_lock& operator=(const small_lock&) = delete;
  ~small_lock();
  void lock() noexcept;
  void unlock() noexcept;

 private:
  struct body;
  std::unique_ptr<body> body_;
};

class locked {
 public:
  explicit locked(small_lock& l) noexcept : lock_(l) { lock_.lock(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
  ~locked() { lock_.unlock(); }

 private:
  small_lock& lock_;
};

void describe_callback(dump_line& line);
void emit_callback_dropped(std::uint64_t count) noexcept;
std::int64_t require_callback_options(std::int64_t capacity, overflow policy);

/// The state shared by the emitters, on any thread, and the stream.
template <class T>
class callback_core {
 public:
  callback_core(std::int64_t capacity, overflow policy)
      : capacity_(static_cast<std::size_t>(capacity)), policy_(policy) {}

  // Items are constructed and destroyed outside the lock, because they may use the emitter.
  bool emit(T&& value) {
    auto item = std::make_unique<boxed>(std::move(value));
    items dropped;
    {
      const locked guard(lock_);
      if (closed_) return false;
      if (items_.size() == capacity_) {
        ++dropped_;
        if (policy_ == overflow::reject || policy_ == overflow::drop_newest) return false;
        if (policy_ == overflow::conflate) {
          dropped_ += items_.size() - 1;
          dropped = std::move(items_);
        } else {
          dropped.push_back(items_.take_front());
        }
      }
      items_.push_back(std::move(item));
    }
    bell.wake();
    return true;
  }
  void end(std::exception_ptr error) noexcept {
    {
      const locked guard(lock_);
      if (closed_) return;
      closed_ = true;
      error_ = std::move(error);
    }
    bell.wake();
  }
  /// The stream ends: destroys its items. Emitters may outlive it.
  void discard() noexcept {
    end(nullptr);
    items old;
    const locked guard(lock_);
    old = std::move(items_);
  }
  pull take(std::optional<T>& out) {
    std::uint64_t dropped = 0;
    pull answer = pull::pending;
    std::unique_ptr<boxed> first;
    std::exception_ptr error;
    {
      const locked guard(lock_);
      dropped = std::exchange(dropped_, 0);
      if (!items_.empty()) {
        first = items_.take_front();
        answer = pull::value;
      } else if (closed_) {
        error = std::exchange(error_, nullptr);
        answer = pull::end;
      }
    }
    if (first != nullptr) out.emplace(std::move(first->value));
    if (dropped > 0) emit_callback_dropped(dropped);
    if (error != nullptr) std::rethrow_exception(error);
    return answer;
  }
  doorbell bell;

 private:
  struct boxed : frame_allocated {
    explicit boxed(T&& v) : value(std::move(v)) {}
    T value;
  };
  using items = circular_buffer<std::unique_ptr<boxed>>;
  small_lock lock_;
  std::size_t capacity_;
  overflow policy_;
  items items_;
  std::uint64_t dropped_ = 0;
  std::exception_ptr error_;
  bool closed_ = false;
};

template <class T, class F>
class callback_stage {
  using stopper = std::invoke_result_t<F&, emitter<T>>;
  using kept_stopper = std::conditional_t<std::is_void_v<stopper>, char, stopper>;

 public:
  using value_type = T;
  static constexpr bool leaves_pending = false;
  callback_stage(std::shared_ptr<callback_core<T>> core, F start)
      : core_(std::move(core)), start_(std::move(start)) {}
  callback_stage(callback_stage&& other)
      : core_(std::move(other.core_)), start_(std::move(other.start_)) {}
  ~callback_stage() { stop(); }
  pull poll(std::optional<T>& out, composite& owner) {
    require_no_run("from_callback");
    if (!begun_) begin();
    pull answer = core_->take(out);
    if (answer != pull::pending) return answer;
    core_->bell.wait_for(owner);
    answer = core_->take(out);
    if (answer != pull::pending) core_->bell.withdraw_all();
    return answer;
  }
  unsigned withdraw_all() noexcept { return core_->bell.withdraw_all(); }
  void shut(closing&) { stop(); }
  void describe(dump_line& line) const { describe_callback(line); }

 private:
  void begin() {
    begun_ = true;
    if constexpr (std::is_void_v<stopper>) {
      start_(emitter<T>(core_));
    } else {
      stop_.emplace(start_(emitter<T>(core_)));
    }
  }
  void stop() noexcept {
    if (core_ == nullptr || !std::exchange(begun_, false)) return;
    if constexpr (!std::is_void_v<stopper>) {
      if (stop_) (*stop_)();
    }
    core_->discard();
  }
  std::shared_ptr<callback_core<T>> core_;
  F start_;
  std::optional<kept_stopper> stop_;
  bool begun_ = false;
};

}  // namespace detail
}  // namespace weir
