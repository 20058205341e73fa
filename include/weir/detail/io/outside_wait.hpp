// SPDX-License-Identifier: MIT
// A wait for an operation of another library that writes its result into the wait.
//
// Invariants:
// 1. The operation holds the address of the wait until it has finished. Therefore the wait answers
//    `later` or `no` to a cancellation, so that its frame, and with it the buffers of the
//    operation, stays until then. Frames that could be destroyed earlier do not wait here:
//    simulated loops may crash, and durable runs are evicted; both are refused.
// 2. `finished` is called once per start, on any thread, after the result was stored. On the
//    thread of the loop the wait completes at once, elsewhere by a message, which publishes the
//    result. The message is not a part of the wait: a message is never in a frame.
#pragma once

#include <exception>

#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/loop_ref.hpp>

namespace weir::detail {

class guest_loop;
class loop;

class outside_wait : public wait {
 public:
  bool poll() override { return false; }
  bool try_now() const noexcept { return false; }
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;

  /// The guest on whose loop it waits; null: another loop.
  guest_loop* guest() const noexcept { return guest_; }
  /// The waiting loop.
  loop_ref home() const noexcept;
  /// Called by the loop when the operation has finished.
  void arrived() noexcept;

 protected:
  enum class state : std::uint8_t { idle, started, leaving, finished };

  outside_wait() noexcept = default;
  ~outside_wait() = default;

  /// The operation is about to start. False: it may not, and the wait is complete with its error.
  bool begin() noexcept;
  void finished() noexcept;
  /// The operation was destroyed unfinished: errc::abandoned.
  void abandoned() noexcept;
  /// Whether the result is a value that would be lost with the wait.
  virtual bool has_value() const noexcept = 0;

  std::exception_ptr problem_;  // why the operation has no result
  state state_ = state::idle;

 private:
  struct answer;
  loop* home_ = nullptr;
  guest_loop* guest_ = nullptr;
  answer_due due_;
};

}  // namespace weir::detail
