// SPDX-License-Identifier: MIT
// An encrypted byte stream: a `stream_core` on top of another one, which carries the records.
//
// Invariants:
// 1. Bytes move only in a try of an operation (or in shutdown_write and close), as everywhere. A
//    record that arrived in part, and bytes of a record that were not asked for, stay in OpenSSL.
// 2. OpenSSL is never told that a write would block: what the carrier does not take is kept in
//    `out_`, in order. A record is made only if `out_` is empty, and holds at most 16 KiB. So no
//    write of OpenSSL is pending when it is called for another purpose, one reader and one writer
//    do not disturb each other, and a record that was begun is finished whatever happens to its
//    operation. Every operation begins by sending what is left.
// 3. `send` counts a record when it was made. `unsent` says that a part of it is in `out_`; a
//    write_all ends when nothing is.
// 4. An operation that waits has tried in vain after the last news of the carrier, whose news try
//    both sides: a read may have to send, and a write to receive, during a handshake. A try that
//    ends the handshake stirs the carrier, if an operation of the other side waits: the bytes that
//    it waits for may have been received by this try.
// 5. While `out_` has more than `max_unsent` bytes nothing is received, so a peer that makes
// OpenSSL
//    answer and does not read the answers is not answered any more.
// 6. A failure of TLS is final: every later operation fails with it. If sending fails, reading goes
//    on until it fails, too: the peer's last words, such as an alert, are still of use.
// 7. A server sends its ticket before its first bytes, not after the handshake: one that only reads
//    sends nothing. So a client that writes and closes is not reset by a ticket that comes too
//    late, which would lose what it has written.
// 8. OpenSSL's queue of errors, which all connections of a thread share, is empty before OpenSSL is
//    called, and nothing is read from it later.
#pragma once

#include <memory>
#include <string>

#include "io/tls_settings.hpp"

namespace weir::detail {

class tls_stream final : public stream_core {
 public:
  /// `ssl` knows its role, and is given its bytes here. `name`: of the server, at the client's end.
  tls_stream(std::unique_ptr<stream_core> below, tls_settings_ref settings, ssl_ref ssl,
             std::string name);
  ~tls_stream() override;

  io_try receive(std::span<std::byte> into) noexcept override;
  io_try send(std::span<const std::byte> bytes) noexcept override;
  io_try flush() noexcept override;
  int shutdown_write() noexcept override;
  void close() noexcept override;
  void cut() noexcept override;
  io::endpoint peer() const noexcept override { return below_->peer(); }
  io::endpoint local() const noexcept override { return below_->local(); }
  std::optional<io::credentials> peer_credentials() const override {
    return below_->peer_credentials();
  }
  int native_handle() const noexcept override { return below_->native_handle(); }
  bool hung_up() const noexcept override { return below_->hung_up(); }
  bool has_arrived() noexcept override;
  bool must_shake_hands() const noexcept override { return !shaken_; }
  io_try handshake() noexcept override;
  std::string alpn() const override { return alpn_; }
  std::string text() const override;
  io_problem explain(int error) const override;

  // For OpenSSL.
  /// Takes all bytes.
  void put(std::span<const std::byte> bytes) noexcept;
  io_try get(std::span<std::byte> into) noexcept;
  bool at_end() const noexcept { return ended_below_; }

 private:
  /// Own errors of a try.
  static constexpr int failed = -1;
  static constexpr int truncated = -2;
  static constexpr std::size_t max_record = 16 * 1024;
  static constexpr std::size_t max_unsent = 64 * 1024;

  int watch(io_side side) noexcept override { return below_->watch_for_carrier(side); }
  void unwatch(io_side side) noexcept override { below_->unwatch_for_carrier(side); }
  void ready_below(io_side side) noexcept override;

  /// Sends what is left. False: some of it still is.
  bool push_out() noexcept;
  /// What a call of OpenSSL without success means.
  io_try judge(int result) noexcept;
  io_try fail_for(int error) noexcept;
  io_try fail_because(std::string reason) noexcept;
  /// After every call that may have ended the handshake. `other`: the side that has not called.
  void note_handshake(io_side other) noexcept;
  void send_close_notify() noexcept;
  void discard_input() noexcept;

  std::unique_ptr<stream_core> below_;
  tls_settings_ref settings_;
  ssl_ref ssl_;  // null once it is closed
  std::string name_;
  kept_bytes out_;
  std::string alpn_;
  std::string why_;            // of `failed`
  int failure_ = 0;            // of every operation from now on
  int write_error_ = 0;        // of the carrier
  int read_error_ = 0;         // of the carrier
  bool* destroyed_ = nullptr;  // is set if it is destroyed while news is delivered
  bool shaken_ = false;        // the handshake has ended
  bool ended_ = false;         // the peer has sent close_notify
  bool ended_below_ = false;   // the carrier has ended
  bool shut_ = false;          // shutdown_write or close was called
  bool notified_ = false;      // close_notify was sent
  bool ticketed_ = false;      // the ticket of a server was sent
  bool cut_ = false;
};

}  // namespace weir::detail
