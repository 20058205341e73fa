// SPDX-License-Identifier: MIT
// Other programs as child processes: run one and get its output, or talk to it while it runs.
//
// A process has a process group of its own, the default dispositions of all signals, an empty
// signal mask, and no descriptor but standard input, output and error. What cannot start throws a
// weir::error with the system's code that names the program.
//
// Ending one: when the owner of a running process is cancelled or ends, the process's group gets
// SIGTERM (and SIGCONT, so that a stopped process sees it), its input ends, and its output is read
// and thrown away, so that its last words do not block it. Members of the group that still exist
// after the grace get SIGKILL. The owner ends after the process was reaped. If the grace of the
// owner's scope is over before that, the group gets SIGKILL at once, and the loop is blocked until
// the process was reaped.
//
// A process that ends by itself is reaped at once; other members of its group are left alone.
//
// No handler for SIGCHLD is installed, and no child of others is waited for. If SIGCHLD is ignored
// the system keeps no exit status: errc::invalid_argument. In a durable run, outside of steps:
// errc::not_journaled. In a simulation: errc::invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/io/stream_core.hpp>
#include <weir/duration.hpp>
#include <weir/io/command.hpp>
#include <weir/stream/stream.hpp>
#include <weir/task.hpp>

namespace weir {

class scope;

namespace detail {
class process_core;
}

namespace io {

struct process_options {
  /// From SIGTERM to SIGKILL, when it is cancelled.
  duration grace = std::chrono::seconds(5);
  /// Of `run`: the bytes of output and errors together.
  std::int64_t max_output = 1024 * 1024;
};
static_assert(std::is_trivially_destructible_v<process_options>);

/// How a process has ended.
class exit_status {
 public:
  exit_status() noexcept = default;
  exit_status(int code, int signal) noexcept : code_(code), signal_(signal) {}

  /// What it returned; -1 if a signal has ended it.
  int code() const noexcept { return code_; }
  /// The signal that has ended it; 0: none has.
  int signal() const noexcept { return signal_; }
  /// It returned 0.
  bool ok() const noexcept { return code_ == 0 && signal_ == 0; }

 private:
  int code_ = 0;
  int signal_ = 0;
};

/// How a process has ended, and what it wrote.
class process_result : public exit_status {
 public:
  process_result(exit_status how, std::string out, std::string err) noexcept
      : exit_status(how), out_(std::move(out)), err_(std::move(err)) {}

  const std::string& out() const noexcept { return out_; }
  const std::string& err() const noexcept { return err_; }

 private:
  std::string out_;
  std::string err_;
};

/// A running process, or one that has ended. Moving is cheap; the scope that it was started in owns
/// the process, so destroying this ends nothing. Threads: home loop only. A moved-from one:
/// errc::closed.
class process {
 public:
  /// Runs a command to its end. The command is copied before it starts. Without `.input` the
  /// program reads an empty input (/dev/null). A program that ends, or closes its input, before it
  /// has read everything is no error. Ends when the process has ended and its output has: a
  /// descendant that keeps the output open is waited for.
  ///
  /// More than `max_output` bytes: the process is ended, errc::too_large. Cancels: the process is
  /// ended, see above.
  static task<process_result> run(const command& what, process_options options = {});
  static task<process_result> run(command&& what, process_options options = {});

  /// Starts a command. The process is a background child of `s`: it ends with the scope at the
  /// latest. Output that is not read stops it when the pipe is full. With `.input` its input ends
  /// after that; otherwise it is open until `close_input`. `max_output` is not used.
  static process spawn(scope& s, const command& what, process_options options = {});

  process(process&&) noexcept = default;
  process& operator=(process&&) noexcept = default;
  ~process();

  int pid() const;
  /// Writes everything to its input. One writer at a time: errc::busy. After `close_input`, with
  /// `.input`, and once it is being ended: errc::closed. If the process has closed its input:
  /// io::partial_write with std::errc::broken_pipe. The process object outlives the call.
  [[nodiscard]] auto write(std::span<const std::byte> bytes) {
    return detail::pending<detail::write_all_wait>({input(), bytes});
  }
  [[nodiscard]] auto write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  /// Its input ends after what was written.
  void close_input();

  /// What it writes to its standard output, or standard error, in pieces as they come, to the end.
  /// One reader each: errc::busy. A cancelled pull loses nothing.
  [[nodiscard]] stream<std::string> out();
  [[nodiscard]] stream<std::string> err();

  /// Waits until it has ended and was reaped; any number of fibers, at any time. Cancelled, it
  /// leaves the process alone.
  [[nodiscard]] task<exit_status> wait();

  // Below: for the library.
  explicit process(std::shared_ptr<detail::process_core> core) noexcept;

 private:
  detail::process_core& use(const char* what) const;
  detail::stream_core* input() const;

  std::shared_ptr<detail::process_core> core_;
};

}  // namespace io
}  // namespace weir
