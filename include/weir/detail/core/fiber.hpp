// SPDX-License-Identifier: MIT
// The record of a fiber: its future, its strand, its own cancel region and its operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>

#include <weir/context.hpp>
#include <weir/detail/core/counted_ref.hpp>
#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/name.hpp>
#include <weir/outcome.hpp>

namespace weir {
class scope;
namespace detail {

class future_wait;
struct fiber;

/// What a future refers to: an outcome that is pending until it is settled once. Counted without
/// atomics: a future belongs to its loop (after the loop has ended, to the thread that holds it).
struct future_core {
  future_core() = default;
  future_core(const future_core&) = delete;
  future_core& operator=(const future_core&) = delete;

  virtual outcome_base& result() noexcept = 0;
  virtual void dispose() noexcept = 0;
  virtual void describe(dump_line& line) const;
  /// It was awaited: a failure in it is no longer unobserved.
  virtual void note_observed() noexcept {}
  /// Throws if the running code must not await it, because it would wait for itself.
  virtual void check_await() const {}
  /// The fiber that will settle it; null if that is not known.
  virtual const fiber* runner() const noexcept { return nullptr; }

  void retain(std::uint32_t times = 1) noexcept { state_ += times * one_ref; }
  void release() noexcept {
    state_ -= one_ref;
    if (state_ >= one_ref) return;
    state_ += one_ref;  // the value's destructor may use the core; it must not be freed twice
    dispose();
  }
  bool done() const noexcept { return (state_ & settled_bit) != 0; }
  /// The outcome is final, and nothing waits for it.
  void set_done() noexcept { state_ |= settled_bit; }
  /// The outcome is final: wakes all waiters in order of arrival.
  void settle_now() noexcept {
    set_done();
    if (waiters != nullptr) wake_waiters();
  }
  /// Some code must not await it: see check_await.
  bool guarded() const noexcept { return (state_ & guarded_bit) != 0; }
  void guard() noexcept { state_ |= guarded_bit; }
  void wake_waiters() noexcept;

  future_wait* waiters = nullptr;  // circular, first in, first out
  std::uint32_t home = 0;          // the serial number of its loop

 protected:
  ~future_core() = default;

 private:
  // Two flags, and above them the number of references: counting needs no masks.
  static constexpr std::uint32_t guarded_bit = 1;
  static constexpr std::uint32_t settled_bit = 2;
  static constexpr std::uint32_t one_ref = 4;
  std::uint32_t state_ = 0;
};

struct fiber : future_core, strand, context {
  fiber() noexcept : context(region_kind::fiber) {}

  /// Calls the operation; true: there is a frame to resume; false: it ended at once.
  virtual bool begin() = 0;
  /// Destroys the operation (callable or task) and the root frame.
  virtual void drop_operation() noexcept = 0;
  /// Destroys the value, to make room for an error of its cleanup.
  virtual void drop_value() noexcept = 0;
  void describe(dump_line& line) const override;
  void note_observed() noexcept override;
  const fiber* runner() const noexcept override { return this; }
  /// Whether a waiter exists besides the scope that stops a service.
  bool awaited_by_user() const noexcept;

  // The flags come first: they fit into the padding at the end of `context`.
  bool name_copied : 1 = false;
  bool background : 1 = false;
  bool starting : 1 = false;    // inside scope::start: a failure goes to the starter
  bool hidden : 1 = false;      // not counted in size()
  bool driven : 1 = false;      // it is a driven_fiber
  bool isolated : 1 = false;    // its failure stays in its future, whatever the scope's policy
  bool observed : 1 = false;    // it was awaited
  bool unobserved : 1 = false;  // in the scope's list of failures never awaited
  bool carries : 1 = false;     // it is a generator_carrier
  bool cleaning : 1 = false;    // its defers have been started
  bool ended = false;           // not a bit: it is read right after it was set
  union {
    fiber* previous = nullptr;  // siblings, in spawn order
    entry* registration;        // of a background child: its place in the LIFO stack
  };
  fiber* following = nullptr;
  const char* name = nullptr;
  std::source_location site;  // where it was spawned

 protected:
  ~fiber() {
    if (name_copied) [[unlikely]]
      delete[] name;
  }
};

/// The call chain that the work of a driven fiber belongs to; shared by all loops that work for it.
class trail : public counted<trail> {
 public:
  trail() noexcept = default;
  virtual ~trail() = default;
};

using trail_ref = counted_ref<trail>;

/// A fiber without its own coroutine: on its turn, when no frame is left, `drive` decides what to
/// do next. So it can be idle without a frame. As a service it is its own entry in the stack of its
/// scope.
struct driven_fiber : fiber, entry {
  driven_fiber() noexcept : entry(kind::background) { driven = begun = true; }
  enum class next_step : std::uint8_t {
    run,    // there is a frame to resume
    pause,  // it is parked, or in the ready queue
    end,    // its result is set
  };
  /// REQUIRES: it is the running strand and has no frame. If it was unwound, its result is
  /// cancelled.
  virtual next_step drive() = 0;
  /// It has ended, with all its cleanup; its scope is notified next.
  virtual void finished() noexcept = 0;
  /// What it currently works on, for code that runs in a child of `inside`, or directly in it if
  /// that is null.
  virtual trail_ref trail_of(const scope* inside) = 0;
  /// What a dump prints besides its state.
  virtual void add_details(dump_line& line) const = 0;
  bool begin() final { return true; }
  fiber* service() noexcept final { return this; }
  void discard() noexcept final {}

 protected:
  ~driven_fiber() = default;
};

/// A fiber with its result; `Op` (a task or a callable) is destroyed when the fiber ends.
template <class T>
struct fiber_of : fiber {
  outcome_base& result() noexcept final { return out; }
  void drop_value() noexcept final { out.drop_value(); }
  outcome<T> out;

 protected:
  ~fiber_of() = default;
};

/// Runs an existing task: its frame is the operation.
template <class T>
struct task_fiber final : fiber_of<T>, frame_allocated {
  explicit task_fiber(task<T>&& t) noexcept { this->out.own_frame(t.release()); }
  bool begin() override {
    frame& root = frame_of(this->out.frame());
    root.out = &this->out;
    this->leaf = &root;
    return true;
  }
  void drop_operation() noexcept override { this->out.destroy_frame(); }
  void dispose() noexcept override { delete this; }
};

/// Calls `op` on its first turn and runs the task it returns. `Make` turns it into a task.
template <class T, class Op, class Make>
struct call_fiber final : fiber_of<T>, frame_allocated {
  static_assert(alignof(Op) <= 16, "the callable is over-aligned; keep what needs it elsewhere");
  template <class G>
  explicit call_fiber(G&& g) {
    new (static_cast<void*>(std::addressof(op))) Op(std::forward<G>(g));
  }
  ~call_fiber() { drop_operation(); }
  bool begin() override {
    try {
      this->out.own_frame(Make::task_of(op, static_cast<context&>(*this)).release());
    } catch (...) {
      this->out.set_error(std::current_exception());
      return false;
    }
    frame& root = frame_of(this->out.frame());
    root.out = &this->out;
    this->leaf = &root;
    return true;
  }
  void drop_operation() noexcept override {
    this->out.destroy_frame();
    if (std::exchange(holds_op, false)) op.~Op();
  }
  void dispose() noexcept override { delete this; }

  bool holds_op = true;
  union {
    Op op;
  };
};

/// The fiber that runs on this thread right now; null outside.
fiber* current_fiber() noexcept;

}  // namespace detail
}  // namespace weir
