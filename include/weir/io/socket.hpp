// SPDX-License-Identifier: MIT
// `io::socket`: one end of a byte stream, over TCP, TLS or a Unix socket, or in a simulated
// network. It owns its descriptor and belongs to the loop that made it. Reads and writes are waits:
// they try, and wait for readiness if that would block, so the kernel never owns a buffer. One
// reader and one writer at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weir/detail/io/stream_core.hpp>
#include <weir/error.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/stream/stream.hpp>

namespace weir::io {

/// A write_all failed after it had sent some bytes, perhaps none.
class partial_write : public error {
 public:
  partial_write(std::error_code code, const std::string& what, std::size_t written);
  std::size_t written() const noexcept { return written_; }

 private:
  std::size_t written_;
};

/// One end of a byte stream.
///
/// After `close()`, and if it was moved from, every operation is errc::closed; so are operations
/// that were pending. A second reader or writer: errc::busy. Destroying it while an operation waits
/// aborts. Cancelled reads have taken nothing: bytes that a cancelled or failed `read_exactly` or
/// `read_until` had received are read again by the next read. Errors of the system are weir::errors
/// with the system's code.
///
/// Threads: home loop only. Costs: an operation allocates nothing; read_until makes its string.
class socket {
 public:
  socket() noexcept = default;
  socket(socket&& other) noexcept = default;
  socket& operator=(socket&& other) noexcept;
  ~socket();

  /// At least one byte, or 0 at the end. An empty span: errc::invalid_argument.
  [[nodiscard]] auto read_some(std::span<std::byte> into) {
    return detail::pending<detail::read_some_wait>({use(), into});
  }
  /// Fills the span. errc::end_of_stream if the other end sends no more: what came is in the span,
  /// and is read again.
  [[nodiscard]] auto read_exactly(std::span<std::byte> into) {
    return detail::pending<detail::read_exactly_wait>({use(), into});
  }
  /// The bytes up to the delimiter, and the delimiter. Longer than `max`: errc::too_long; ended
  /// before: errc::end_of_stream; neither consumes anything. An empty delimiter, a max of 0:
  /// errc::invalid_argument.
  [[nodiscard]] auto read_until(std::string_view delimiter, std::size_t max) {
    return detail::pending<detail::read_until_wait>({use(), delimiter, max});
  }
  /// Sends everything. Fails with io::partial_write; after a cancelled one `written()` tells.
  /// Nothing to send: a checkpoint.
  [[nodiscard]] auto write_all(std::span<const std::byte> bytes) {
    return detail::pending<detail::write_all_wait>({use(), bytes});
  }
  [[nodiscard]] auto write_all(std::string_view text) {
    return write_all(std::as_bytes(std::span(text)));
  }
  /// How many bytes the last write_all has sent.
  std::size_t written() const noexcept { return core_ == nullptr ? 0 : core_->written; }

  /// The other end sees the end after what was written; reading goes on. It has happened when this
  /// returns: awaiting the result is a checkpoint and no more.
  detail::done_already shutdown_write();
  /// Ends pending operations. Input that was not read may reset the connection.
  void close() noexcept;

  endpoint peer() const;
  endpoint local() const;
  /// The protocol that both ends of a TLS connection have agreed on; otherwise empty.
  std::string alpn() const;
  /// Of a Unix socket; otherwise empty.
  std::optional<credentials> peer_credentials() const;
  /// -1 if it is closed or simulated.
  int native_handle() const noexcept { return core_ == nullptr ? -1 : core_->native_handle(); }

  /// What comes, in pieces of at most `n` bytes, until the end. The socket outlives the stream.
  [[nodiscard]] stream<std::string> chunks(std::size_t n);
  /// Lines without their end ("\n", or "\r\n"); the last may lack it. Longer than `max` bytes:
  /// errc::too_long. The socket outlives the stream.
  [[nodiscard]] stream<std::string> lines(std::size_t max);

  // Below: for the library.
  explicit socket(std::unique_ptr<detail::stream_core> core) noexcept : core_(std::move(core)) {}
  detail::stream_core* core() const noexcept { return core_.get(); }
  std::unique_ptr<detail::stream_core> release_core() && noexcept { return std::move(core_); }
  /// Waits until the other end is gone or sends no more; for callers that do not read.
  [[nodiscard]] auto hangup() { return detail::pending<detail::hangup_wait>({use()}); }
  /// Of TLS; otherwise it has nothing to do.
  [[nodiscard]] auto handshake() { return detail::pending<detail::handshake_wait>({use()}); }

 private:
  detail::stream_core* use() {
    if (core_ != nullptr) core_->require_home("socket");
    return core_.get();
  }

  std::unique_ptr<detail::stream_core> core_;
};

/// Owns a connected socket from elsewhere; makes it non-blocking and close-on-exec. Not a stream
/// socket: errc::invalid_argument, and the descriptor stays the caller's.
socket adopt_socket(int descriptor);

}  // namespace weir::io
