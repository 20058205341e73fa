// SPDX-License-Identifier: MIT
// What a strand parks on. Class wait has the contract of every wait of weir.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/frame.hpp>

namespace weir {

/// The answer of a wait to a cancellation.
enum class cancel_result : std::uint8_t {
  done,   ///< withdrawn without loss
  later,  ///< it will confirm later, e.g. when an answer in flight has arrived
  no,     ///< it must finish first
};

namespace detail {

class dump_line;
class composite;
struct fiber;

/// The fibers that a wait depends on, as far as they are known.
struct blocker_list {
  std::vector<const fiber*> fibers;
};

/// The place of a wait in a composite one.
struct arm_link {
  enum class phase : std::uint8_t { idle, armed, completed, leaving, confirming };
  composite* owner = nullptr;
  std::uint32_t index = 0;
  phase state = phase::idle;
};

/// What a strand can be parked on: an intrusive object in the awaiting frame.
///
/// Life cycle: constructed -> complete (`poll()` is true), or `link()` -> armed -> completed (by
/// its source), or withdrawn by `withdraw()`. After a withdrawal that answered `done` it may be
/// restarted. Invariants:
/// 1. No wait of a loop's own objects allocates in poll, link, complete or withdraw; linking and
///    unlinking are O(1).
/// 2. `complete()` is called at most once per start and only while armed. It resumes no frame: it
///    puts the strand on the ready queue or notifies its composite, which may withdraw other arms
///    (the canceller of a `suspend` is user code).
/// 3. A result that arrived is delivered by `take()`; a withdrawn wait has taken nothing.
/// 4. `later` means that it cannot be restarted, even if it confirms inside the call.
class wait {
 public:
  wait() noexcept = default;
  wait(const wait&) = delete;
  wait& operator=(const wait&) = delete;

  /// Tries to complete at once, without arming. An exception is for the awaiter; a wait that a
  /// frame awaits does not throw here, but in its `take()`.
  virtual bool poll() = 0;
  /// Arms, after poll() was false; checks again, because starting other waits may have changed
  /// that. May complete at once.
  virtual void link() = 0;
  virtual cancel_result withdraw() noexcept = 0;
  /// Whether it can be withdrawn without effect and restarted: nothing outside this loop works for
  /// it, and it has started no fiber.
  virtual bool pausable() const noexcept { return true; }
  /// Withdraws it without a cancellation, to be restarted later. REQUIRES: pausable().
  virtual cancel_result pause() noexcept { return withdraw(); }
  /// Whether it is queued with other waits and would lose its place by a withdrawal: a pull that
  /// ends with a result does not pause such a wait.
  virtual bool in_line() const noexcept { return false; }
  /// It answered `later` and the grace has expired: end the awaited operation now.
  virtual void grace_over() noexcept {}
  /// What a dump prints after "waits on".
  virtual void describe(dump_line& line) const = 0;
  /// Whether a durable run may wait for it (run_rules.hpp): a local_wait, and what is journaled.
  virtual bool fits_run() const noexcept { return false; }
  /// The fibers that must continue for this wait to complete; to report deadlock cycles.
  virtual void blockers(blocker_list&) const {}

  void belongs_to(strand& s) noexcept { target_ = reinterpret_cast<std::uintptr_t>(&s); }
  void belongs_to(arm_link& arm) noexcept { target_ = reinterpret_cast<std::uintptr_t>(&arm) | 1U; }
  bool is_arm() const noexcept { return (target_ & 1U) != 0; }
  /// The strand that will be woken, through any number of composites.
  strand* waiting_strand() const noexcept;

 protected:
  ~wait() = default;
  void complete() noexcept;

 private:
  std::uintptr_t target_ = 0;  // the strand, or the arm_link with the lowest bit set
};

/// A wait that only its own loop completes: a timer, another fiber, an object of the loop.
class local_wait : public wait {
 public:
  bool fits_run() const noexcept override { return true; }

 protected:
  ~local_wait() = default;
};

/// Why the parts of a pull are withdrawn.
enum class pull_end : std::uint8_t {
  result,    // the pull has a result; they may stay in flight
  paused,    // the same, and the pull does not wait until they are
  given_up,  // the pull was cancelled: nothing stays in flight
};

/// Notified by its arms when they complete; itself a wait. A durable run may wait for it if it may
/// wait for each arm.
class composite : public local_wait {
 public:
  virtual void arm_completed(arm_link& arm) noexcept = 0;
  /// Called by the parts of a pull while they are withdrawn.
  virtual pull_end why_ending() const noexcept { return pull_end::result; }

 protected:
  ~composite() = default;
};

/// Parks `s` on `w`, which is about to be armed. False if the strand must not park and unwinds.
bool prepare_park(strand& s, wait& w);
/// As prepare_park, for a wait that cancellation does not end.
void park_quietly(strand& s, wait& w);
/// The budget is used up or the strand is cancelled: starts `w` in a later turn, or unwinds.
void give_up_turn(strand& s, wait& w);

/// A wait was armed; user code in it may have cancelled this strand meanwhile.
void cancel_if_asked(strand& s);
/// The same for a wait that was armed although the strand may not have been allowed to park.
void withdraw_if_asked(strand& s);

/// Whether polling a deferred wait can throw: a pull polls nothing before its own turn.
template <class W>
inline constexpr bool poll_throws =
    !requires { W::parks_after_poll; } && !noexcept(std::declval<W&>().try_now());
/// Whether the wait itself keeps that error for its `take()`.
template <class W>
inline constexpr bool keeps_poll_error =
    requires(W& w, std::exception_ptr e) { w.poll_failed(std::move(e)); };

/// The error of a deferred wait whose poll threw on its turn.
template <bool Needed>
struct late_error {
  void keep(std::exception_ptr) const noexcept {}
  void raise() const noexcept {}
};
template <>
struct late_error<true> {
  void keep(std::exception_ptr e) noexcept { error = std::move(e); }
  void raise() {
    if (error != nullptr) [[unlikely]]
      std::rethrow_exception(std::exchange(error, nullptr));
  }
  std::exception_ptr error;
};

/// The awaiter of a wait: adds the coroutine's side to `W`. `W` provides: `args` (movable, what
/// users hold), `result`, `W(args&&)`, `bool try_now()`, `void arm()`, `result take()`, `bool
/// failed() const`. If `try_now` may throw, then also `void poll_failed(std::exception_ptr)`, after
/// which `take()` throws that; or it is kept here.
template <class W>
class await_wait final : public W {
 public:
  explicit await_wait(typename W::args&& given) : W(std::move(given)) {}

  bool await_ready() {
    strand& s = *current;
    if (--s.budget < 0) [[unlikely]]
      return false;
    if constexpr (requires { W::parks_after_poll; }) W::was_polled = true;
    return W::try_now();
  }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> me) {
    strand& s = *current;
    s.leaf = &me.promise();
    if constexpr (requires { W::parks_after_poll; }) return park_polled(s);
    if constexpr (!requires { W::gives_way; }) {
      if (s.budget < 0) [[unlikely]]
        return give_up_turn(s, *this);
    }
    if (!prepare_park(s, *this)) return;
    W::arm();
    if (s.budget <= 0) [[unlikely]]
      cancel_if_asked(s);
  }
  typename W::result await_resume() {
    late_.raise();
    return W::take();
  }
  /// On a later turn, when nothing can be thrown into the frame: it gets the error when it resumes.
  bool poll() override {
    if constexpr (poll_throws<W>) {
      try {
        return W::poll();
      } catch (...) {
        if constexpr (keeps_poll_error<W>) {
          W::poll_failed(std::current_exception());
        } else {
          late_.keep(std::current_exception());
        }
        return true;
      }
    } else {
      return W::poll();
    }
  }

 private:
  // The polled wait may be armed already, so this always parks; a strand that must not park is then
  // withdrawn like any other.
  void park_polled(strand& s) {
    if (!W::was_polled) return give_up_turn(s, *this);
    park_quietly(s, *this);
    W::arm();
    withdraw_if_asked(s);
  }

  [[no_unique_address]] late_error<poll_throws<W> && !keeps_poll_error<W>> late_;
};

/// An operation that is a wait: not started, movable, no frame. This is what `sleep(d)` returns.
template <class W>
class [[nodiscard]] pending {
 public:
  using wait_type = W;
  using result = typename W::result;

  explicit pending(typename W::args args) : args_(std::move(args)) {}
  typename W::args&& release() && noexcept { return std::move(args_); }
  await_wait<W> weir_await() && { return await_wait<W>(std::move(args_)); }

 private:
  typename W::args args_;
};

/// Whether a wait depends on an object of its loop and so cannot move to another loop.
template <class W>
inline constexpr bool is_home_bound = requires { requires W::home_bound; };

template <class T>
inline constexpr bool is_pending = false;
template <class W>
inline constexpr bool is_pending<pending<W>> = true;

/// Implements the virtual functions of `W` by its `try_now` and `arm`.
template <class Derived, class Base = wait>
class simple_wait : public Base {
 public:
  bool poll() override { return static_cast<Derived&>(*this).try_now(); }
  void link() override { static_cast<Derived&>(*this).arm(); }
  bool failed() const noexcept { return false; }

 protected:
  ~simple_wait() = default;
};

}  // namespace detail
}  // namespace weir
