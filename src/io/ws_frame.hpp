// SPDX-License-Identifier: MIT
// The frames of WebSocket (RFC 6455) as bytes: no I/O, the same result however the bytes are cut.
//
// Invariants:
// 1. What is refused is refused as soon as its bytes decide it: reserved bits and unknown opcodes,
//    control frames that are cut or too long, a message that begins within another or goes on
//    without one, frames that are masked when they must not be or the other way round, a length in
//    more bytes than it needs, text that is not UTF-8.
// 2. It stores no payload. Its user limits messages by their announced length, which is known
// before
//    the first byte of a frame's payload.
// 3. After a fault the reader is not used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/utf8.hpp"

namespace weir::detail {

enum class ws_opcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

/// The codes of close frames that weir itself uses.
struct ws_code {
  static constexpr int normal = 1000;
  static constexpr int going_away = 1001;
  static constexpr int protocol_error = 1002;
  static constexpr int none_given = 1005;  // never sent
  static constexpr int broken = 1006;      // never sent
  static constexpr int bad_text = 1007;
  static constexpr int too_long = 1009;
  static constexpr int internal_error = 1011;
};

/// Why a connection is failed: the code that the peer is told, and why. Converts to true if it is.
struct ws_fault {
  int code = 0;
  const char* text = "";

  explicit operator bool() const noexcept { return code != 0; }
};

constexpr std::size_t max_control_payload = 125;

/// The four bytes that a client combines its payload with, from where they were left.
class ws_mask {
 public:
  ws_mask() noexcept = default;
  explicit ws_mask(std::uint32_t key) noexcept;
  explicit ws_mask(std::span<const char, 4> key) noexcept;

  std::string_view key() const noexcept { return {key_.data(), key_.size()}; }
  /// Masks or unmasks the next bytes.
  void apply(std::span<char> bytes) noexcept;

 private:
  std::array<char, 4> key_{};
  std::size_t at_ = 0;  // of the next byte
};

class ws_reader {
 public:
  /// `masked`: frames come from a client.
  explicit ws_reader(bool masked) noexcept : masked_(masked) {}

  enum class kind : std::uint8_t { nothing, piece, ping, pong, close };
  struct found {
    kind what = kind::nothing;  // nothing: more bytes are needed
    std::size_t consumed = 0;
    std::string_view data{};  // in the buffer, unmasked
    bool last = false;        // of the pieces of a message
    /// The length of the message as far as its frames have told; 0 for a control frame.
    std::uint64_t announced = 0;
    ws_fault fault{};
  };
  /// Reads a control frame, or a piece of a message. `buffer` begins behind what was consumed
  /// before; its payload is unmasked in place.
  found read(std::span<char> buffer) noexcept;
  /// Of the message of the last piece.
  bool binary() const noexcept { return message_ == ws_opcode::binary; }

 private:
  ws_fault check_head(std::span<const char> buffer) const noexcept;
  ws_fault read_length(std::span<const char> bytes) noexcept;
  found read_head(std::span<char> buffer) noexcept;
  void begin_frame(bool last) noexcept;
  found read_control(std::span<char> buffer) noexcept;
  found read_piece(std::span<char> buffer) noexcept;

  bool masked_;
  bool in_frame_ = false;    // its head was read
  bool in_message_ = false;  // its last frame has not ended
  bool last_ = false;        // the present frame ends its message
  ws_opcode frame_ = ws_opcode::continuation;
  ws_opcode message_ = ws_opcode::text;
  std::uint64_t left_ = 0;       // of the payload of the present frame
  std::uint64_t announced_ = 0;  // of the message, with all of the present frame
  ws_mask mask_;
  utf8_check text_;
};

/// The head of a frame that is the whole of a message, or a control frame. `mask`: null for a
/// server.
void append_ws_head(std::string& out, ws_opcode opcode, std::uint64_t length, const ws_mask* mask);
/// A whole frame; its payload is masked if `mask` is not null.
void append_ws_frame(std::string& out, ws_opcode opcode, std::string_view payload, ws_mask* mask);

/// What a close frame says. Without a code: ws_code::none_given.
struct ws_close {
  int code = ws_code::none_given;
  std::string_view reason{};
  ws_fault fault{};
};
ws_close read_ws_close(std::string_view payload) noexcept;
/// Whether a peer may send this code.
bool is_ws_close_code(int code) noexcept;
std::string ws_close_payload(int code, std::string_view reason);

/// The value of sec-websocket-accept for a sec-websocket-key.
std::string ws_accept_of(std::string_view key);
/// Whether it is the base64 of 16 bytes.
bool is_ws_key(std::string_view text) noexcept;
/// The base64 of 16 bytes.
std::string ws_key(std::span<const unsigned char, 16> bytes);

}  // namespace weir::detail
