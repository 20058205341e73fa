// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

class suspend_wait_base;
struct suspend_message;

/// The state shared by a pending `suspend` and its resumers. Two kinds of owners: the wait (which
/// lives in a coroutine frame and may end first) and the resumers, on any thread. The first answer
/// claims it; it is posted to the wait's loop as a message unless it is given there.
class suspend_core {
 public:
  suspend_core();
  suspend_core(const suspend_core&) = delete;
  suspend_core& operator=(const suspend_core&) = delete;
  virtual ~suspend_core();

  /// False if it was already answered or the wait has ended: the late answer is counted.
  bool claim();
  /// The claimed answer is complete: notifies the wait.
  void hand_over() noexcept;
  void add_resumer() noexcept { resumers_.fetch_add(1, std::memory_order_relaxed); }
  void drop_resumer() noexcept;
  void add_ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() noexcept;

  // The wait's side, on its loop.
  void attach(suspend_wait_base& wait) noexcept { wait_ = &wait; }
  /// The wait ends without an answer. False if an answer is in flight.
  bool end_waiting() noexcept;
  void detach() noexcept { wait_ = nullptr; }
  bool answered() const noexcept;
  void arrived() noexcept;

  std::exception_ptr error;  // written by the claimant

 private:
  friend struct suspend_message;
  enum class phase : std::uint8_t { waiting, answered, ended };
  struct shared;
  std::atomic<phase> phase_{phase::waiting};
  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> resumers_{0};
  suspend_wait_base* wait_ = nullptr;  // home loop only
  std::unique_ptr<shared> shared_;
};

template <class T>
class suspend_state final : public suspend_core {
 public:
  std::optional<stored_t<T>> value;
};

/// The type-independent part of a suspend.
class suspend_wait_base : public wait {
 public:
  bool poll() override { return false; }
  void link() override { arm(); }
  bool try_now() const noexcept { return false; }
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return core_->error != nullptr; }

 protected:
  suspend_wait_base() noexcept = default;
  ~suspend_wait_base();
  virtual suspend_core* make_core() = 0;
  virtual void call_start() = 0;
  virtual cancel_result call_canceller() = 0;
  virtual bool has_value() const noexcept = 0;
  suspend_core* core_ = nullptr;

 private:
  friend class suspend_core;
  friend class suspend_list;
  void answered() noexcept;
  void let_go() noexcept;
  bool later_ = false;
  suspend_wait_base* next_on_loop_ = nullptr;  // armed and unanswered ones of this loop
  suspend_wait_base** at_on_loop_ = nullptr;
};

}  // namespace detail

/// Answers a pending `suspend<T>`: copyable, usable on any thread, also after the loop has ended.
/// Only the first answer counts; when the last copy is destroyed unanswered, the wait ends with
/// errc::abandoned.
template <class T = void>
class resumer {
 public:
  /// Without a pending suspend: answers are ignored.
  resumer() noexcept = default;
  resumer(const resumer& other) noexcept : state_(other.state_) { hold(); }
  resumer(resumer&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  resumer& operator=(resumer other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~resumer() {
    if (state_ == nullptr) return;
    state_->drop_resumer();
    state_->drop_ref();
  }

  /// Ends the wait with a value (`complete()` for void).
  template <class... Args>
    requires std::is_constructible_v<detail::stored_t<T>, Args...>
  void complete(Args&&... args) {
    if (state_ == nullptr || !state_->claim()) return;
    try {
      state_->value.emplace(std::forward<Args>(args)...);
    } catch (...) {
      state_->error = std::current_exception();
    }
    state_->hand_over();
  }
  /// Ends the wait with an error.
  void fail(std::exception_ptr error) {
    if (state_ == nullptr || !state_->claim()) return;
    state_->error = std::move(error);
    state_->hand_over();
  }

  // Below: for the library.
  explicit resumer(detail::suspend_state<T>* state) noexcept : state_(state) { hold(); }

 private:
  void hold() noexcept {
    if (state_ == nullptr) return;
    state_->add_ref();
    state_->add_resumer();
  }
  detail::suspend_state<T>* state_ = nullptr;
};

namespace detail {

template <class T, class F>
class suspend_wait : public suspend_wait_base {
  using canceller = std::invoke_result_t<F&, resumer<T>>;

 public:
  struct args {
    explicit args(F f) : fn(std::move(f)) {}
    F fn;
  };
  using result = T;

  explicit suspend_wait(args&& a) : fn_(std::move(a.fn)) {}
  T take() {
    if (core_->error != nullptr) std::rethrow_exception(core_->error);
    if constexpr (!std::is_void_v<T>) return std::move(*state().value);
  }

 private:
  suspend_state<T>& state() const noexcept { return static_cast<suspend_state<T>&>(*core_); }
  suspend_core* make_core() override { return new suspend_state<T>; }
  void call_start() override {
    if constexpr (std::is_void_v<canceller>) {
      fn_(resumer<T>(&state()));
    } else {
      stop_.emplace(fn_(resumer<T>(&state())));
    }
  }
  cancel_result call_canceller() override {
    if constexpr (std::is_void_v<canceller>) {
      return cancel_result::done;
    } else {
      return stop_ ? (*stop_)() : cancel_result::done;
    }
  }
  bool has_value() const noexcept override { return state().value.has_value(); }

  F fn_;
  std::optional<std::conditional_t<std::is_void_v<canceller>, char, canceller>> stop_;
};

}  // namespace detail

/// Turns any callback interface into a wait. `start(resumer<T>)` is called when the wait starts; it
/// may return a canceller, `cancel_result()`, which is called at once on cancellation: `done`
/// (stopped; a later answer is ignored and counted), `no` (the answer is delivered, the fiber is
/// unwound at its next await), `later` (the next answer is the confirmation: the fiber is unwound,
/// a value counts as `value_discarded`). Neither may throw or change weir's state.
template <class T = void, class F>
auto suspend(F&& start) {
  using fn = std::decay_t<F>;
  static_assert(std::is_invocable_v<fn&, resumer<T>>,
                "weir::suspend<T>(start): start takes a weir::resumer<T>");
  return detail::pending<detail::suspend_wait<T, fn>>(
      typename detail::suspend_wait<T, fn>::args(std::forward<F>(start)));
}

}  // namespace weir
