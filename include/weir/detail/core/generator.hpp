// SPDX-License-Identifier: MIT
// A coroutine that is driven by its consumer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <weir/context.hpp>
#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/future.hpp>
#include <weir/outcome.hpp>

namespace weir::detail {

/// The answer of a pull.
enum class pull : std::uint8_t {
  value,
  end,
  pending,  // no value yet; the owner is notified
  again,    // the turn's budget is used up: poll again in the next turn
};

struct generator_carrier;

/// The generator frame that was last allocated on this thread.
struct frame_memory {
  bool holds(const void* object) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(object);
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    return at >= first && at - first < bytes;
  }
  const void* begin = nullptr;
  std::size_t bytes = 0;
};
inline constinit thread_local frame_memory last_generator_frame;

/// A coroutine with its own strand and cancel region, inside the region of its consumer. It runs on
/// the consumer's turn until it yields, ends, or waits; after a wait its strand continues on its
/// own turns, and the consumer is notified when it has yielded or ended.
///
/// Invariants:
/// 1. When no pull is pending it is *quiet* (at its start, at a yield, paused, stopped, or ended),
///    or it is *in flight*.
/// 2. Paused: the wait it was parked on is withdrawn and kept; the next pull restarts it. Stopped:
///    it was ready, and continues with the next pull; its strand may still be queued, but its turn
///    does nothing.
/// 3. In flight: a pull ended with a result while it was in a wait that cannot be withdrawn without
///    effect, or that holds a place in a line (`wait::in_line`). Then a *carrier*, a service of the
///    scope around that pull, holds it, and its region lies in the carrier's; the next pull
///    attaches to it. It continues to its next yield, its end, or a wait that can be withdrawn, and
///    is quiet there; that ends the carrier. A generator that waits in a line is stopped when it is
///    served: it has what it waited for, and none of its code runs without a pull. At the end of
///    its scope it is paused.
/// 4. Only a pull that is given up interrupts it: a wait that cannot be withdrawn is cancelled, all
///    frames are unwound before the pull ends, and the next pull throws errc::stream_interrupted.
/// 5. If it is dropped in flight, it is cancelled at once. Its frames are destroyed immediately if
///    nothing inside has to be awaited; otherwise the carrier owns the rest, and its scope joins
///    it.
/// 6. It is linked into the list of its parent region iff it is in flight, has entered a region, or
///    pulls another generator that is linked into its own. So a walk down the tree finds every
///    region and fiber in it.
/// 7. Pulling, pausing and destroying generators inside generators needs constant machine stack at
///    any depth, provided that each is a local or an argument of the one that pulls it.
struct generator_base : special_strand, context {
  generator_base() noexcept : context(region_kind::stream) {
    top = this;
    link_.index = 0;
  }
  generator_base(const generator_base&) = delete;
  generator_base& operator=(const generator_base&) = delete;

  /// Takes the root frame, which stores its outcome in `out_`.
  void adopt(frame& root) noexcept {
    root_ = &root;
    root.parent = nullptr;
    root.out = &out_;
    out_.own_frame(root.handle());  // until it is unwound, see destroy()
    leaf = &root;
  }

  /// Runs it if it is quiet; whether it has yielded. If not, settled() gives its state.
  bool run() {
    // In a register during the call: through `consumer_` each pull would wait for the one before.
    strand& consumer = *current;
    if (phase_ == phase::quiet && consumer.nesting < nesting_limit) [[likely]] {
      enter(consumer);
      root_->handle().resume();
      leave(consumer);
    } else {
      run_slowly();
    }
    return phase_ == phase::yielded;
  }
  /// The yielded value has been taken.
  void taken() noexcept { phase_ = phase::quiet; }
  /// The answer if nothing was yielded: end, or pending, and then `owner` will be notified. Throws
  /// the error once. `place` is the address of its owner, if that can be in a frame.
  pull settled(composite& owner, const void* place = nullptr);
  /// Records the memory of its root frame, which was allocated last.
  void know_frame(const frame& root) noexcept {
    if (last_generator_frame.holds(&root)) memory_ = last_generator_frame;
  }

  /// Called by the coroutine before control returns to its consumer.
  void yield() noexcept {
    phase_ = phase::yielded;
    leaf = nullptr;
  }

  /// The pull that it was armed for ends: 0 if it is quiet or in flight, 1 if it will notify when
  /// it is.
  unsigned withdraw_all() noexcept;
  void describe(dump_line& line) const;
  /// Its owner has moved: it no longer necessarily ends with the generator that pulled it.
  void forget_puller() noexcept {
    if (puller_ != nullptr) std::exchange(puller_, nullptr)->pulls_ = nullptr;
  }

  /// Destroys its frames, innermost first, and frees it. If it is in flight and something inside
  /// must be awaited first, returns what to wait for. REQUIRES: quiet or in flight, or a crash
  /// destroys it.
  core_ref drop() noexcept;
  /// Allows pausing but no interruption. REQUIRES: it has not run yet.
  void make_shielded() noexcept;

  context* beside = nullptr;  // the next generator in the consumer's region

 protected:
  ~generator_base() { forget_pulls(); }

 private:
  friend struct cancel_tree;
  friend struct generator_carrier;
  enum class phase : std::uint8_t { quiet, running, yielded, waiting, paused, stopped, ended };

  struct cut_off {
    std::string place;
    std::string awaited;
  };

  // It runs on the budget and the machine stack of the consumer's strand.
  void enter(strand& consumer) noexcept {
    consumer_ = &consumer;
    parent_ = consumer.top;
    budget = consumer.budget;
    nesting = static_cast<std::uint8_t>(consumer.nesting + 1);
    phase_ = phase::running;
    leaf = root_;
    current = this;
  }
  void leave(strand& consumer) noexcept {
    current = &consumer;
    if (budget < consumer.budget) consumer.budget = budget;  // it may have been cancelled meanwhile
    if (phase_ != phase::yielded) [[unlikely]]
      stopped_short();
  }
  void run_slowly();
  void go_on();
  /// Called when it did not yield: it waits, or has ended.
  void stopped_short() noexcept;
  void finish() noexcept;
  bool is_in_flight() const noexcept { return carrier_ != nullptr; }
  bool withdrawn() noexcept;
  bool pause() noexcept;
  bool pause_without_effect() noexcept;
  bool pause_unless_in_line() noexcept;
  void carry() noexcept;
  void end_flight() noexcept;
  unsigned leave_pull(pull_end why) noexcept;
  /// Stops it in flight, when it is not pulled and no longer needed there: true if it is quiet now,
  /// because it was ready or its wait could be withdrawn without effect.
  bool stop_in_flight() noexcept;
  bool stop_if_ready() noexcept;
  void stand_down_later(pull_end why) noexcept;
  bool quiet_after_turn() noexcept;
  void quiet_after_stop() noexcept;
  void notify() noexcept;
  void note_interrupted(const wait* on);
  [[noreturn]] void raise_interrupted() const;
  core_ref cancel_dropped() noexcept;
  void note_puller(const void* place) noexcept;
  void forget_pulls() noexcept;
  generator_base* owned_below() const noexcept;
  void destroy() noexcept;
  void destroy_frames() noexcept;
  bool begin_turn() noexcept override;
  void end_turn() noexcept override;

  frame* root_ = nullptr;
  strand* consumer_ = nullptr;
  wait* paused_ = nullptr;                // the withdrawn wait
  frame* paused_at_ = nullptr;            // the frame that awaits it
  generator_carrier* carrier_ = nullptr;  // while it is in flight
  std::unique_ptr<cut_off> cut_off_;      // where it was interrupted
  phase phase_ = phase::quiet;
  bool given_up_ = false;  // by its pull: pause or interrupt it at the end of its turn
  bool thrown_ = false;    // the error was thrown
  bool linked_ = false;    // see invariant 6
  bool dropped_ = false;   // only the carrier owns it
  bool in_line_ = false;   // waits in a line without a pull; see invariant 3
  // For invariant 7: the generator it last pulled, and the one that last pulled it.
  generator_base* pulls_ = nullptr;
  generator_base* puller_ = nullptr;
  const void* place_ = nullptr;
  frame_memory memory_;  // none if copying an argument created another generator
  arm_link link_;
  outcome<void> out_;
};

}  // namespace weir::detail
