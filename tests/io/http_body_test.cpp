// SPDX-License-Identifier: MIT
#include "io/http_body.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using weir::detail::http_body_reader;
using weir::detail::http_framing;

/// The body, or "fault <status>", or what came and " ..." if it has not ended; then what is left.
std::string read_chunked(std::string_view bytes, weir::detail::http_limits limits = {}) {
  http_body_reader reader(limits);
  reader.begin(http_framing::chunked, 0);
  std::string body;
  while (!reader.ended()) {
    const auto piece = reader.read(bytes);
    if (piece.fault) return "fault " + std::to_string(piece.fault.status);
    body += piece.data;
    bytes.remove_prefix(piece.consumed);
    if (piece.data.empty() && !reader.ended()) return body + " ...";
  }
  return body + (bytes.empty() ? "" : " then " + std::string(bytes));
}

TEST(http_body, of_chunks_has_one_form) {
  EXPECT_EQ(read_chunked("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET"), "abcde then GET");
  EXPECT_EQ(read_chunked("0\r\n\r\n"), "");
  EXPECT_EQ(read_chunked("000000000000000A\r\n0123456789\r\n0\r\n\r\n"), "0123456789");
  EXPECT_EQ(read_chunked("a;name=\"x y\";z\r\n0123456789\r\n0;last\r\n\r\n"), "0123456789");
  EXPECT_EQ(read_chunked("3\r\nab"), "ab ...");
  EXPECT_EQ(read_chunked("00000000000000003\r\nabc\r\n"), "fault 400") << "17 digits";
  EXPECT_EQ(read_chunked("g\r\n"), "fault 400");
  EXPECT_EQ(read_chunked("0x3\r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("-3\r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("+3\r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked(" 3\r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("3 \r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("3 ;a\r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("\r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked(";a\r\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("3\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("3\rabc"), "fault 400");
  EXPECT_EQ(read_chunked("3;a\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("3;a\rb\nabc"), "fault 400");
  EXPECT_EQ(read_chunked("3\r\nabcd\r\n"), "fault 400") << "longer than its size";
  EXPECT_EQ(read_chunked("3\r\nabc\n0\r\n"), "fault 400");
  EXPECT_EQ(read_chunked("3\r\nabc\rx"), "fault 400");
  EXPECT_EQ(read_chunked("3\r\nabc0\r\n\r\n"), "fault 400");
}

TEST(http_body, trailers_are_read_like_fields_and_dropped) {
  EXPECT_EQ(read_chunked("1\r\na\r\n0\r\nA: b\r\nC: d\r\n\r\nrest"), "a then rest");
  EXPECT_EQ(read_chunked("0\r\nA : b\r\n\r\n"), "fault 400");
  EXPECT_EQ(read_chunked("0\r\nA: b\n\r\n"), "fault 400");
  EXPECT_EQ(read_chunked("0\r\nA: b\r\n c\r\n\r\n"), "fault 400");
  EXPECT_EQ(read_chunked("0\r\nnothing\r\n\r\n"), "fault 400");
  EXPECT_EQ(read_chunked("0\r\nA: b\rc\r\n\r\n"), "fault 400");
}

TEST(http_body, has_limits_on_extensions_and_trailers) {
  const weir::detail::http_limits limits{.max_head = 20, .max_fields = 2};
  EXPECT_EQ(read_chunked("1;" + std::string(30, 'x'), limits), "fault 400");
  std::string many;
  for (int i = 0; i < 10; ++i) many += "1;abc\r\na\r\n";
  EXPECT_EQ(read_chunked(many, limits), "fault 400") << "extensions are counted together";
  EXPECT_EQ(read_chunked("0\r\nA: " + std::string(30, 'x'), limits), "fault 431");
  EXPECT_EQ(read_chunked("0\r\nA:b\r\nA:b\r\n\r\n", limits), "");
  EXPECT_EQ(read_chunked("0\r\nA:\r\nA:\r\nA:\r\n\r\n", limits), "fault 431");
}

TEST(http_body, with_a_length_ends_there) {
  http_body_reader reader;
  reader.begin(http_framing::length, 5);
  EXPECT_EQ(reader.announced(), 5U);
  EXPECT_EQ(reader.read("abc").data, "abc");
  EXPECT_FALSE(reader.ended());
  const auto piece = reader.read("defgh");
  EXPECT_EQ(piece.data, "de");
  EXPECT_EQ(piece.consumed, 2U);
  EXPECT_TRUE(reader.ended());
  reader.begin(http_framing::length, 3);
  EXPECT_FALSE(reader.end_of_input());
}

TEST(http_body, until_the_end_ends_with_the_connection) {
  http_body_reader reader;
  reader.begin(http_framing::until_close, 0);
  EXPECT_EQ(reader.read("anything\r\n").data, "anything\r\n");
  EXPECT_FALSE(reader.ended());
  EXPECT_TRUE(reader.end_of_input());
  EXPECT_TRUE(reader.ended());
  reader.begin(http_framing::none, 0);
  EXPECT_TRUE(reader.ended());
}

}  // namespace
