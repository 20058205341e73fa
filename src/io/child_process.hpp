// SPDX-License-Identifier: MIT
// A child process, its group, and waiting for its end.
//
// Invariants:
// 1. It is reaped by a wait for this one process, exactly once: by a try of `exit_wait`, or by
//    `end_now`. Its number is signalled only before that, and by its descriptor, which never means
//    another process.
// 2. Its group has the number that the process had. The system gives that number to no other
//    process while the group has a member, reaped leader or not. Where the kernel can signal a
//    group by the descriptor (6.9), that is used: it cannot mean a later group with the same
//    number.
#pragma once

#include <string>

#include <weir/detail/io/source.hpp>
#include <weir/io/process.hpp>

#include "core/fork_watch.hpp"
#include "io/reactor.hpp"
#include "io/system.hpp"

namespace weir::detail {

class child_process final : public io_source, private reactor_entry {
 public:
  /// `descriptor`: from open_process.
  child_process(int pid, owned_descriptor descriptor, const std::string& program);
  ~child_process() override;

  int pid() const noexcept { return pid_; }
  bool reaped() const noexcept { return reaped_; }
  /// How it has ended. REQUIRES: reaped. Throws if its status was lost.
  io::exit_status status() const;

  /// Reaps it if it has ended. True: it is reaped.
  bool try_reap() noexcept;
  /// Signals the group, and the process itself, which may have left the group. False: neither has
  /// a member that this process may signal. Signal 0 asks only.
  bool signal(int number) noexcept;
  /// SIGKILL, and blocks until it is reaped. Without effect in a forked child.
  void end_now() noexcept;
  std::string text() const override { return text_; }

 private:
  int watch(io_side side) noexcept override;
  void unwatch(io_side side) noexcept override;
  void happened(reactor& from, std::uint32_t events) noexcept override;
  bool reap(int flags) noexcept;
  int signal_group(int number) const noexcept;

  int pid_;
  owned_descriptor descriptor_;
  std::string text_;
  process_mark process_;
  io::exit_status status_;
  int lost_ = 0;  // the error of the wait, if somebody else has reaped it
  bool reaped_ = false;
};

/// A descriptor that means this process as long as it is open, close-on-exec; empty, with errno, if
/// there is none.
owned_descriptor open_process(int pid) noexcept;

/// Completes when the process has been reaped.
class exit_wait : public io_operation<exit_wait> {
 public:
  struct args {
    child_process* child;
  };
  using result = void;

  explicit exit_wait(args&& a) noexcept
      : io_operation(a.child, io_side::read, "wait"), child_(a.child) {}
  bool try_now() noexcept { return child_->reaped() || !may_try() || child_->try_reap(); }
  void take() { rethrow(); }

 private:
  child_process* child_;
};

}  // namespace weir::detail
