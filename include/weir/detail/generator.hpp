// SPDX-License-Identifier: MIT
// A coroutine that is driven by whoever pulls it.
#pragma once

#include <cstdint>
#include <exception>

#include <weir/context.hpp>
#include <weir/detail/frame.hpp>
#include <weir/detail/wait.hpp>
#include <weir/outcome.hpp>

namespace weir::detail {

/// What a pull answers.
enum class pull : std::uint8_t {
  value,
  end,
  pending,  // something must happen first
  again,    // the turn was long enough: ask again in the next one
};

/// A coroutine with a strand and a cancel region of its own, inside the region of its consumer. It
/// runs on the consumer's turn until it yields, ends, or waits; then its strand goes on by itself,
/// and the consumer is told when there is something to take.
///
/// Invariants:
/// 1. It runs, waits or is queued only while a pull is pending. When a pull ends, it is *quiet*: at
///    its start, at a yield, paused, or ended; nothing of it is in a queue or in a list.
/// 2. Paused: the wait it was parked on is withdrawn and kept; the next pull starts it again.
/// 3. What cannot be withdrawn without effect is not paused but interrupted: all frames are unwound
///    and the next pull throws errc::stream_interrupted.
struct generator_base : special_strand, context {
  generator_base() noexcept : context(region_kind::stream) {
    top = this;
    link_.index = 0;
  }
  generator_base(const generator_base&) = delete;
  generator_base& operator=(const generator_base&) = delete;

  /// Takes the root frame, which leaves its outcome in `out_`.
  void adopt(frame& root) noexcept {
    root_ = &root;
    root.parent = nullptr;
    root.out = &out_;
    out_.own_frame(root.handle());  // until it is unwound, see destroy()
    leaf = &root;
  }

  /// Runs it if it is quiet. Afterwards `yielded()`, or what settled() says.
  void run() {
    if (phase_ == phase::quiet) [[likely]] {
      enter();
      leaf->handle().resume();
      leave();
    } else {
      run_slowly();
    }
  }
  bool yielded() const noexcept { return phase_ == phase::yielded; }
  /// The yielded value has been taken.
  void taken() noexcept { phase_ = phase::quiet; }
  /// How things are if nothing was yielded: end, or pending, and then `owner` will be told. Throws
  /// the error, once.
  pull settled(composite& owner);

  /// Called by the coroutine on its way to its consumer.
  void yield() noexcept {
    phase_ = phase::yielded;
    leaf = nullptr;
  }

  /// Makes it quiet: 0 if it is, 1 if it will tell when it is.
  unsigned stand_down() noexcept;
  void describe(dump_line& line) const;

  /// Destroys its frames, innermost first. REQUIRES: quiet, or the world is dead.
  void destroy() noexcept;
  /// It is paused where it can be, but never interrupted. Called before its first run.
  void make_shielded() noexcept;

  context* beside = nullptr;  // the next generator in the consumer's region

 protected:
  ~generator_base() = default;

 private:
  enum class phase : std::uint8_t { quiet, running, yielded, waiting, paused, ended };

  // The consumer's strand lends its budget, and its place on the machine stack.
  void enter() noexcept {
    strand& consumer = *current;
    consumer_ = &consumer;
    parent_ = consumer.top;
    budget = consumer.budget;
    nesting = static_cast<std::uint8_t>(consumer.nesting + 1);
    phase_ = phase::running;
    leaf = root_;
    current = this;
  }
  void leave() noexcept {
    strand& consumer = *consumer_;
    current = &consumer;
    if (budget < consumer.budget) consumer.budget = budget;  // it may have been cancelled meanwhile
    if (phase_ != phase::yielded) [[unlikely]]
      stopped_short();
  }
  void run_slowly();
  /// It did not yield: it waits, or has ended.
  void stopped_short() noexcept;
  void finish() noexcept;
  bool pause() noexcept;
  void tell() noexcept;
  bool begin_turn() noexcept override { return true; }
  void end_turn() noexcept override;

  frame* root_ = nullptr;
  strand* consumer_ = nullptr;
  wait* paused_ = nullptr;      // the withdrawn wait
  frame* paused_at_ = nullptr;  // the frame that awaits it
  phase phase_ = phase::quiet;
  bool pausing_ = false;  // to be made quiet at the end of its turn
  bool told_ = false;     // the error was thrown
  arm_link link_;
  outcome<void> out_;
};

}  // namespace weir::detail
