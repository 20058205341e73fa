// SPDX-License-Identifier: MIT
#include "io/ws_frame.hpp"

#include <algorithm>
#include <cstring>

#include <openssl/evp.h>
#include <openssl/sha.h>

namespace weir::detail {

namespace {

constexpr std::uint8_t final_bit = 0x80;
constexpr std::uint8_t mask_bit = 0x80;
constexpr std::uint8_t two_byte_length = 126;
constexpr std::uint8_t eight_byte_length = 127;

std::uint8_t byte_at(std::span<const char> bytes, std::size_t at) noexcept {
  return static_cast<std::uint8_t>(bytes[at]);
}

bool is_control(ws_opcode opcode) noexcept { return static_cast<std::uint8_t>(opcode) >= 8; }

bool is_known(std::uint8_t opcode) noexcept { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

std::uint64_t big_endian(std::span<const char> bytes) noexcept {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) n = n << 8 | byte_at(bytes, i);
  return n;
}

/// Bytes of the length behind the first two of a head.
std::size_t extra_length_bytes(std::uint8_t second) noexcept {
  const std::uint8_t length = second & 0x7f;
  return length == two_byte_length ? 2 : length == eight_byte_length ? 8 : 0;
}

}  // namespace

// ------------------------------------------------------------------ masks

ws_mask::ws_mask(std::uint32_t key) noexcept { std::memcpy(key_.data(), &key, key_.size()); }

ws_mask::ws_mask(std::span<const char, 4> key) noexcept {
  std::copy(key.begin(), key.end(), key_.begin());
}

void ws_mask::apply(std::span<char> bytes) noexcept {
  std::size_t i = 0;
  // Eight at a time, from a position at which the key begins.
  for (; i < bytes.size() && (at_ & 3U) != 0; ++i)
    bytes[i] = static_cast<char>(bytes[i] ^ key_[at_++ & 3U]);
  std::uint64_t wide = 0;
  std::memcpy(&wide, key_.data(), 4);
  std::memcpy(reinterpret_cast<char*>(&wide) + 4, key_.data(), 4);
  for (; bytes.size() - i >= sizeof wide; i += sizeof wide) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    word ^= wide;
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  for (; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] ^ key_[at_++ & 3U]);
  at_ &= 3U;
}

// ------------------------------------------------------------------ reading

ws_fault ws_reader::check_head(std::span<const char> buffer) const noexcept {
  const auto fault = [](const char* text) { return ws_fault{ws_code::protocol_error, text}; };
  const std::uint8_t first = byte_at(buffer, 0);
  if ((first & 0x70U) != 0) return fault("a frame has a reserved bit");
  if (!is_known(first & 0x0fU)) return fault("a frame has an unknown opcode");
  const auto opcode = static_cast<ws_opcode>(first & 0x0fU);
  const bool final = (first & final_bit) != 0;
  if (is_control(opcode)) {
    if (!final) return fault("a control frame is fragmented");
  } else if ((opcode == ws_opcode::continuation) != in_message_) {
    return fault(in_message_ ? "a message begins within another one"
                             : "a message goes on that has not begun");
  }
  if (buffer.size() < 2) return {};
  const std::uint8_t second = byte_at(buffer, 1);
  if (((second & mask_bit) != 0) != masked_)
    return fault(masked_ ? "a frame of a client is not masked" : "a frame of a server is masked");
  if (is_control(opcode) && (second & 0x7fU) > max_control_payload)
    return fault("a control frame is too long");
  return {};
}

ws_fault ws_reader::read_length(std::span<const char> bytes) noexcept {
  const std::uint8_t second = byte_at(bytes, 1);
  const std::size_t extra = extra_length_bytes(second);
  left_ = extra == 0 ? second & 0x7fU : big_endian(bytes.subspan(2, extra));
  if ((extra == 2 && left_ < two_byte_length) || (extra == 8 && left_ <= 0xffffU) ||
      left_ >> 63U != 0)
    return {ws_code::protocol_error, "the length of a frame is not written as it must be"};
  return {};
}

ws_reader::found ws_reader::read_head(std::span<char> buffer) noexcept {
  found f;
  if (buffer.empty()) return f;
  f.fault = check_head(buffer);
  if (f.fault || buffer.size() < 2) return f;
  const std::size_t key = 2 + extra_length_bytes(byte_at(buffer, 1));
  const std::size_t size = key + (masked_ ? 4 : 0);
  if (buffer.size() < key) return f;
  f.fault = read_length(buffer);
  if (f.fault || buffer.size() < size) return f;
  const std::uint8_t first = byte_at(buffer, 0);
  frame_ = static_cast<ws_opcode>(first & 0x0fU);
  if (masked_) mask_ = ws_mask(std::span<const char, 4>(buffer.data() + key, 4));
  if (!is_control(frame_)) begin_frame((first & final_bit) != 0);
  in_frame_ = true;
  f.consumed = size;
  return f;
}

void ws_reader::begin_frame(bool last) noexcept {
  last_ = last;
  in_message_ = true;
  if (frame_ != ws_opcode::continuation) {
    message_ = frame_;
    announced_ = 0;
    text_.reset();
  }
  announced_ = std::min<std::uint64_t>(announced_, std::uint64_t{1} << 63U) + left_;
}

ws_reader::found ws_reader::read_control(std::span<char> buffer) noexcept {
  found f;
  if (buffer.size() < left_) return f;
  const std::span<char> payload = buffer.first(static_cast<std::size_t>(left_));
  if (masked_) mask_.apply(payload);
  f.what = frame_ == ws_opcode::ping   ? kind::ping
           : frame_ == ws_opcode::pong ? kind::pong
                                       : kind::close;
  f.data = {payload.data(), payload.size()};
  f.consumed = payload.size();
  in_frame_ = false;
  return f;
}

ws_reader::found ws_reader::read_piece(std::span<char> buffer) noexcept {
  found f;
  f.announced = announced_;
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer.size()));
  if (n == 0 && left_ > 0) return f;
  const std::span<char> payload = buffer.first(n);
  if (masked_) mask_.apply(payload);
  left_ -= n;
  in_frame_ = left_ > 0;
  f.what = kind::piece;
  f.data = {payload.data(), n};
  f.consumed = n;
  f.last = !in_frame_ && last_;
  in_message_ = !f.last;
  if (message_ == ws_opcode::text && (!text_.add(f.data) || (f.last && !text_.complete())))
    f.fault = {ws_code::bad_text, "a text is not UTF-8"};
  return f;
}

ws_reader::found ws_reader::read(std::span<char> buffer) noexcept {
  std::size_t head = 0;
  if (!in_frame_) {
    const found f = read_head(buffer);
    if (f.fault || f.consumed == 0) return f;
    head = f.consumed;
  }
  found f =
      is_control(frame_) ? read_control(buffer.subspan(head)) : read_piece(buffer.subspan(head));
  f.consumed += head;
  return f;
}

// ------------------------------------------------------------------ writing

void append_ws_head(std::string& out, ws_opcode opcode, std::uint64_t length, const ws_mask* mask) {
  out += static_cast<char>(final_bit | static_cast<std::uint8_t>(opcode));
  const std::uint8_t masked = mask != nullptr ? mask_bit : 0;
  int bytes = 0;
  if (length < two_byte_length) {
    out += static_cast<char>(masked | static_cast<std::uint8_t>(length));
  } else {
    bytes = length <= 0xffffU ? 2 : 8;
    out += static_cast<char>(masked | (bytes == 2 ? two_byte_length : eight_byte_length));
  }
  while (bytes-- > 0) out += static_cast<char>(length >> (8 * bytes) & 0xffU);
  if (mask != nullptr) out += mask->key();
}

void append_ws_frame(std::string& out, ws_opcode opcode, std::string_view payload, ws_mask* mask) {
  append_ws_head(out, opcode, payload.size(), mask);
  const std::size_t at = out.size();
  out += payload;
  if (mask != nullptr) mask->apply(std::span(out).subspan(at));
}

// ------------------------------------------------------------------ closing

bool is_ws_close_code(int code) noexcept {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

ws_close read_ws_close(std::string_view payload) noexcept {
  ws_close c;
  if (payload.empty()) return c;
  if (payload.size() == 1) {
    c.fault = {ws_code::protocol_error, "a close frame has half a code"};
    return c;
  }
  c.code = static_cast<int>(big_endian(std::span(payload).first(2)));
  c.reason = payload.substr(2);
  if (!is_ws_close_code(c.code))
    c.fault = {ws_code::protocol_error, "a close frame has a code that must not be sent"};
  else if (!is_utf8(c.reason))
    c.fault = {ws_code::bad_text, "the reason of a close frame is not UTF-8"};
  return c;
}

std::string ws_close_payload(int code, std::string_view reason) {
  std::string payload;
  if (code == ws_code::none_given) return payload;
  payload += static_cast<char>(static_cast<unsigned>(code) >> 8U);
  payload += static_cast<char>(static_cast<unsigned>(code) & 0xffU);
  payload += reason;
  return payload;
}

// ------------------------------------------------------------------ the handshake

namespace {

std::string base64_of(std::span<const unsigned char> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // and the NUL that OpenSSL adds
  const int n = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                  static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(n));
  return text;
}

}  // namespace

std::string ws_accept_of(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return base64_of(digest);
}

bool is_ws_key(std::string_view text) noexcept {
  if (text.size() != 24 || !text.ends_with("==")) return false;
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return text.substr(0, 22).find_first_not_of(alphabet) == std::string_view::npos;
}

std::string ws_key(std::span<const unsigned char, 16> bytes) { return base64_of(bytes); }

}  // namespace weir::detail
