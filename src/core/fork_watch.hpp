// SPDX-License-Identifier: MIT
// What a forked child must not share with its parent: locks, and bells that wake a loop.
//
// `fork` copies memory and shares open files. A child that execs loses them (everything is opened
// close-on-exec); one that does not would keep a lock after its parent has died, and take the
// wake-ups of its parent's loops. So the child gives up what is watched here before `fork` returns.
#pragma once

namespace weir::detail {

/// While it exists, no thread of this process forks: for what is made in several steps and must be
/// watched from the first one on. Short, and nothing that forks or watches by itself. The first one
/// of a process throws std::system_error if forks cannot be watched.
class no_forks {
 public:
  no_forks();
  no_forks(const no_forks&) = delete;
  no_forks& operator=(const no_forks&) = delete;
  ~no_forks();
};

/// Something that is given up in a forked child. What derives from it is made and watched, and
/// unwatched and given up again, under one `no_forks` each: another thread may fork at any time.
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
  void watch(const no_forks&) noexcept;
  void unwatch(const no_forks&) noexcept;

 private:
  friend struct fork_list;
  fork_watch* previous_ = nullptr;
  fork_watch* next_ = nullptr;
};

/// How often this process was forked off, counted from its first ancestor that used weir. Whoever
/// remembers it can tell later whether it is still in the process that made it.
class process_mark {
 public:
  /// std::system_error if forks cannot be watched.
  process_mark();
  bool is_here() const noexcept;

 private:
  unsigned generation_;
};

}  // namespace weir::detail
