// SPDX-License-Identifier: MIT
// Part of <weir/broadcast.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
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

namespace detail {

template <class T>
class subscriber;
template <class T>
class emit_wait;
template <class T>
class subscription_wait;

/// The type-independent part of a subscriber.
struct subscriber_base {
  subscriber_base(overflow how, std::uint64_t first) noexcept : policy(how), next(first) {}
  overflow policy;
  bool lagged = false;            // disconnected: the next call throws
  bool end_delivered = false;     // the end or the error was delivered
  std::uint64_t next;             // the number of the item that it sees next
  std::uint64_t missed = 0;       // items missed right before the last one returned
  std::uint64_t missed_next = 0;  // drop_newest: items missed right before the next one
  std::uint64_t missed_total = 0;
  subscriber_base* before = nullptr;
  subscriber_base* after = nullptr;
  wait_list waiting;
  bool* reader = nullptr;  // flag of the next() that is pending, or was woken and has not run yet
  wait* woken = nullptr;   // that next(), if it may still take its item
};

std::int64_t require_capacity(std::int64_t capacity, const char* what);
void require_subscribe_options(const subscribe_options& options);
void require_broadcast_error(const std::exception_ptr& error);
void settle_broadcast_home(home& h);
/// The subscription is destroyed while it is read: aborts, unless a crash destroys it.
void lose_reader(bool& reads) noexcept;
[[noreturn]] void raise_lagged();
[[noreturn]] void raise_emit_closed();
[[noreturn]] void raise_emitter_full();
void describe_broadcast(dump_line& line, const char* what);

/// The state shared by a broadcast and its subscriptions, on one loop.
///
/// Invariants:
/// 1. Items are numbered from 0; `ring_` holds the last `capacity` of them, those before `end_`.
/// 2. Every subscriber but a `drop_newest` one reads from the ring; what it has not read and the
///    ring has lost is counted as missed, exactly. A `drop_newest` subscriber has its own window.
/// 3. A subscriber waits only if there is no item for it; an emitter waits only if a `wait`
///    subscriber is `capacity` items behind. Emitters are served in order.
/// 4. A woken subscriber takes its item when it runs, or before that if an emitter needs the room
///    (it may be another part of the same composite wait); an item that it took and did not deliver
///    is returned to the subscriber.
/// 5. Items are destroyed only in a consistent state: their destructors may use the broadcast.
/// 6. Every subscriber that must not miss an item has room for those before `room_until_`. So an
///    item visits the subscribers only if one of them may be full, may miss it, or waits for it.
template <class T>
class broadcast_core {
 public:
  explicit broadcast_core(std::int64_t capacity)
      : capacity_(static_cast<std::uint64_t>(capacity)) {}
  broadcast_core(const broadcast_core&) = delete;
  broadcast_core& operator=(const broadcast_core&) = delete;
  ~broadcast_core() { emitters_.require_empty({"broadcast", {}}); }

  /// No subscriber is left. Item destructors may still use the broadcast here.
  void drop_items() noexcept { ring_.clear(); }
  void check() {
    if (!home_.is_here()) [[unlikely]]
      settle_broadcast_home(home_);
  }
  bool closed() const noexcept { return closed_; }
  std::size_t subscribers() const noexcept { return count_; }
  wait_list& emitters() noexcept { return emitters_; }
  const std::exception_ptr& error() const noexcept { return error_; }
  const T& latest() noexcept { return *ring_[ring_.size() - 1]; }

  void add(subscriber<T>& s, std::int64_t replay) {
    const auto back = static_cast<std::uint64_t>(replay);
    s.next = end_ - (back < ring_.size() ? back : ring_.size());
    if (s.policy == overflow::drop_newest)
      for (; s.next < end_; ++s.next) s.window.push_back(kept(at(s.next), 0));
    if (may_miss(s)) {
      ++lossy_;
    } else if (s.next + capacity_ < room_until_) {
      room_until_ = s.next + capacity_;
    }
    s.after = first_;
    if (first_ != nullptr) first_->before = &s;
    first_ = &s;
    ++count_;
  }
  void remove(subscriber<T>& s) noexcept {
    (s.before == nullptr ? first_ : s.before->after) = s.after;
    if (s.after != nullptr) s.after->before = s.before;
    --count_;
    if (may_miss(s)) --lossy_;
    admit();
    if (count_ == 0 && empty_gate_ != nullptr) empty_gate_->open();
  }
  /// Opens `g` when the last subscriber leaves.
  void notify_when_empty(gate* g) noexcept { empty_gate_ = g; }

  /// Gives an item to every subscriber, or to none: `refused`. `oldest` receives the item that it
  /// displaces.
  template <class U>
  emit_result put(U&& value, cell_ref<T>& oldest) {
    if (end_ >= room_until_ && somebody_is_full()) return emit_result::refused;
    cell_ref<T> item(new cell<T>(std::forward<U>(value)));
    if (ring_.size() == capacity_) oldest = ring_.take_front();
    ring_.push_back(std::move(item));
    ++end_;
    if (lossy_ == 0 && parked_ == 0) return emit_result::delivered;
    bool dropped = false;
    for (subscriber_base* b = first_; b != nullptr; b = b->after)
      dropped = !arrives(static_cast<subscriber<T>&>(*b)) || dropped;
    return dropped ? emit_result::dropped : emit_result::delivered;
  }
  /// Whether a `fail_emitter` subscriber would fail the emitter.
  bool fails_emitter() noexcept {
    if (end_ < room_until_) return false;
    for (subscriber_base* b = first_; b != nullptr; b = b->after)
      if (b->policy == overflow::fail_emitter && is_full(*b)) return true;
    return false;
  }
  void admit() noexcept {
    while (!emitters_.empty()) {
      auto& first = static_cast<emit_wait<T>&>(*emitters_.first());
      cell_ref<T> oldest;
      try {
        if (!first.try_put(oldest)) return;
      } catch (...) {
        first.error_ = std::current_exception();
      }
      emitters_.remove(first);
      first.complete();
    }
  }
  void end(std::exception_ptr error) noexcept {
    if (std::exchange(closed_, true)) return;
    error_ = std::move(error);
    while (!emitters_.empty()) {
      auto& first = static_cast<emit_wait<T>&>(*emitters_.first());
      emitters_.remove(first);
      first.refuse(emit_wait<T>::fate::closed);
      first.complete();
    }
    for (subscriber_base* b = first_; b != nullptr; b = b->after) wake_all(*b);
  }

  bool has_item(const subscriber<T>& s) const noexcept {
    if (s.lagged) return false;
    if (s.policy == overflow::drop_newest ? !s.window.empty() : s.next != end_) return true;
    return static_cast<bool>(s.returned.item);
  }
  /// Whether `next` can complete: with an item, the end or an error.
  bool has_news(const subscriber<T>& s) const noexcept {
    return has_item(s) || closed_ || s.lagged;
  }
  /// A reader of `s` waits for an item.
  void park(subscriber<T>& s, linked_wait& reader) noexcept {
    s.waiting.push_back(reader);
    ++parked_;
  }
  void unpark(subscriber_base& b, linked_wait& reader) noexcept {
    b.waiting.remove(reader);
    --parked_;
  }
  /// Takes the next item. REQUIRES: there is one.
  taken_item<T> take(subscriber<T>& s) noexcept {
    if (s.returned.item) return std::exchange(s.returned, {});
    if (s.policy == overflow::drop_newest) {
      kept first = s.window.take_front();
      return {std::move(first.item), first.missed};
    }
    const std::uint64_t missed = skip_missed(s);
    return {at(s.next++), missed};
  }
  /// As take, if that is the next item in the ring: it stays there.
  const T* pass(subscriber<T>& s) noexcept {
    if (s.policy == overflow::drop_newest || s.returned.item) return nullptr;
    s.missed = skip_missed(s);
    return &*at(s.next++);
  }
  /// `s` has taken an item.
  void made_room(const subscriber<T>& s) noexcept {
    // Checking whether all subscribers have room is O(subscribers): do it only when one that was
    // full has just made room.
    if (s.policy == overflow::wait && !emitters_.empty() && behind(s) + 1 == capacity_) admit();
  }
  std::uint64_t missed_total(const subscriber<T>& s) const noexcept {
    if (s.policy == overflow::drop_newest || behind(s) == 0) return s.missed_total;
    const std::uint64_t first = first_kept(s);
    return s.missed_total + (s.next < first ? first - s.next : 0);
  }

 private:
  using kept = typename subscriber<T>::kept;
  std::uint64_t oldest() const noexcept { return end_ - ring_.size(); }
  /// The first item that a subscriber without a window can still read, if it has not read
  /// everything.
  std::uint64_t first_kept(const subscriber_base& b) const noexcept {
    return b.policy == overflow::conflate ? end_ - 1 : oldest();
  }
  const cell_ref<T>& at(std::uint64_t number) noexcept {
    return ring_[static_cast<std::size_t>(number - oldest())];
  }
  std::uint64_t behind(const subscriber_base& b) const noexcept { return end_ - b.next; }
  static bool may_miss(const subscriber_base& b) noexcept {
    return b.policy != overflow::wait && b.policy != overflow::fail_emitter;
  }
  /// Counts what `s` has not read and the ring has lost; how many that are.
  std::uint64_t skip_missed(subscriber<T>& s) const noexcept {
    const std::uint64_t first = first_kept(s);
    if (s.next >= first) [[likely]]
      return 0;
    const std::uint64_t missed = first - s.next;
    s.missed_total += missed;
    s.next = first;
    return missed;
  }
  /// If none is full, updates `room_until_`.
  bool somebody_is_full() noexcept {
    std::uint64_t until = ~std::uint64_t{0};
    for (subscriber_base* b = first_; b != nullptr; b = b->after) {
      if (may_miss(*b)) continue;
      if (is_full(*b)) return true;
      if (b->next + capacity_ < until) until = b->next + capacity_;
    }
    room_until_ = until;
    return false;
  }
  /// Whether there is no room even after a woken reader takes its item.
  bool is_full(subscriber_base& b) noexcept {
    if (behind(b) < capacity_) return false;
    if (b.woken == nullptr) return true;
    static_cast<subscription_wait<T>*>(b.woken)->take_early();
    return behind(b) >= capacity_;
  }
  /// The newest item is in the ring; false if that makes `s` miss one.
  bool arrives(subscriber<T>& s) {
    bool kept_all = true;
    if (s.policy == overflow::drop_newest) {
      kept_all = s.window.size() < capacity_;
      if (kept_all) {
        s.window.push_back(kept(at(end_ - 1), std::exchange(s.missed_next, 0)));
      } else {
        ++s.missed_next;
        ++s.missed_total;
      }
    } else if (s.policy == overflow::conflate) {
      kept_all = behind(s) == 1;
    } else {
      kept_all = behind(s) <= capacity_;
      if (!kept_all && s.policy == overflow::disconnect) s.lagged = true;
    }
    if (!s.waiting.empty()) wake_one(s);
    return kept_all;
  }
  void wake_one(subscriber_base& b) noexcept {
    auto& first = static_cast<subscription_wait<T>&>(*b.waiting.first());
    unpark(b, first);
    b.woken = &first;
    first.complete();
  }
  void wake_all(subscriber_base& b) noexcept {
    while (!b.waiting.empty()) wake_one(b);
  }

  std::uint64_t capacity_;
  std::uint64_t end_ = 0;                         // the number of the next item
  std::uint64_t room_until_ = ~std::uint64_t{0};  // see invariant 6
  circular_buffer<cell_ref<T>> ring_;
  subscriber_base* first_ = nullptr;
  std::size_t count_ = 0;
  std::size_t lossy_ = 0;   // subscribers that may miss items
  std::size_t parked_ = 0;  // readers that wait
  wait_list emitters_;
  gate* empty_gate_ = nullptr;
  home home_;
  bool closed_ = false;
  std::exception_ptr error_;
};

template <class T>
class subscriber : public subscriber_base {
 public:
  struct kept {
    kept(cell_ref<T> c, std::uint64_t m) noexcept : item(std::move(c)), missed(m) {}
    cell_ref<T> item;
    std::uint64_t missed;  // items missed right before it
  };
  subscriber(std::shared_ptr<broadcast_core<T>> of, const subscribe_options& options)
      : subscriber_base(options.overflow, 0), core(std::move(of)) {
    core->add(*this, options.replay);
  }
  ~subscriber() {
    waiting.require_empty({"subscription", {}});
    if (reader != nullptr) lose_reader(*reader);
    core->remove(*this);
  }
  std::shared_ptr<broadcast_core<T>> core;
  circular_buffer<kept> window;  // of a drop_newest subscriber
  taken_item<T> returned;        // taken by a next() that did not deliver it
};

/// Waits for the next item of a subscription.
template <class T>
class subscription_wait : public simple_wait<subscription_wait<T>, linked_wait> {
 public:
  struct args {
    subscriber<T>* of;
  };
  using result = std::optional<T>;

  explicit subscription_wait(args&& a) noexcept : of_(a.of) {}
  ~subscription_wait() {
    if (reads_) leave();
  }
  // A second reader would take the item that the first was woken for, which would then see an end.
  bool try_now() noexcept {
    busy_ = of_->reader != nullptr;
    return busy_ || of_->core->has_news(*of_);
  }
  /// As try_now; but other code may run before take(), so it takes the item now.
  bool poll() override {
    if (!try_now()) return false;
    if (!busy_ && of_->core->has_item(*of_)) hold();
    return true;
  }
  void arm() noexcept {
    if (poll()) return this->complete();  // by another arm of the same composite wait
    read();
    of_->core->park(*of_, *this);
  }
  cancel_result withdraw() noexcept override {
    of_->core->unpark(*of_, *this);
    leave();
    return cancel_result::done;
  }
  void describe(dump_line& line) const override { describe_broadcast(line, "next of"); }
  bool failed() const noexcept { return busy_ || (!taken_.item && of_->lagged); }
  std::optional<T> take() {
    if (busy_) [[unlikely]]
      raise_stream_busy();
    if (!taken_.item) {
      if (reads_) leave();
      if (!of_->core->has_item(*of_)) return at_end();
      // Copying such an item runs no code that could use the broadcast, so the ring keeps it alive.
      if constexpr (std::is_trivially_copy_constructible_v<T>) {
        if (const T* const item = of_->core->pass(*of_)) {
          std::optional<T> out(std::in_place, *item);
          of_->core->made_room(*of_);
          return out;
        }
      }
      hold();
    }
    std::optional<T> out(std::in_place, *taken_.item);
    of_->missed = taken_.missed;
    const cell_ref<T> given = std::move(taken_.item);
    leave();
    return out;
  }

 private:
  friend class broadcast_core<T>;
  /// Takes the item. REQUIRES: there is one.
  void hold() noexcept {
    read();
    taken_ = of_->core->take(*of_);
    of_->core->made_room(*of_);
  }
  /// Takes the item early because an emitter needs the room.
  void take_early() noexcept {
    of_->woken = nullptr;
    taken_ = of_->core->take(*of_);
  }
  void read() noexcept {
    of_->reader = &reads_;
    reads_ = true;
  }
  void leave() noexcept {
    if (taken_.item) of_->returned = std::move(taken_);
    of_->reader = nullptr;
    of_->woken = nullptr;
    reads_ = false;
  }
  std::optional<T> at_end() const {
    if (of_->lagged) raise_lagged();
    if (of_->core->error() != nullptr && !std::exchange(of_->end_delivered, true))
      std::rethrow_exception(of_->core->error());
    return std::nullopt;
  }
  subscriber<T>* of_;
  taken_item<T> taken_;  // taken from the broadcast, not yet delivered
  bool reads_ = false;   // this wait is the reader of its subscriber
  bool busy_ = false;
};

/// Waits until every `wait` subscriber has room.
template <class T>
class emit_wait : public simple_wait<emit_wait<T>, linked_wait> {
 public:
  struct args {
    broadcast_core<T>* to;
    T value;
  };
  using result = void;

  explicit emit_wait(args&& a) : core_(a.to), value_(std::move(a.value)) {}
  bool try_now() {
    if (core_->closed()) return refuse(fate::closed);
    cell_ref<T> oldest;
    return core_->emitters().empty() && try_put(oldest);
  }
  void arm() noexcept {
    // Another arm of the same composite wait may have closed the broadcast, or made room.
    if (core_->closed()) return refuse(fate::closed), this->complete();
    core_->emitters().push_back(*this);
    core_->admit();
  }
  cancel_result withdraw() noexcept override {
    core_->emitters().remove(*this);
    return cancel_result::done;
  }
  bool in_line() const noexcept override { return true; }
  void describe(dump_line& line) const override { describe_broadcast(line, "emit to"); }
  bool failed() const noexcept { return fate_ != fate::waiting || error_ != nullptr; }
  void poll_failed(std::exception_ptr e) noexcept { error_ = std::move(e); }
  void take() const {
    if (fate_ == fate::closed) raise_emit_closed();
    if (fate_ == fate::full) raise_emitter_full();
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  friend class broadcast_core<T>;
  enum class fate : std::uint8_t { waiting, closed, full };
  bool refuse(fate why) noexcept {
    fate_ = why;
    return true;
  }
  bool try_put(cell_ref<T>& oldest) {
    if (core_->fails_emitter()) return refuse(fate::full);
    return core_->put(std::move(value_), oldest) != emit_result::refused;
  }
  broadcast_core<T>* core_;
  T value_;
  fate fate_ = fate::waiting;
  std::exception_ptr error_;  // its value could not be moved
};

}  // namespace detail
}  // namespace weir
