// SPDX-License-Identifier: MIT
// The frames of WebSocket without a connection: what is read does not depend on how it is cut.
#include "io/ws_frame.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "fuzz/ws_frames.hpp"
#include "io/ws_peer.hpp"

namespace {

using weir::detail::append_ws_frame;
using weir::detail::is_ws_key;
using weir::detail::read_ws_close;
using weir::detail::ws_accept_of;
using weir::detail::ws_close_payload;
using weir::detail::ws_mask;
using weir::detail::ws_opcode;
using weir::detail::ws_reader;
using ws_test::frame;
using ws_test::head;

/// Reads everything and writes down what it finds: "text(hello)", "ping()", "fault 1002".
std::string reading(std::string bytes, bool masked, std::size_t piece) {
  ws_reader reader(masked);
  std::string found;
  std::string message;
  std::string buffer;
  std::size_t given = 0;
  for (;;) {
    const auto f = reader.read({buffer.data(), buffer.size()});
    if (f.fault) return found + "fault " + std::to_string(f.fault.code);
    if (f.what == ws_reader::kind::piece) message += f.data;
    const std::string control(f.data);
    buffer.erase(0, f.consumed);
    switch (f.what) {
      case ws_reader::kind::piece:
        if (!f.last) break;
        found += (reader.binary() ? "binary(" : "text(") + message + ") ";
        message.clear();
        break;
      case ws_reader::kind::ping:
        found += "ping(" + control + ") ";
        break;
      case ws_reader::kind::pong:
        found += "pong(" + control + ") ";
        break;
      case ws_reader::kind::close:
        found += "close(" + control + ") ";
        break;
      case ws_reader::kind::nothing:
        if (f.consumed > 0) break;
        if (given == bytes.size()) return found;
        buffer += bytes.substr(given, piece);
        given += std::min(piece, bytes.size() - given);
        break;
    }
  }
}

struct frame_case {
  const char* what;
  std::string bytes;
  std::string found;
};

// Frames of clients.
std::vector<frame_case> frame_cases() {
  using weir_opcode = ws_test::op;
  const auto masked = [](int opcode, std::string_view payload, bool fin = true, int rsv = 0) {
    return frame(opcode, payload, {.fin = fin, .masked = true, .rsv = rsv});
  };
  const std::string long_text(300, 'x');
  return {
      {"a text", masked(weir_opcode::text, "hello"), "text(hello) "},
      {"an empty text", masked(weir_opcode::text, ""), "text() "},
      {"binary", masked(weir_opcode::binary, "\xff\xfe"), "binary(\xff\xfe) "},
      {"two bytes of length", masked(weir_opcode::text, long_text), "text(" + long_text + ") "},
      {"fragments", masked(1, "he", false) + masked(0, "l", false) + masked(0, "lo"),
       "text(hello) "},
      {"empty fragments", masked(1, "", false) + masked(0, "", false) + masked(0, ""), "text() "},
      {"a ping between fragments", masked(1, "he", false) + masked(9, "p") + masked(0, "llo"),
       "ping(p) text(hello) "},
      {"a character cut by a fragment", masked(1, "\xe2\x82", false) + masked(0, "\xac"),
       "text(\xe2\x82\xac) "},
      {"a pong and a close", masked(10, "") + masked(8, "\x03\xe8"), "pong() close(\x03\xe8) "},
      {"the longest control frame", masked(9, std::string(125, 'p')),
       "ping(" + std::string(125, 'p') + ") "},
      {"a long control frame", masked(9, std::string(126, 'p')), "fault 1002"},
      {"a cut control frame", masked(9, "p", false), "fault 1002"},
      {"a reserved bit", masked(1, "x", true, 4), "fault 1002"},
      {"the second reserved bit", masked(1, "x", true, 2), "fault 1002"},
      {"a reserved opcode", masked(3, "x"), "fault 1002"},
      {"a reserved control opcode", masked(11, ""), "fault 1002"},
      {"a continuation of nothing", masked(0, "x"), "fault 1002"},
      {"a message within a message", masked(1, "a", false) + masked(2, "b"), "fault 1002"},
      {"a continuation behind the end", masked(1, "a") + masked(0, "b"), "text(a) fault 1002"},
      {"not masked", frame(1, "x", {.masked = false}), "fault 1002"},
      {"text that is not UTF-8", masked(1, "\xc3\x28"), "fault 1007"},
      {"text that ends in a character", masked(1, "\xe2\x82"), "fault 1007"},
      {"binary need not be UTF-8", masked(2, "\xc3\x28"), "binary(\xc3\x28) "},
      {"a length in two bytes that needs one", head(1, 5, {}, 2) + "keyyhello", "fault 1002"},
      {"a length in eight bytes that needs two", head(1, 5000, {}, 8) + "keyy", "fault 1002"},
      {"a length of 64 bits", head(2, ~std::uint64_t{0}, {}, 8), "fault 1002"},
  };
}

}  // namespace

TEST(ws_frame, is_read_or_refused) {
  for (const frame_case& c : frame_cases())
    EXPECT_EQ(reading(c.bytes, true, c.bytes.size()), c.found) << c.what;
}

TEST(ws_frame, is_read_the_same_however_the_bytes_are_cut) {
  for (const frame_case& c : frame_cases())
    for (std::size_t piece = 1; piece < 12; ++piece)
      EXPECT_EQ(reading(c.bytes, true, piece), c.found) << c.what << ", " << piece << " at a time";
}

TEST(ws_frame, the_fuzzer_accepts_what_is_tested) {
  for (const frame_case& c : frame_cases())
    for (char first = 0; first < 32; ++first) {
      const std::string input = first + c.bytes;
      fuzz::check_ws(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
}

TEST(ws_frame, of_a_server_is_not_masked) {
  EXPECT_EQ(reading(frame(1, "hello", {.masked = false}), false, 3), "text(hello) ");
  EXPECT_EQ(reading(frame(1, "hello", {.masked = true}), false, 3), "fault 1002");
}

TEST(ws_frame, announces_the_length_of_a_message_before_its_payload) {
  ws_reader reader(false);
  std::string bytes = head(2, 1'000'000, {.fin = false, .masked = false});
  auto f = reader.read({bytes.data(), bytes.size()});
  EXPECT_EQ(f.announced, 1'000'000U);
  EXPECT_EQ(f.consumed, bytes.size());
}

TEST(ws_frame, that_is_written_is_what_is_read) {
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 65535U, 65536U, 70'000U}) {
    const std::string payload(size, 'a');
    std::string plain;
    append_ws_frame(plain, ws_opcode::text, payload, nullptr);
    EXPECT_EQ(reading(plain, false, 1000), "text(" + payload + ") ");
    EXPECT_EQ(plain, frame(1, payload, {.masked = false}));
    ws_mask mask(0x12345678U);
    std::string masked;
    append_ws_frame(masked, ws_opcode::text, payload, &mask);
    EXPECT_EQ(reading(masked, true, 999), "text(" + payload + ") ");
  }
}

TEST(ws_frame, masks_go_on_where_they_were_left) {
  std::string whole(100, 'm');
  ws_mask once(7);
  once.apply(whole);
  for (std::size_t cut = 0; cut <= 100; ++cut) {
    std::string parts(100, 'm');
    ws_mask twice(7);
    twice.apply(std::span(parts).first(cut));
    twice.apply(std::span(parts).subspan(cut));
    EXPECT_EQ(parts, whole) << cut;
  }
}

TEST(ws_close, codes_that_must_not_be_sent_are_refused) {
  const auto fault = [](std::string payload) { return read_ws_close(payload).fault.code; };
  EXPECT_EQ(read_ws_close("").code, 1005);
  EXPECT_EQ(fault("x"), 1002);
  for (const int code : {1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4999}) {
    const std::string payload = ws_close_payload(code, "why");
    EXPECT_EQ(fault(payload), 0) << code;
    EXPECT_EQ(read_ws_close(payload).code, code);
    EXPECT_EQ(read_ws_close(payload).reason, "why");
  }
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2999, 5000, 65535}) {
    std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
    EXPECT_EQ(fault(payload), 1002) << code;
  }
  EXPECT_EQ(fault("\x03\xe8\xc3\x28"), 1007);
}

TEST(ws_handshake, the_accept_of_a_key_is_that_of_the_standard) {
  EXPECT_EQ(ws_accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(ws_handshake, a_key_is_sixteen_bytes_in_base64) {
  EXPECT_TRUE(is_ws_key("dGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_FALSE(is_ws_key(""));
  EXPECT_FALSE(is_ws_key("dGhlIHNhbXBsZSBub25jZQ="));
  EXPECT_FALSE(is_ws_key("dGhlIHNhbXBsZSBub25jZQQ="));
  EXPECT_FALSE(is_ws_key("dGhlIHNhbXBsZSBub25j!Q=="));
}
