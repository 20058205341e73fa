// SPDX-License-Identifier: MIT
#pragma once

namespace weir::detail {

class loop;

/// A message to a loop: on the heap, alone or as a member of something that is reference-counted.
/// Not in a coroutine frame, which may be destroyed while the message is on its way.
struct message {
  message() = default;
  message(const message&) = delete;
  message& operator=(const message&) = delete;
  /// Called on the loop's thread, between two turns. The message owns itself from now on.
  virtual void deliver(loop& here) noexcept = 0;
  /// Called if the loop ended before delivery, on the loop's or the poster's thread.
  virtual void refuse() noexcept = 0;
  message* next = nullptr;

 protected:
  ~message() = default;
};

}  // namespace weir::detail
