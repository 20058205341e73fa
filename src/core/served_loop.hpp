// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/loop_ref.hpp>
#include <weir/task.hpp>

#include "core/door.hpp"

namespace weir::detail {

class served_loop;
struct fiber;

/// The root task of a served loop. Created on the owner's thread, run on the loop.
class served_root {
 public:
  served_root() = default;
  served_root(const served_root&) = delete;
  served_root& operator=(const served_root&) = delete;
  virtual ~served_root() = default;
  virtual task<> run() = 0;
};

/// The owner's wait for the end of a served loop. It cannot be cancelled: when the owner's grace is
/// over, the loop is forced to end instead. So it is awaited as a quiet_wait_op.
class served_wait : public simple_wait<served_wait> {
 public:
  using args = std::shared_ptr<served_loop>;
  using result = void;
  explicit served_wait(args&& loop) noexcept : loop_(std::move(loop)) {}
  ~served_wait();
  bool try_now() const noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void take() noexcept {}

 private:
  friend class served_loop;
  void pass_on_force() noexcept;
  std::shared_ptr<served_loop> loop_;
};

/// A loop that serves others until it is asked to end: on its own thread, or simulated beside the
/// loop that starts it.
///
/// The loop that starts it is its owner: it is notified of the end, joins the thread, and is not
/// considered deadlocked until then. If started outside of loops, the caller joins it.
///
/// Threads: `end` may be called on any thread; the rest belongs to the owner.
class served_loop : public std::enable_shared_from_this<served_loop> {
 public:
  /// Starts it and returns once it accepts messages. Throws if the system has no more threads.
  static std::shared_ptr<served_loop> start(std::string name, std::unique_ptr<served_root> root);

  served_loop(std::string name, std::unique_ptr<served_root> root);
  served_loop(const served_loop&) = delete;
  served_loop& operator=(const served_loop&) = delete;
  ~served_loop();

  loop_ref ref() const noexcept { return ref_; }
  const std::string& name() const noexcept { return name_; }
  /// Cancels everything on it (kind shutdown); it ends after joining that. `force`: opens shields.
  /// A call that asks for no more than an earlier one does nothing.
  void end(bool force = false) noexcept;
  /// Joins the thread, if there is one. REQUIRES: outside of loops, or the thread is about to end.
  void join();

  // For environments.

  /// Makes the fiber that runs its root. Called once.
  fiber* make_root();
  void has_started(loop& here) noexcept;
  void has_ended_now() noexcept;
  void start_thread();

 private:
  friend class served_wait;
  struct end_message;
  struct ended_message;
  enum class asked : std::uint8_t { nothing, to_end, forced };
  void run_thread() noexcept;
  void notify_owner() noexcept;

  std::string name_;
  std::unique_ptr<served_root> root_;
  loop_ref ref_;
  std::thread thread_;
  door_ref owner_;  // written before it starts; null: started outside of loops

  // Guarded by the mutex.
  std::mutex mutex_;
  std::condition_variable changed_;
  door_ref door_;              // its own, once started
  std::exception_ptr failed_;  // why it could not start
  asked asked_ = asked::nothing;

  // Used on the owner's loop only.
  served_wait* waiter_ = nullptr;
  bool joined_ = false;
  answer_due due_;
};

/// Throws errc::would_deadlock on a loop: `what` has no scope, so its destructor would block it.
void require_no_loop_to_block(const std::string& what);

/// The task of a loop that only serves others: waits for cancellation.
task<> serve_idly();
std::unique_ptr<served_root> make_idle_root();

}  // namespace weir::detail
