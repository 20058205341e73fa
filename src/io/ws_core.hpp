// SPDX-License-Identifier: MIT
// A WebSocket connection without its calls.
//
// Invariants:
// 1. `in_` has what was received and not decoded; `pieces_` what was decoded and not read. Without
//    a reader decoding stops at the first byte of a message, with one at its end.
// 2. Frames are sent whole. While a write is under way nothing else is sent; what is left of one
//    that was cancelled goes to `out_`, which is sent before anything else.
// 3. Control frames wait in places of their own, one for each kind, so their number is bounded: a
//    newer ping replaces one that was not answered yet. They are sent when no write is under way,
//    as far as that is possible at once; otherwise with the next write, read or ping.
// 4. Nothing is sent behind a close frame, and nothing is read behind that of the peer. If sending
//    has failed, what the peer had sent before is still read.
// 5. `code_` is set once, when the connection has ended. The socket is closed by the timer, by
//    `finish` or by the destructor, never while one of its waits tries.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/core/home.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/event.hpp>
#include <weir/io/socket.hpp>
#include <weir/task.hpp>
#include <weir/ws/message.hpp>
#include <weir/ws/options.hpp>

#include "io/http_buffer.hpp"
#include "io/ws_frame.hpp"

namespace weir::detail {

/// Throws errc::invalid_argument.
void check_ws_options(const ws::ws_options& options);

class ws_core {
 public:
  enum class role : std::uint8_t { server, client };

  /// `in`: what was received behind the handshake.
  ws_core(io::socket socket, http_buffer in, role as, const ws::ws_options& options,
          std::string subprotocol);
  ws_core(const ws_core&) = delete;
  ws_core& operator=(const ws_core&) = delete;
  ~ws_core();

  // For the waits.
  stream_core* source() const noexcept { return socket_.core(); }
  /// Decodes what is there; then whether a message, or any part of one, is ready.
  bool has_message();
  bool has_piece();
  ws::message take_message();
  ws::piece take_piece();
  /// Whether a message is being read in pieces.
  bool in_pieces() const noexcept { return in_pieces_; }
  /// Receives what is there. False: nothing is; the connection may have ended by that.
  bool receive();
  /// A read that waits tries again after the other fibers have run.
  void retry_read_later() noexcept;
  /// How often one try receives: a peer that sends without end must not hold up the loop.
  static constexpr int max_receives = 64;
  bool ended() const noexcept { return code_ != 0; }
  /// Why it has failed, once.
  std::optional<ws_fault> take_fault() noexcept { return std::exchange(fault_, std::nullopt); }
  /// A read begins: it goes before a close that drops what comes.
  void make_way() noexcept;
  /// A read that waited has ended, or was withdrawn.
  void reader_left() {
    if (closing_) changed_.set();
  }

  // For the connection.
  task<> write(ws_opcode opcode, std::span<const std::byte> payload);
  task<> close(int code, std::string reason);
  /// The server drains.
  void go_away() noexcept;
  /// The end of a server's connection: whatever its code has left to be done.
  task<> finish(int code);
  int code() const noexcept { return code_; }
  const std::string& reason() const noexcept { return said_; }
  const std::string& subprotocol() const noexcept { return subprotocol_; }
  io::socket& socket() noexcept { return socket_; }

 private:
  class frame;
  class owed;
  struct timer final : deadline_node {
    timer(ws_core& owner, void (ws_core::*call)() noexcept) noexcept : of(owner), fire(call) {}
    void expired() noexcept override { (of.*fire)(); }
    ws_core& of;
    void (ws_core::*fire)() noexcept;
  };

  void decode(bool whole);
  void handle(const ws_reader::found& f);
  void peer_closed(std::string_view payload);
  void fail(ws_fault fault);
  void end(int code) noexcept;
  bool has_data() const noexcept { return message_ready_ || !pieces_.empty(); }
  /// Receives and decodes as much as may be kept without a reader.
  void take_in() noexcept;
  void flush() noexcept;
  bool refill();
  bool owes() const noexcept;
  void require_writable(const char* what);
  void queue_close(int code, std::string_view reason);
  void append(std::string& out, ws_opcode opcode, std::string_view payload);
  ws_mask new_mask();
  task<> send_owed();
  task<> say_close_and_wait();
  task<> linger();
  void arm_tick() noexcept;
  void on_tick() noexcept;
  void on_retry() noexcept;
  void cancel(timer& t) noexcept;

  io::socket socket_;
  http_buffer in_;
  ws_reader reader_;
  std::string pieces_;
  bool message_ready_ = false;  // the last piece of the message is in `pieces_`
  bool in_pieces_ = false;
  bool client_;
  bool writing_ = false;
  bool close_queued_ = false;  // no data is sent any more
  bool closing_ = false;       // a close waits for the peer
  bool discarding_ = false;    // it reads and drops what comes
  bool unsendable_ = false;    // sending has failed
  bool failed_ = false;        // by this side: the peer may still send
  std::string out_;            // what must be sent next
  std::size_t out_at_ = 0;     // how much of it was
  std::string frame_;          // of the write under way
  std::optional<std::string> pong_;
  std::optional<std::string> close_;
  bool ping_due_ = false;
  int code_ = 0;
  std::string said_;  // by the peer's close frame
  std::optional<ws_fault> fault_;
  std::string subprotocol_;
  std::uint64_t max_message_;
  event changed_;
  timer tick_{*this, &ws_core::on_tick};
  timer retry_{*this, &ws_core::on_retry};
  home home_;
  duration ping_every_;
  time_point heard_{};
  time_point pinged_{};
};

}  // namespace weir::detail
