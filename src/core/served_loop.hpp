// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <weir/detail/wait.hpp>
#include <weir/loop_ref.hpp>
#include <weir/task.hpp>

#include "core/door.hpp"

namespace weir::detail {

class served_loop;
struct fiber;

/// What a served loop does by itself. Made on the thread of its owner, run on the loop.
class served_root {
 public:
  served_root() = default;
  served_root(const served_root&) = delete;
  served_root& operator=(const served_root&) = delete;
  virtual ~served_root() = default;
  virtual task<> run() = 0;
};

/// Waits for the end of a served loop. Cancelled, it tells the loop to end and goes on waiting.
class served_wait : public simple_wait<served_wait> {
 public:
  using args = std::shared_ptr<served_loop>;
  using result = void;
  explicit served_wait(args&& loop) noexcept : loop_(std::move(loop)) {}
  ~served_wait();
  bool try_now() const noexcept;
  void arm();
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void take() noexcept {}
  void ended() noexcept;

 private:
  std::shared_ptr<served_loop> loop_;
};

/// A loop that serves others until it is told to end: on a thread of its own, or simulated beside
/// the loop that starts it.
///
/// Threads: `end` may be called on any thread; the rest belongs to the owner. Its state behind the
/// mutex; its messages are parts of it, so it is kept alive by whoever posted one.
class served_loop : public std::enable_shared_from_this<served_loop> {
 public:
  /// Starts it and returns once it can be posted to. Throws if the system has no more threads.
  static std::shared_ptr<served_loop> start(std::string name, std::unique_ptr<served_root> root);

  served_loop(std::string name, std::unique_ptr<served_root> root);
  served_loop(const served_loop&) = delete;
  served_loop& operator=(const served_loop&) = delete;
  ~served_loop();

  loop_ref ref() const noexcept { return ref_; }
  const std::string& name() const noexcept { return name_; }
  /// Cancels everything on it (kind shutdown); it ends when that is joined. The first call counts.
  void end() noexcept;
  bool has_ended() const noexcept;
  /// Waits for the thread. REQUIRES: not simulated, and not on a loop.
  void join();

  // For environments.

  /// The root of the loop; null after it was made.
  fiber* make_root();
  void has_started(loop& here) noexcept;
  void has_ended_now() noexcept;
  /// Runs it on a new thread.
  void start_thread();

 private:
  friend class served_wait;
  struct end_message;
  struct ended_message;
  void run_thread() noexcept;

  std::string name_;
  std::unique_ptr<served_root> root_;
  loop_ref ref_;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  door_ref door_;                  // its own, once it has started
  door_ref owner_;                 // of whoever waits for its end
  served_wait* waiter_ = nullptr;  // on the owner's loop only
  std::exception_ptr failed_;      // to start
  bool asked_ = false;
  bool ended_ = false;
};

/// What a loop does that does nothing by itself: it waits to be cancelled.
task<> serve_idly();
std::unique_ptr<served_root> make_idle_root();

}  // namespace weir::detail
