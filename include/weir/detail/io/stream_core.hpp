// SPDX-License-Identifier: MIT
// One end of a byte stream, and the operations on it. What differs between a TCP socket, a Unix
// socket, a simulated one and an encrypted one is below `stream_core`; what they share is here.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weir/detail/io/source.hpp>
#include <weir/error.hpp>
#include <weir/io/endpoint.hpp>

namespace weir::detail {

/// Bytes that were received and given back: the next read gets them first.
class kept_bytes {
 public:
  bool empty() const noexcept { return text_.size() == begin_; }
  std::string_view view() const noexcept { return std::string_view(text_).substr(begin_); }
  /// Moves bytes out.
  std::size_t take(std::span<std::byte> into) noexcept;
  void drop(std::size_t n) noexcept;
  void push_front(std::span<const std::byte> bytes);
  void push_back(std::span<const std::byte> bytes);

 private:
  std::string text_;
  std::size_t begin_ = 0;
};

class stream_core : public io_source {
 public:
  ~stream_core() override = default;

  /// Tries to receive or to send. 0 bytes received: the other end sends no more. What `send` has
  /// taken and could not pass on yet is `unsent`; `flush` tries that again.
  virtual io_try receive(std::span<std::byte> into) noexcept = 0;
  virtual io_try send(std::span<const std::byte> bytes) noexcept = 0;
  virtual io_try flush() noexcept { return {}; }
  /// An error of the system, or 0.
  virtual int shutdown_write() noexcept = 0;
  virtual void close() noexcept = 0;
  /// The other end must not take the coming close for the end of what was sent.
  virtual void cut() noexcept {}
  virtual io::endpoint peer() const noexcept = 0;
  virtual io::endpoint local() const noexcept = 0;
  virtual std::optional<io::credentials> peer_credentials() const { return std::nullopt; }
  virtual int native_handle() const noexcept { return -1; }
  /// Whether the other end is known to be gone, or to send no more.
  virtual bool hung_up() const noexcept = 0;
  /// Whether something has arrived at an idle end that nobody reads: bytes, an end or an error. May
  /// take some of it.
  virtual bool has_arrived() noexcept = 0;
  /// Of TLS; reads and writes shake hands if that was not done before.
  virtual bool must_shake_hands() const noexcept { return false; }
  virtual io_try handshake() noexcept { return {}; }
  virtual std::string alpn() const { return {}; }
  std::string text() const override;

  /// `receive`, with what was given back first.
  io_try read(std::span<std::byte> into) noexcept {
    if (kept.empty()) [[likely]]
      return receive(into);
    return {kept.take(into), 0};
  }

  kept_bytes kept;
  std::size_t written = 0;  // of the last write_all
  bool unsent = false;
};

/// See io::socket::read_some.
class read_some_wait : public io_operation<read_some_wait> {
 public:
  struct args {
    stream_core* core;
    std::span<std::byte> into;
  };
  using result = std::size_t;

  explicit read_some_wait(args&& a) noexcept;
  bool try_now() noexcept;
  std::size_t take() {
    rethrow();
    return bytes_;
  }

 private:
  std::span<std::byte> into_;
  std::size_t bytes_ = 0;
};

/// See io::socket::read_exactly.
class read_exactly_wait : public io_operation<read_exactly_wait> {
 public:
  using args = read_some_wait::args;
  using result = void;

  explicit read_exactly_wait(args&& a) noexcept;
  bool try_now() noexcept;
  cancel_result withdraw() noexcept override;
  void take() { rethrow(); }

 private:
  void give_back();

  std::span<std::byte> into_;
  std::size_t got_ = 0;
};

/// See io::socket::read_until.
class read_until_wait : public io_operation<read_until_wait> {
 public:
  struct args {
    stream_core* core;
    std::string_view delimiter;
    std::size_t max;
  };
  using result = std::string;

  explicit read_until_wait(args&& a) noexcept;
  bool try_now() noexcept;
  std::string take() {
    rethrow();
    return std::move(line_);
  }

 private:
  bool find();
  bool receive_more();

  std::string_view delimiter_;
  std::size_t max_;
  std::size_t looked_ = 0;  // the delimiter does not begin before here
  std::string line_;
};

/// See io::socket::write_all.
class write_all_wait : public io_operation<write_all_wait> {
 public:
  struct args {
    stream_core* core;
    std::span<const std::byte> bytes;
  };
  using result = void;

  explicit write_all_wait(args&& a) noexcept;
  bool try_now() noexcept;
  void take() { rethrow(); }

 private:
  bool fail_partly(int error) noexcept;

  std::span<const std::byte> bytes_;
  std::size_t done_ = 0;
};

/// Completes when the other end is gone or sends no more, read or not.
class hangup_wait : public io_operation<hangup_wait> {
 public:
  struct args {
    stream_core* core;
  };
  using result = void;

  explicit hangup_wait(args&& a) noexcept;
  bool try_now() noexcept;
  void take() { rethrow(); }
};

/// Completes when the handshake of TLS has ended.
class handshake_wait : public io_operation<handshake_wait> {
 public:
  using args = hangup_wait::args;
  using result = void;

  explicit handshake_wait(args&& a) noexcept;
  bool try_now() noexcept;
  void take() { rethrow(); }
};

/// Waits for nothing.
class no_wait : public simple_wait<no_wait, local_wait> {
 public:
  struct args {};
  using result = void;

  explicit no_wait(args&&) noexcept {}
  bool try_now() noexcept { return true; }
  void arm() noexcept { complete(); }
  void take() noexcept {}
  cancel_result withdraw() noexcept override { return cancel_result::done; }
  void describe(dump_line& line) const override;
};
/// The result of a call that has done its work: it may be awaited, or ignored.
class done_already : public pending<no_wait> {
 public:
  done_already() noexcept : pending({}) {}
};

}  // namespace weir::detail
