// SPDX-License-Identifier: MIT
// What a forked child must not share with its parent: locks of files.
//
// `fork` copies memory and shares open files. `exec` closes them (all are close-on-exec); without
// it the child would keep a lock after its parent has died. So the child gives up all watched
// objects before `fork` returns.
#pragma once

namespace weir::detail {

/// While it exists, no thread of this process can fork: for objects that are created in several
/// steps and must be watched from the first. Keep it short, and neither fork nor nest it. The first
/// one throws std::system_error if forks cannot be watched.
class no_forks {
 public:
  no_forks();
  no_forks(const no_forks&) = delete;
  no_forks& operator=(const no_forks&) = delete;
  ~no_forks();
};

/// An object that a forked child gives up. Derived classes create and watch it under one
/// `no_forks`, and unwatch and release it under another: any other thread may fork at any time.
/// Threads: any. Costs: a lock each.
class fork_watch {
 public:
  fork_watch() noexcept = default;
  fork_watch(const fork_watch&) = delete;
  fork_watch& operator=(const fork_watch&) = delete;

  /// Called in the child, by the forking thread, before anything else runs. Must be
  /// async-signal-safe.
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

/// Remembers the process that made it: `is_here()` is false in a child forked after that.
class process_mark {
 public:
  /// Throws std::system_error if forks cannot be watched.
  process_mark();
  bool is_here() const noexcept;

 private:
  unsigned generation_;
};

}  // namespace weir::detail
