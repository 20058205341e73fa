// SPDX-License-Identifier: MIT
// The promise base of every coroutine of weir, and the strand its frames belong to.
#pragma once

#include <bit>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <source_location>

#include <weir/outcome.hpp>

namespace weir {
class context;
namespace detail {

class wait;
class loop;
class run_seam;
struct frame;

/// A chain of frames that is resumed as one: its leaf frame and the wait it is parked on.
///
/// Invariants:
/// 1. At most one strand of a loop runs at a time: `current`.
/// 2. A strand is parked on exactly one wait, or is in the ready queue, or runs, or is *held*
///    (about to be unwound, waiting for the children of a scope whose body it runs), or has ended.
/// 3. Frames of a cancelled strand are destroyed leaf first, when none is on the machine stack.
struct strand {
  strand() = default;
  strand(const strand&) = delete;
  strand& operator=(const strand&) = delete;

  strand* next = nullptr;    // ready queue
  frame* leaf = nullptr;     // the frame to resume
  wait* parked = nullptr;    // null: not parked
  context* top = nullptr;    // the innermost cancel region
  std::uint16_t rank = 0;    // see below
  std::int16_t budget = 0;   // awaits left in this turn; see below
  std::uint8_t nesting = 0;  // resume() calls of this strand on the machine stack
  bool special = false;      // not a fiber, see special_strand
  bool queued : 1 = false;
  bool needs_start : 1 = false;        // `parked` is started on its next turn
  bool unwinding : 1 = false;          // destroy frames instead of resuming the leaf
  bool destroying : 1 = false;         // a frame's destructors are running right now
  bool unwind_when_done : 1 = false;   // the parked wait answered `later`
  bool unarmed_deadlines : 1 = false;  // an entered region's timer is not armed yet
  bool begun : 1 = false;
  bool preempted : 1 = false;  // gave up its turn although it could have continued

  // `rank` is the priority in a simulation (0: none yet); elsewhere it counts the awaits that the
  // strand has made on the depth-first list of its loop.
  //
  // `budget` is not at a multiple of four: there clang-19 would read four bytes right after writing
  // two, which no processor forwards, for each item of a stream. For the same reason `nesting` is
  // not beside the flags: each turn resets both, and g++ would do that by one access of two bytes.
};

/// A strand that is not a fiber: a generator, or the pull of a stream.
struct special_strand : strand {
  special_strand() noexcept { special = begun = true; }
  /// Starts its turn; returns whether there is a frame to resume.
  virtual bool begin_turn() noexcept = 0;
  /// Ends its turn; `current` is already reset.
  virtual void end_turn() noexcept = 0;
  /// Frees it. REQUIRES: it is in no queue.
  virtual void dispose() noexcept = 0;

  // No longer needed, but still queued: the loop frees it instead of running its turn.
  bool stray = false;
  special_strand* next_stray = nullptr;
  special_strand** at_stray = nullptr;

 protected:
  ~special_strand() = default;
};

/// The running strand of this thread; null outside fibers.
inline constinit thread_local strand* current = nullptr;

/// The loop of this thread; null outside loops.
inline constinit thread_local loop* current_loop = nullptr;
/// Its serial number; 0 outside loops.
inline constinit thread_local std::uint32_t loop_serial = 0;
/// A crash destroys frames on this thread: messages that their destructors send are discarded.
inline constinit thread_local bool crashing = false;
/// The durable run whose code runs on this thread; null outside of runs and inside of steps.
inline constinit thread_local run_seam* current_run = nullptr;
/// The serial number of its inner loop; 0 without a run.
inline constinit thread_local std::uint32_t run_serial = 0;
inline std::uint32_t current_loop_serial() noexcept { return loop_serial; }

inline constexpr std::uint8_t nesting_limit = 64;

inline constexpr std::size_t frame_step = 16;
inline constexpr std::size_t frame_classes = 257;  // blocks of up to 4 KB, in steps of 16 bytes

/// Free blocks of one size; see frame_cache.cpp.
struct free_block {
  free_block* next;
};
struct magazine {
  free_block* first = nullptr;
  std::size_t room = 0;  // for how many more; 0 also before the first use
};
/// Those of this thread. Below only the common case: a library that was built with a sanitizer
/// leaves them empty, and every block comes from `allocate_slowly`.
inline constinit thread_local magazine loaded_magazines[frame_classes] = {};
void* allocate_slowly(std::size_t bytes);
void deallocate_slowly(void* memory, std::size_t bytes) noexcept;

inline void* allocate_frame(std::size_t bytes) {
  const std::size_t size_class = (bytes + frame_step - 1) / frame_step;
  if (size_class < frame_classes) [[likely]] {
    magazine& m = loaded_magazines[size_class];
    if (free_block* const taken = m.first) [[likely]] {
      m.first = taken->next;
      ++m.room;
      return taken;
    }
  }
  return allocate_slowly(bytes);
}
inline void deallocate_frame(void* memory, std::size_t bytes) noexcept {
  const std::size_t size_class = (bytes + frame_step - 1) / frame_step;
  if (size_class < frame_classes) [[likely]] {
    magazine& m = loaded_magazines[size_class];
    if (m.room != 0) [[likely]] {
      --m.room;
      m.first = ::new (memory) free_block{m.first};
      return;
    }
  }
  deallocate_slowly(memory, bytes);
}

/// An empty base: objects of derived types live in the frame cache. Only one base of a class may
/// derive from it. The class is final, or has a virtual destructor, or frees itself by a virtual
/// `dispose()`: the size that is freed must be the size that was allocated.
struct frame_allocated {
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
  // Over-aligned types: the cache does not know them.
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
  }
  static void operator delete(void* memory, std::size_t bytes,
                              std::align_val_t alignment) noexcept {
    ::operator delete(memory, bytes, alignment);
  }
};

/// A source location as its underlying pointer: as a default argument of await_transform a pointer
/// takes no space in the awaiting coroutine's frame, while g++ reserves space for class types.
using place_pointer = decltype(__builtin_source_location());
inline std::source_location as_location(place_pointer place) noexcept {
  static_assert(sizeof(std::source_location) == sizeof(void*));
  return std::bit_cast<std::source_location>(place);
}

/// The common part of every coroutine of weir: its awaiter, the destination of its outcome, and its
/// source location. It is the first part of every promise and no promise is over-aligned (results
/// live in the outcome, not in the frame), so the coroutine handle can be computed from its
/// address.
struct frame : frame_allocated {
  frame* parent = nullptr;
  outcome_base* out = nullptr;
  std::source_location awaiting;  // the await it is suspended in
  std::source_location function;  // the coroutine itself

  std::coroutine_handle<> handle() noexcept {
    return std::coroutine_handle<frame>::from_promise(*this);
  }
};
static_assert(sizeof(frame) == 4 * sizeof(void*), "frame_allocated takes no space");
inline frame& frame_of(std::coroutine_handle<> handle) noexcept {
  return std::coroutine_handle<frame>::from_address(handle.address()).promise();
}

/// The strand's budget is used up, or it is cancelled: starts `child` in a later turn, or unwinds.
bool give_up_turn(strand& s, frame& me, frame& child);
/// The budget is used up: starts `child` in a later turn; at once if the strand is cancelled, which
/// is then unwound at the child's first await.
bool give_up_turn_quietly(strand& s, frame& me, frame& child);
/// Records where an exception left this frame, and keeps it as the frame's outcome.
void frame_failed(frame& me) noexcept;
[[noreturn]] void fatal_destructor(strand& s) noexcept;

/// Starts the coroutine `child`, which `me` awaits. Returns whether `me` stays suspended. Nested
/// resume() is the fast path; beyond the limit the strand's turn resumes the child instead, which
/// keeps the machine stack bounded on compilers without guaranteed tail calls.
inline bool enter_child(strand& s, frame& me, frame& child) {
  s.leaf = &child;
  if (s.nesting >= nesting_limit) return true;
  ++s.nesting;
  child.handle().resume();
  --s.nesting;
  return s.leaf != &me;
}

inline bool start_child(frame& me, outcome_base& out) {
  frame& child = frame_of(out.frame());
  child.parent = &me;
  child.out = &out;
  strand& s = *current;
  if (--s.budget < 0) [[unlikely]]
    return give_up_turn(s, me, child);
  return enter_child(s, me, child);
}

/// The end of a coroutine: control returns to the awaiting frame, directly or by the strand's turn.
struct final_await {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> me) const noexcept {
    strand& s = *current;
    if (s.destroying) [[unlikely]]
      fatal_destructor(s);
    s.leaf = me.promise().parent;
  }
  void await_resume() const noexcept {}
};

}  // namespace detail
}  // namespace weir
