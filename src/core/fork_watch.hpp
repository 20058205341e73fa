// SPDX-License-Identifier: MIT
// What a forked child must not share with its parent: locks, and bells that wake a loop.
//
// `fork` copies memory and shares open files. A child that execs loses them (everything is opened
// close-on-exec); one that does not would keep a lock after its parent has died, and take the
// wake-ups of its parent's loops. So the child gives up what is watched here before `fork` returns.
#pragma once

namespace weir::detail {

/// Something that is given up in a forked child. What derives from it calls `watch` when it is
/// complete, and `unwatch` first when it is destroyed: another thread may fork at any time.
/// Threads: any. Costs: a lock each.
class fork_watch {
 public:
  fork_watch() noexcept = default;
  fork_watch(const fork_watch&) = delete;
  fork_watch& operator=(const fork_watch&) = delete;

  /// Called in the child, by the thread that forked, before anything else runs. May only do what a
  /// signal handler may.
  virtual void in_child() noexcept = 0;

 protected:
  ~fork_watch() = default;
  void watch();
  void unwatch() noexcept;

 private:
  friend struct fork_list;
  fork_watch* previous_ = nullptr;
  fork_watch* next_ = nullptr;
};

/// How often this process was forked off, counted from its first ancestor that used weir. Whoever
/// remembers it can tell later whether it is still in the process that made it.
class process_mark {
 public:
  process_mark() noexcept : generation_(generation()) {}
  bool is_here() const noexcept { return generation_ == generation(); }

 private:
  static unsigned generation() noexcept;
  unsigned generation_;
};

}  // namespace weir::detail
