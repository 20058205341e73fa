// SPDX-License-Identifier: MIT
// Part of <weir/channel.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/detail/flow/channel_core.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/item_wait.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>

namespace weir {

namespace detail {

template <class T>
class receive_wait;
template <class T>
class send_wait;

/// A sender that waits for room, with its value.
template <class T>
class send_envelope_of final : public send_envelope {
 public:
  send_envelope_of(channel_core& to, T&& v) : send_envelope(to), value(std::move(v)) {}
  send_envelope_of(channel_core& to, this_thread_t, T&& v)
      : send_envelope(to, this_thread_t{}), value(std::move(v)) {}
  T value;
};

/// The ring of a channel and the waits for its values. The slot of position p is p modulo the
/// number of slots; its `turn` says whether it holds the value of that position.
template <class T>
class channel_state final : public channel_core {
 public:
  channel_state(std::int64_t capacity, const channel_options& options)
      : channel_core(capacity, options), slots_(new slot[slot_count()]) {}
  ~channel_state() override {
    while (next_ != end_position()) leave_slot(next_++);
  }

  // Any thread.
  template <class U>
  room put(U&& value) {
    require_no_run("channel", name());
    std::uint64_t position = 0;
    const room answer = reserve(position);
    if (answer == room::yes) fill(position, std::forward<U>(value));
    return answer;
  }

  // The receiver's loop.
  bool poll(receive_wait<T>& w) {
    if (!consumers().empty()) return false;
    const origin from = give(w);
    forget(from);
    return from != origin::nowhere;
  }
  void wait_for_value(receive_wait<T>& w) noexcept {
    add_consumer(w);
    serve();
  }
  void put_back(T& value) noexcept {
    if (!may_put_back()) return;
    returned_.push_front(std::move(value));
    serve();
  }
  /// The receiver is destroyed: destroys the remaining values.
  void drop_receiver() noexcept {
    check_end();
    end_sending();
    returned_.clear();
    // A sender may have reserved a position and not stored its value yet, which takes one move. A
    // value that takes longer is destroyed with the channel.
    for (int patience = 10'000; next_ != end_position() && patience > 0;) {
      if (!has_value()) {
        --patience;
        let_others_run();
        continue;
      }
      move_on();
    }
    release();
  }

 private:
  struct slot {
    slot() noexcept {}
    ~slot() {}
    std::atomic<std::uint64_t> turn{0};  // 2 * (position + 1); odd: the value could not be moved
    union {
      T value;
    };
  };

  slot& at(std::uint64_t position) const noexcept { return slots_[position & (slot_count() - 1)]; }
  std::uint64_t turn_now() const noexcept { return at(next_).turn.load(std::memory_order_acquire); }
  bool has_value() const noexcept { return turn_now() >> 1 == next_ + 1; }
  void leave_slot(std::uint64_t position) noexcept {
    slot& s = at(position);
    if ((s.turn.load(std::memory_order_relaxed) & 1U) == 0) s.value.~T();
  }
  /// Moves past the oldest value. Its destructor may use the channel; senders get its slot, and
  /// those emptied meanwhile, when the destructor has returned.
  void move_on() noexcept {
    const bool outermost = !std::exchange(moving_on_, true);
    leave_slot(next_++);
    if (!outermost) return;
    moving_on_ = false;
    taken(next_);
  }

  template <class U>
  void fill(std::uint64_t position, U&& value) {
    slot& s = at(position);
    std::uint64_t turn = (position + 1) * 2;
    if constexpr (std::is_nothrow_constructible_v<T, U&&>) {
      ::new (static_cast<void*>(std::addressof(s.value))) T(std::forward<U>(value));
    } else {
      try {
        ::new (static_cast<void*>(std::addressof(s.value))) T(std::forward<U>(value));
      } catch (...) {
        publish(s.turn, turn | 1U);
        throw;
      }
    }
    publish(s.turn, turn);
  }
  std::exception_ptr accept(send_envelope& from, std::uint64_t position) noexcept override {
    try {
      fill(position, std::move(static_cast<send_envelope_of<T>&>(from).value));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  enum class origin : std::uint8_t { nowhere, returned, slot, end };
  /// Delivers the oldest value, or the end. The moved-from value stays in its slot until forget(),
  /// because its destructor may use the channel.
  origin give(receive_wait<T>& w) {
    if (!returned_.empty()) {
      w.value_.emplace(std::move(returned_.front()));
      return origin::returned;
    }
    while (has_value()) {
      if ((turn_now() & 1U) != 0) {
        move_on();
        continue;
      }
      w.value_.emplace(std::move(at(next_).value));
      return origin::slot;
    }
    return has_ended(next_) ? origin::end : origin::nowhere;
  }
  void forget(origin from) noexcept {
    if (from == origin::slot) [[likely]]
      move_on();
    if (from == origin::returned) returned_.pop_front();
  }
  void serve() noexcept override {
    this->serving_ = true;
    do {
      while (!consumers().empty()) {
        auto& first = static_cast<receive_wait<T>&>(*consumers().first());
        origin from = origin::end;
        try {
          from = give(first);
        } catch (...) {
          first.error_ = std::current_exception();
        }
        if (from == origin::nowhere) break;
        remove_consumer(first);
        first.complete();
        forget(from);
      }
    } while (!consumers().empty() && !will_be_called());
    this->serving_ = false;
  }
  // Sequentially consistent: see point 3 of channel_core.hpp.
  bool has_something() const noexcept override {
    return at(next_).turn.load(std::memory_order_seq_cst) >> 1 == next_ + 1 || has_ended(next_);
  }

  std::unique_ptr<slot[]> slots_;
  std::uint64_t next_ = 0;       // the position of the value that is taken next
  bool moving_on_ = false;       // a value is being destroyed in its slot
  circular_buffer<T> returned_;  // delivered to a receiver that did not take it
};

/// Waits for a value of a channel.
template <class T>
class receive_wait : public item_wait<receive_wait<T>, T> {
 public:
  struct args {
    channel_state<T>* from;
  };

  // Constructed where it is awaited, which may differ from where `next` was called.
  explicit receive_wait(args&& a) : channel_(a.from) {
    if (!channel_->is_home()) [[unlikely]]
      require_receiver(channel_);
  }
  ~receive_wait() {
    if (this->value_.has_value()) [[unlikely]]
      channel_->put_back(*this->value_);
  }
  bool try_now() { return channel_->poll(*this); }
  void arm() noexcept { channel_->wait_for_value(*this); }
  cancel_result withdraw() noexcept override {
    channel_->remove_consumer(*this);
    return cancel_result::done;
  }
  void describe(dump_line& line) const override { channel_->describe(line, "next of"); }

 private:
  friend class channel_state<T>;
  channel_state<T>* channel_;
};

/// Waits for room in a channel.
template <class T>
class send_wait : public send_wait_base {
 public:
  struct args {
    channel_state<T>* to;
    T value;
  };
  using result = void;

  explicit send_wait(args&& a) : channel_(a.to), value_(std::move(a.value)) {}
  bool poll() override { return try_now(); }
  bool try_now() {
    if (channel_ == nullptr) return refuse();
    const channel_core::room answer = channel_->put(std::move(value()));
    if (answer == channel_core::room::yes) return true;
    if (answer == channel_core::room::closed) return refuse();
    // Here and not in `arm`, which must not throw: moving the value may throw.
    if (envelope() == nullptr) keep(new send_envelope_of<T>(*channel_, std::move(value_)));
    return false;
  }
  void link() override { arm(); }
  void arm() noexcept { start_waiting(); }
  void take() {
    if (failed()) [[unlikely]]
      raise_problem(channel_);
  }

 private:
  T& value() noexcept {
    return envelope() == nullptr ? value_ : static_cast<send_envelope_of<T>&>(*envelope()).value;
  }
  channel_state<T>* channel_;
  T value_;
};

template <class T>
std::pair<sender<T>, receiver<T>> make_channel(std::int64_t capacity,
                                               const channel_options& options);

}  // namespace detail
}  // namespace weir
