// SPDX-License-Identifier: MIT
#include <weir/http/serve.hpp>

#include <gtest/gtest.h>

#include <string>

#include "io/http_peer.hpp"

namespace {

namespace http = weir::http;
using http_test::get;
using http_test::has;
using http_test::on_loopback;
using http_test::peer;
using http_test::reply;
using weir::task;

constexpr http::http_options strict_limits{.max_header = 4096, .max_body = 1000};

struct refusal {
  const char* what;
  std::string bytes;
  int status;
};

std::vector<refusal> refusals() {
  const std::string host = "\r\nHost: h\r\n";
  const std::string nul(1, '\0');
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "A: b\r\n";
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  return {
      {"length with coding",
       "POST / HTTP/1.1" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"lengths that differ",
       "POST / HTTP/1.1" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"no plain digits", "POST / HTTP/1.1" + host + "Content-Length: 1x\r\n\r\n", 400},
      {"another coding", "POST / HTTP/1.1" + host + "Transfer-Encoding: gzip\r\n\r\n", 400},
      {"coding in 1.0", "POST / HTTP/1.0" + host + "Transfer-Encoding: chunked\r\n\r\n", 400},
      {"folded", "GET / HTTP/1.1" + host + "A: b\r\n c\r\n\r\n", 400},
      {"space before the colon", "GET / HTTP/1.1" + host + "A : b\r\n\r\n", 400},
      {"bare LF", "GET / HTTP/1.1\nHost: h\n\n", 400},
      {"bare CR", "GET / HTTP/1.1" + host + "A: b\rc\r\n\r\n", 400},
      {"NUL", "GET / HTTP/1.1" + host + "A: b" + nul + "\r\n\r\n", 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two hosts", "GET / HTTP/1.1" + host + "Host: h\r\n\r\n", 400},
      {"a chunk with 17 digits", chunked + "00000000000000001\r\na\r\n", 400},
      {"a chunk that is not hexadecimal", chunked + "xyz\r\n", 400},
      {"a bad percent", "GET /%zz HTTP/1.1" + host + "\r\n", 400},
      {"above the root", "GET /a/../.. HTTP/1.1" + host + "\r\n", 400},
      {"garbage", "\x01\x02garbage\r\n\r\n", 400},
      {"a long header", "GET / HTTP/1.1" + host + "A: " + std::string(5000, 'x') + "\r\n\r\n", 431},
      {"a long target", "GET /" + std::string(5000, 'x') + " HTTP/1.1" + host + "\r\n", 431},
      {"too many fields", "GET / HTTP/1.1" + host + fields + "\r\n", 431},
      {"a declared body", "POST / HTTP/1.1" + host + "Content-Length: 1001\r\n\r\n", 413},
      {"a counted body", chunked + "3e9\r\n" + std::string(1001, 'x') + "\r\n0\r\n\r\n", 413},
      {"another version", "GET / HTTP/2.0" + host + "\r\n", 505},
      {"connect", "CONNECT h:80 HTTP/1.1" + host + "\r\n", 405},
      {"a deadline that is no number", "GET / HTTP/1.1" + host + "X-Deadline-Ms: soon\r\n\r\n",
       400},
  };
}

TEST(http_refusal, has_its_status_and_closes_the_connection) {
  int handled = 0;
  auto handler = [&](http::request& r) -> task<http::response> {
    if (r.path() == "/ok") co_return http::response(200, "ok");
    ++handled;
    std::string body = co_await r.body();
    co_return http::response(200, body);
  };
  on_loopback(handler, strict_limits, [&](int port) -> task<> {
    for (const refusal& c : refusals()) {
      const int before = handled;
      peer p = co_await peer::dial(port);
      co_await p.send(c.bytes);
      const reply r = co_await p.next();
      EXPECT_EQ(r.status, c.status) << c.what;
      EXPECT_EQ(r.header("connection"), "close") << c.what;
      EXPECT_TRUE(r.whole) << c.what;
      EXPECT_TRUE(co_await p.at_end()) << c.what;
      EXPECT_TRUE(p.ended_cleanly()) << c.what;
      const bool in_body = has(c.what, "chunk") || has(c.what, "counted");
      EXPECT_EQ(handled, before + (in_body ? 1 : 0)) << c.what;
      EXPECT_EQ((co_await get(port, "/ok")).body, "ok") << "others are not hurt";
    }
  });
}

TEST(http_refusal, of_a_head_has_no_body) {
  auto handler = [](http::request&) -> task<http::response> { co_return http::response(200); };
  on_loopback(handler, strict_limits, [](int port) -> task<> {
    for (const char* fields : {"\r\n", "\r\nHost: h\r\nX-Deadline-Ms: soon\r\n"}) {
      peer p = co_await peer::dial(port);
      co_await p.send("HEAD / HTTP/1.1" + std::string(fields) + "\r\n");
      const reply r = co_await p.next(true);
      EXPECT_EQ(r.status, 400);
      EXPECT_TRUE(r.header("content-length").has_value());
      EXPECT_TRUE(co_await p.at_end()) << "nothing but the head";
    }
  });
}

TEST(http_refusal, arrives_although_the_client_goes_on_sending) {
  auto handler = [](http::request&) -> task<http::response> { co_return http::response(200); };
  on_loopback(handler, strict_limits, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 800000\r\n\r\n");
    co_await p.send(std::string(800'000, 'x'));
    const reply r = co_await p.next();
    EXPECT_EQ(r.status, 413);
    EXPECT_TRUE(r.whole);
  });
}

TEST(http_refusal, of_a_truncated_request_is_400) {
  bool ended_early = false;
  auto handler = [&](http::request& r) -> task<http::response> {
    try {
      std::string body = co_await r.body();
    } catch (const weir::error& e) {
      ended_early = e.code() == weir::errc::end_of_stream;
      throw;
    }
    co_return http::response(200);
  };
  on_loopback(handler, strict_limits, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("GET / HTTP/1.1\r\nHos");
    p.half_close();
    EXPECT_EQ((co_await p.next()).status, 400);
    peer q = co_await peer::dial(port);
    co_await q.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
    q.half_close();
    EXPECT_EQ((co_await q.next()).status, 400);
    EXPECT_TRUE(ended_early);
  });
}

TEST(http_refusal, is_not_for_a_connection_that_says_nothing) {
  auto handler = [](http::request&) -> task<http::response> { co_return http::response(200); };
  on_loopback(handler, strict_limits, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    p.half_close();
    EXPECT_EQ(co_await p.all(), "");
  });
}

TEST(http_refusal, of_a_body_can_be_answered_by_the_handler) {
  auto handler = [](http::request& r) -> task<http::response> {
    bool refused = false;
    try {
      std::string body = co_await r.body();
    } catch (const weir::error& e) {
      refused = e.code() == weir::errc::bad_data;
    }
    co_return http::response(422, refused ? "bad framing" : "?");
  };
  on_loopback(handler, strict_limits, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n");
    const reply r = co_await p.next();
    EXPECT_EQ(r.status, 422);
    EXPECT_EQ(r.body, "bad framing");
    EXPECT_EQ(r.header("connection"), "close");
    EXPECT_TRUE(co_await p.at_end());
  });
}

}  // namespace
