// SPDX-License-Identifier: MIT
#include "io/http_head.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "fuzz/http_message.hpp"
#include "io/http_body.hpp"

namespace {

using weir::detail::http_framing;
using weir::detail::http_head;
using weir::detail::http_head_reader;

struct request_case {
  const char* what;
  std::string bytes;
  int status;  // of the refusal; 0: accepted
};

int status_of_request(std::string_view bytes, weir::detail::http_limits limits = {}) {
  http_head_reader reader(limits);
  http_head head;
  const auto r = reader.read_request(bytes, head);
  if (r.fault) return r.fault.status;
  return r.consumed == 0 ? -1 : 0;
}

std::string with_fields(const std::string& fields) {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}

TEST(http_head, refuses_every_request_that_could_be_read_in_two_ways) {
  const std::string nul(1, '\0');
  const request_case cases[] = {
      {"plain", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"an empty line first", "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
      {"two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"length and chunked", with_fields("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
       400},
      {"chunked and length", with_fields("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
       400},
      {"lengths that differ", with_fields("Content-Length: 3\r\nContent-Length: 4\r\n"), 400},
      {"the same length twice", with_fields("Content-Length: 3\r\nContent-Length: 3\r\n"), 0},
      {"a list of lengths", with_fields("Content-Length: 3, 3\r\n"), 400},
      {"a sign", with_fields("Content-Length: +3\r\n"), 400},
      {"a negative length", with_fields("Content-Length: -3\r\n"), 400},
      {"hexadecimal length", with_fields("Content-Length: 0x3\r\n"), 400},
      {"no length", with_fields("Content-Length:\r\n"), 400},
      {"a length beyond 64 bits", with_fields("Content-Length: 18446744073709551616\r\n"), 400},
      {"gzip", with_fields("Transfer-Encoding: gzip\r\n"), 400},
      {"gzip and chunked", with_fields("Transfer-Encoding: gzip, chunked\r\n"), 400},
      {"chunked not last", with_fields("Transfer-Encoding: chunked, gzip\r\n"), 400},
      {"chunked twice", with_fields("Transfer-Encoding: chunked, chunked\r\n"), 400},
      {"chunked in two fields",
       with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"an empty member", with_fields("Transfer-Encoding: ,chunked\r\n"), 400},
      {"identity", with_fields("Transfer-Encoding: identity\r\n"), 400},
      {"xchunked", with_fields("Transfer-Encoding: xchunked\r\n"), 400},
      {"quoted", with_fields("Transfer-Encoding: \"chunked\"\r\n"), 400},
      {"a tab before the coding", with_fields("Transfer-Encoding:\tchunked\r\n"), 0},
      {"a vertical tab", with_fields("Transfer-Encoding: \vchunked\r\n"), 400},
      {"any case", with_fields("tRANSFER-eNCODING: CHUNKED\r\n"), 0},
      {"coding in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"folded", with_fields("X: a\r\n b\r\n"), 400},
      {"folded by a tab", with_fields("X: a\r\n\tb\r\n"), 400},
      {"folded first", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
      {"space before the colon", with_fields("Content-Length : 3\r\n"), 400},
      {"space in a name", with_fields("Content Length: 3\r\n"), 400},
      {"no name", with_fields(": 3\r\n"), 400},
      {"no colon", with_fields("Nothing\r\n"), 400},
      {"bare LF", "GET / HTTP/1.1\nHost: h\n\n", 400},
      {"one bare LF", with_fields("A: b\nContent-Length: 3\r\n"), 400},
      {"bare CR", with_fields("A: b\rContent-Length: 3\r\n"), 400},
      {"CR CR LF", with_fields("A: b\r\r\n"), 400},
      {"bare CR in the first line", "GET /\r HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"NUL in a value", with_fields("A: b" + nul + "c\r\n"), 400},
      {"NUL in a name", with_fields("A" + nul + ": b\r\n"), 400},
      {"NUL in the target", "GET /" + nul + " HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"DEL in a value", with_fields("A: b\x7f\r\n"), 400},
      {"bytes above 127 in a value", with_fields("A: \xc3\xa4\r\n"), 0},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400},
      {"a list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
      {"a host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"no host in 1.0", "GET / HTTP/1.0\r\n\r\n", 0},
      {"two hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400},
  };
  for (const request_case& c : cases) EXPECT_EQ(status_of_request(c.bytes), c.status) << c.what;
}

TEST(http_head, refuses_first_lines_that_are_no_requests) {
  const std::string host = "\r\nHost: h\r\n\r\n";
  const request_case cases[] = {
      {"garbage", "\x01\x02garbage\r\n\r\n", 400},
      {"a byte of TLS", "\x16", 400},
      {"0.9", "GET /" + host, 400},
      {"9.9", "GET / HTTP/9.9" + host, 505},
      {"2.0", "PRI * HTTP/2.0\r\n\r\n", 505},
      {"1.2", "GET / HTTP/1.2" + host, 505},
      {"1.10", "GET / HTTP/1.10" + host, 400},
      {"lower case", "GET / http/1.1" + host, 400},
      {"no version", "GET / HTTP" + host, 400},
      {"two spaces", "GET  / HTTP/1.1" + host, 400},
      {"two spaces before the version", "GET /  HTTP/1.1" + host, 400},
      {"a tab", "GET\t/ HTTP/1.1" + host, 400},
      {"a space behind", "GET / HTTP/1.1 " + host, 400},
      {"a space in the target", "GET /a b HTTP/1.1" + host, 400},
      {"a method in brackets", "(GET) / HTTP/1.1" + host, 400},
      {"a method that no one knows", "BREW / HTTP/1.1" + host, 0},
      {"no slash", "GET a HTTP/1.1" + host, 400},
      {"a fragment", "GET /a#b HTTP/1.1" + host, 400},
      {"raw utf-8", "GET /\xc3\xa4 HTTP/1.1" + host, 400},
      {"a star", "GET * HTTP/1.1" + host, 400},
      {"options of a star", "OPTIONS * HTTP/1.1" + host, 0},
      {"a url", "GET http://h/x HTTP/1.1" + host, 0},
      {"a url without a path", "GET http://h HTTP/1.1" + host, 0},
      {"the url of another host", "GET http://other/x HTTP/1.1" + host, 400},
      {"another scheme", "GET ftp://h/x HTTP/1.1" + host, 400},
      {"user info", "GET http://u@h/x HTTP/1.1" + host, 400},
      {"connect", "CONNECT h:443 HTTP/1.1" + host, 0},
      {"a bad query", "GET /?%zz HTTP/1.1" + host, 400},
  };
  for (const request_case& c : cases) EXPECT_EQ(status_of_request(c.bytes), c.status) << c.what;
}

TEST(http_head, has_limits_on_bytes_and_on_fields) {
  const weir::detail::http_limits limits{.max_head = 200, .max_fields = 3};
  const std::string start = "GET / HTTP/1.1\r\nHost: h\r\nA: ";
  const std::string fits = start + std::string(200 - start.size() - 4, 'a') + "\r\n\r\n";
  ASSERT_EQ(fits.size(), 200U);
  EXPECT_EQ(status_of_request(fits, limits), 0);
  EXPECT_EQ(status_of_request(start + std::string(200, 'a') + "\r\n\r\n", limits), 431);
  EXPECT_EQ(status_of_request(start + std::string(200 - start.size() - 1, 'a'), limits), -1);
  EXPECT_EQ(status_of_request(start + std::string(200 - start.size(), 'a'), limits), 431);
  EXPECT_EQ(status_of_request("GET /" + std::string(300, 'a'), limits), 431) << "a long target";
  EXPECT_EQ(status_of_request(with_fields("A: 1\r\nB: 2\r\n"), limits), 0);
  EXPECT_EQ(status_of_request(with_fields("A: 1\r\nB: 2\r\nC: 3\r\n"), limits), 431);
  std::string hundred;
  for (int i = 0; i < 99; ++i) hundred += "F: x\r\n";
  EXPECT_EQ(status_of_request(with_fields(hundred)), 0);
  EXPECT_EQ(status_of_request(with_fields(hundred + "F: x\r\n")), 431);
}

TEST(http_head, is_read_without_the_spaces_around_values) {
  http_head_reader reader;
  http_head head;
  const std::string bytes =
      "\r\nPUT /a?b=c HTTP/1.1\r\nHost: h:80\r\nX-It: \t two words \t\r\nEmpty:\r\n"
      "Content-Length: 12\r\nExpect: 100-Continue\r\n\r\nand more";
  const auto r = reader.read_request(bytes, head);
  ASSERT_FALSE(r.fault) << r.fault.text;
  EXPECT_EQ(bytes.substr(r.consumed), "and more");
  EXPECT_EQ(head.method, "PUT");
  EXPECT_EQ(head.target, "/a?b=c");
  EXPECT_EQ(head.find("x-IT"), "two words");
  EXPECT_EQ(head.find("empty"), "");
  EXPECT_EQ(head.find("none"), std::nullopt);
  EXPECT_EQ(head.framing, http_framing::length);
  EXPECT_EQ(head.length, 12U);
  EXPECT_TRUE(head.expects_continue);
  EXPECT_TRUE(head.keep_alive);
}

TEST(http_head, keeps_the_connection_as_its_version_and_fields_say) {
  const auto keeps = [](const std::string& version, const std::string& fields) {
    http_head_reader reader;
    http_head head;
    const auto r =
        reader.read_request("GET / HTTP/" + version + "\r\nHost: h\r\n" + fields + "\r\n", head);
    EXPECT_FALSE(r.fault) << r.fault.text;
    return head.keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_FALSE(keeps("1.1", "Connection: close\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: keep-alive, Close\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: te\r\nConnection: close\r\n"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "Connection: Keep-Alive\r\n"));
}

struct response_case {
  const char* what;
  std::string bytes;
  bool accepted;
  http_framing framing = http_framing::none;
};

TEST(http_head, of_a_response_says_how_its_body_ends) {
  using enum http_framing;
  const response_case cases[] = {
      {"length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, length},
      {"no body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true, none},
      {"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true, chunked},
      {"until it closes", "HTTP/1.1 200 OK\r\n\r\n", true, until_close},
      {"1.0", "HTTP/1.0 200 OK\r\n\r\n", true, until_close},
      {"no reason", "HTTP/1.1 200\r\n\r\n", true, until_close},
      {"an empty reason", "HTTP/1.1 200 \r\n\r\n", true, until_close},
      {"204", "HTTP/1.1 204 No Content\r\n\r\n", true, none},
      {"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true, none},
      {"100", "HTTP/1.1 100 Continue\r\n\r\n", true, none},
      {"two hosts are fields", "HTTP/1.1 204 x\r\nHost: a,b\r\nHost: c\r\n\r\n", true, none},
      {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\n", false},
      {"both", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false},
      {"another coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", false},
      {"coding in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false},
      {"two digits", "HTTP/1.1 20 OK\r\n\r\n", false},
      {"four digits", "HTTP/1.1 2000 OK\r\n\r\n", false},
      {"below 100", "HTTP/1.1 099 OK\r\n\r\n", false},
      {"no status", "HTTP/1.1\r\n\r\n", false},
      {"no number", "HTTP/1.1 abc OK\r\n\r\n", false},
      {"an empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", false},
      {"bare LF", "HTTP/1.1 200 OK\n\n", false},
      {"NUL in the reason", std::string("HTTP/1.1 200 O\0K\r\n\r\n", 20), false},
      {"2.0", "HTTP/2.0 200 OK\r\n\r\n", false},
  };
  for (const response_case& c : cases) {
    http_head_reader reader;
    http_head head;
    const auto r = reader.read_response(c.bytes, head, false);
    EXPECT_EQ(!r.fault && r.consumed == c.bytes.size(), c.accepted) << c.what << r.fault.text;
    if (c.accepted) {
      EXPECT_EQ(head.framing, c.framing) << c.what;
    }
  }
  http_head_reader reader;
  http_head head;
  (void)reader.read_response(cases[0].bytes, head, true);
  EXPECT_EQ(head.framing, none) << "the answer to HEAD has no body";
  EXPECT_EQ(head.find("content-length"), "3");
}

TEST(http_head, and_body_are_the_same_however_the_bytes_are_cut) {
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde"
      "\r\n0\r\nTrailer: x\r\n\r\n";
  const std::string found = fuzz::read_http(chunked + "\r\n" + chunked, true);
  EXPECT_NE(found.find("abcde|end|POST"), std::string::npos) << found;
  EXPECT_NE(fuzz::read_http("GET / HTTP/1.1\r\n\r\n", true).find("fault 400"), std::string::npos);
  EXPECT_NE(fuzz::read_http("HTTP/1.1 200 OK\r\n\r\nuntil", false).find("until|complete"),
            std::string::npos);
  const std::string cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort";
  EXPECT_NE(fuzz::read_http(cut, false).find("short|cut"), std::string::npos);
}

/// Every single-byte change of a message; the readers must not depend on how it is cut.
TEST(http_head, survives_every_change_of_one_byte) {
  const std::string bytes =
      "PUT /a%20b?c=d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\n"
      "abcdefghijklmnopqrstuvwxyz\r\n0\r\nT: x\r\n\r\n";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const char c : {'\0', '\r', '\n', ' ', ':', ',', '0', 'z', '\xff'}) {
      std::string changed = bytes;
      changed[i] = c;
      (void)fuzz::read_http(changed, true);
      (void)fuzz::read_http("HTTP/1.1 200 OK\r\n" + changed.substr(25), false);
    }
  }
}

}  // namespace
