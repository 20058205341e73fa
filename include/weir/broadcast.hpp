// SPDX-License-Identifier: MIT
// Hot streams: `broadcast` delivers each item to every subscriber, `replay` also the last items to
// new ones, and `state` is one value that can be observed. Broadcast and subscriptions own the
// items together; an item is freed when no subscriber needs it. All are used on one loop, without
// locks. `close()` or the destructor ends it: each subscriber gets the items that are left and then
// the end, or the error given to `fail()`. A subscription may outlive its broadcast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/detail/flow/cell.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/gate.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/overflow.hpp>
#include <weir/stream/source.hpp>

namespace weir {

template <class T>
class broadcast;
template <class T>
class subscription;

/// The result of try_emit.
enum class emit_result : std::uint8_t {
  delivered,  ///< buffered for every subscriber
  dropped,    ///< a subscriber missed it, or an older item
  refused,    ///< a `wait` or `fail_emitter` subscriber has no room; no subscriber got it
};

struct subscribe_options {
  weir::overflow overflow = weir::overflow::wait;
  std::int64_t replay = 0;  ///< starts this many items back, if they are still kept
};

}  // namespace weir

#include <weir/detail/flow/broadcast.hpp>

namespace weir {

/// A subscription to a broadcast. Movable; destroying it unsubscribes at once. Destroying it while
/// a fiber waits for an item aborts.
template <class T>
class subscription {
 public:
  subscription(subscription&&) noexcept = default;
  subscription& operator=(subscription&&) noexcept = default;

  /// The next item; empty after close() and the buffered items. After fail(e): throws `e` there,
  /// once. errc::lagged for a `disconnect` subscriber that was too slow. One reader at a time
  /// (errc::stream_busy): each consumer needs its own subscription.
  [[nodiscard]] auto next() {
    self_->core->check();
    return detail::pending<detail::subscription_wait<T>>({self_.get()});
  }
  /// How many items were dropped right before the last one returned.
  std::uint64_t missed() const noexcept { return self_->missed; }
  /// How many items were dropped in total.
  std::uint64_t missed_total() const noexcept { return self_->core->missed_total(*self_); }
  /// The items of `next` as a stream. The subscription must outlive it; a temporary one is moved
  /// into the stream.
  [[nodiscard]] auto stream() & {
    return detail::make_pipeline(
        detail::wait_stage<T, detail::subscription_wait<T>>({self_.get()}));
  }
  [[nodiscard]] auto stream() && {
    const typename detail::subscription_wait<T>::args from{self_.get()};
    return detail::make_pipeline(
        detail::owning_wait_stage<T, detail::subscription_wait<T>, subscription>(std::move(*this),
                                                                                 from));
  }

 private:
  friend class broadcast<T>;
  explicit subscription(std::unique_ptr<detail::subscriber<T>> made) noexcept
      : self_(std::move(made)) {}
  std::unique_ptr<detail::subscriber<T>> self_;
};

/// One producer side, any number of subscribers; each sees every item from its subscription on, or
/// learns how many it missed.
///
/// Each subscriber may be up to `capacity` items behind; then its policy decides: `wait` makes the
/// emitter wait, drop_oldest, drop_newest and conflate (latest only) drop, `disconnect` ends the
/// subscriber, `fail_emitter` fails the emitter. Without subscribers no emitter waits. Items are
/// shared, not copied, until they are taken: at most capacity x (subscribers + 1) are alive.
/// Destructors of items may use the broadcast. Threads: home loop only (errc::wrong_loop). A
/// capacity below 1: errc::invalid_argument.
template <class T>
class broadcast {
  static_assert(std::is_copy_constructible_v<T>,
                "weir::broadcast<T>: every subscriber gets a copy; share what is large by "
                "std::shared_ptr<const T>");

 public:
  explicit broadcast(std::int64_t capacity)
      : core_(std::make_shared<detail::broadcast_core<T>>(
            detail::require_capacity(capacity, "broadcast"))) {}
  broadcast(const broadcast&) = delete;
  broadcast& operator=(const broadcast&) = delete;
  ~broadcast() {
    if (core_ == nullptr) return;
    core_->end(nullptr);
    if (core_.use_count() == 1) core_->drop_items();
  }

  /// Waits for `wait` subscribers that have no room. errc::queue_closed after close();
  /// errc::queue_full if a `fail_emitter` subscriber has no room.
  [[nodiscard]] auto emit(detail::awaited_argument<T> v) {
    core_->check();
    return detail::pending<detail::emit_wait<T>>({core_.get(), std::move(v)});
  }
  emit_result try_emit(T v) {
    core_->check();
    if (core_->closed()) detail::raise_emit_closed();
    if (!core_->emitters().empty()) return emit_result::refused;
    detail::cell_ref<T> oldest;
    return core_->put(std::move(v), oldest);
  }
  /// errc::invalid_argument for a policy that is not listed above.
  [[nodiscard]] subscription<T> subscribe(subscribe_options options = {}) {
    core_->check();
    detail::require_subscribe_options(options);
    return subscription<T>(std::make_unique<detail::subscriber<T>>(core_, options));
  }
  std::size_t subscribers() const noexcept { return core_->subscribers(); }
  /// Every subscriber sees the end after its buffered items.
  void close() {
    core_->check();
    core_->end(nullptr);
  }
  /// The same, with an error. Null: errc::invalid_argument.
  void fail(std::exception_ptr error) {
    core_->check();
    detail::require_broadcast_error(error);
    core_->end(std::move(error));
  }
  bool closed() const noexcept { return core_->closed(); }

  // Below: for the library.
  void notify_when_empty(detail::gate* g) noexcept { core_->notify_when_empty(g); }
  void interrupt(std::exception_ptr error) noexcept { core_->end(std::move(error)); }

 protected:
  const T& latest() const noexcept { return core_->latest(); }

 private:
  std::shared_ptr<detail::broadcast_core<T>> core_;
};

/// A broadcast whose subscribers start with the last `n` items, without gap or duplicate, even
/// after it was closed.
template <class T>
class replay : public broadcast<T> {
 public:
  explicit replay(std::int64_t n) : broadcast<T>(detail::require_capacity(n, "replay")), n_(n) {}
  [[nodiscard]] subscription<T> subscribe(subscribe_options options = {}) {
    options.replay = n_;
    return broadcast<T>::subscribe(options);
  }

 private:
  std::int64_t n_;
};

/// An observable value. A subscriber sees the current value, then changes; a slow subscriber sees
/// only the latest. Setting an equal value is not a change. Home loop only.
template <class T>
class state : private broadcast<T> {
 public:
  explicit state(T initial) : broadcast<T>(1) { (void)this->try_emit(std::move(initial)); }
  const T& get() const noexcept { return this->latest(); }
  void set(T value) {
    if (!(value == get())) (void)this->try_emit(std::move(value));
  }
  [[nodiscard]] subscription<T> subscribe() {
    return broadcast<T>::subscribe({.overflow = overflow::conflate, .replay = 1});
  }
  using broadcast<T>::subscribers;
  using broadcast<T>::close;
};

}  // namespace weir
