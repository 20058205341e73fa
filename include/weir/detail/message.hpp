// SPDX-License-Identifier: MIT
#pragma once

namespace weir::detail {

class loop;

/// Something for a loop. Never lives inside a coroutine frame.
struct message {
  message() = default;
  message(const message&) = delete;
  message& operator=(const message&) = delete;
  /// On the loop's thread, between two turns. Owns itself from now on.
  virtual void deliver(loop& here) noexcept = 0;
  /// The loop ended before it arrived; on the loop's or on the poster's thread.
  virtual void refuse() noexcept = 0;
  message* next = nullptr;

 protected:
  ~message() = default;
};

}  // namespace weir::detail
