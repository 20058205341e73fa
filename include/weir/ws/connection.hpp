// SPDX-License-Identifier: MIT
// A WebSocket connection (RFC 6455), of a server or of a client: messages both ways over one
// socket, which may be encrypted or simulated.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/io/ws_read.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/stream/stream.hpp>
#include <weir/task.hpp>
#include <weir/ws/message.hpp>
#include <weir/ws/options.hpp>

namespace weir::ws {

/// One end of a WebSocket connection.
///
/// **Reading.** One reader at a time (errc::busy). A peer that breaks the protocol is told the code
/// (1002; 1007 for text that is not UTF-8; 1009 for a message above `max_message`), and `read`
/// throws: errc::bad_data, or errc::too_long. From then on, and after either side has closed, it
/// returns nothing. A connection that breaks without a close frame ends likewise, with
/// `close_code()` 1006.
///
/// **Writing.** One writer at a time (errc::busy). Writing after `close`, or after the peer has
/// closed: errc::closed. A write that is cancelled before its first byte was sent sends nothing;
/// one that is cancelled later is completed by what is sent next, so the frames stay whole.
///
/// **Liveness.** Pings are answered, and sent every `ping_every`; if nothing has come for twice as
/// long the peer is gone: pending operations are errc::closed. Input is looked at while a read
/// waits, before each write, and with each ping, until a message waits to be read: a reader that
/// does not read stops its peer, and such a peer does not count as silent.
///
/// Destroying it without `close` tells the peer 1001 if that is possible at once, and closes the
/// socket. Destroying it while an operation waits aborts. Threads: home loop only.
class connection {
 public:
  connection(connection&&) noexcept;
  connection& operator=(connection&&) noexcept;
  ~connection();

  /// The next message; nothing once the connection has ended. Cancelled, it has taken nothing.
  [[nodiscard]] auto read() { return detail::pending<detail::ws_read_wait>({use()}); }
  /// The next bytes of a message, however long it is: `max_message` does not count. A message that
  /// was begun so is read to its `last()` piece so; a `read` before that is errc::busy.
  [[nodiscard]] auto read_piece() { return detail::pending<detail::ws_piece_wait>({use()}); }
  /// Messages until the connection ends. The connection outlives the stream.
  [[nodiscard]] stream<message> messages();

  /// The text is UTF-8, else errc::invalid_argument. What is written outlives the operation.
  [[nodiscard]] task<> write_text(std::string_view text);
  [[nodiscard]] task<> write_binary(std::span<const std::byte> bytes);
  [[nodiscard]] task<> write_binary(std::string_view bytes) {
    return write_binary(std::as_bytes(std::span(bytes)));
  }
  /// At most 125 bytes, else errc::invalid_argument.
  [[nodiscard]] task<> ping(std::string_view payload = {});

  /// Tells the peer, and waits for its answer for at most 5 s; messages that still come go to a
  /// reader that waits, and are dropped otherwise. If the connection has ended it does nothing. A
  /// code that must not be sent (below 1000, 1004 to 1006, 1015 to 2999, above 4999) and a reason
  /// that is not UTF-8 or longer than 123 bytes: errc::invalid_argument.
  [[nodiscard]] task<> close(int code = 1000, std::string_view reason = {});
  /// Why it has ended: the code of the peer's close frame (1005: it had none), the code that a peer
  /// was told who broke the protocol, or 1006: the connection broke. 0: it has not.
  int close_code() const noexcept;
  /// What the peer's close frame said.
  std::string_view close_reason() const noexcept;

  /// The chosen subprotocol; empty: none.
  std::string_view subprotocol() const noexcept;
  io::endpoint peer() const;

  // Below: for the library.
  explicit connection(std::unique_ptr<detail::ws_core> core) noexcept;
  detail::ws_core& core() noexcept { return *core_; }

 private:
  detail::ws_core* use();

  std::unique_ptr<detail::ws_core> core_;
};

}  // namespace weir::ws
