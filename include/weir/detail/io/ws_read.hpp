// SPDX-License-Identifier: MIT
// Waits for messages of a WebSocket connection. They read from its socket, on whose read side they
// wait; what has come of a message stays in the connection until it is whole.
#pragma once

#include <optional>
#include <utility>

#include <weir/detail/io/source.hpp>
#include <weir/ws/message.hpp>

namespace weir::detail {

class ws_core;

/// What both waits share: when they try, wait and leave.
class ws_wait : public io_operation<ws_wait> {
 public:
  struct args {
    ws_core* core;
    bool discards = false;  // it reads for a close, and makes way for others
  };

  explicit ws_wait(args&& a, const char* what) noexcept;
  bool try_now() noexcept;
  void link() override;
  cancel_result withdraw() noexcept override;

 protected:
  ~ws_wait() = default;
  /// Takes what was asked for, if it is there.
  virtual bool take_ready(ws_core& core) = 0;

 private:
  bool try_core();

  ws_core* core_;
  bool discards_;
};

/// See ws::connection::read.
class ws_read_wait : public ws_wait {
 public:
  using result = std::optional<ws::message>;

  explicit ws_read_wait(args&& a) noexcept : ws_wait(std::move(a), "read") {}
  result take() {
    rethrow();
    return std::move(message_);
  }

 private:
  bool take_ready(ws_core& core) override;
  result message_;
};

/// See ws::connection::read_piece.
class ws_piece_wait : public ws_wait {
 public:
  using result = std::optional<ws::piece>;

  explicit ws_piece_wait(args&& a) noexcept : ws_wait(std::move(a), "read_piece") {}
  result take() {
    rethrow();
    return std::move(piece_);
  }

 private:
  bool take_ready(ws_core& core) override;
  result piece_;
};

}  // namespace weir::detail
