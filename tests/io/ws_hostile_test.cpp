// SPDX-License-Identifier: MIT
// Peers that break the protocol: each is told the code, and the other end gets the error.
#include <weir/ws.hpp>

#include <vector>

#include "io/io_support.hpp"
#include "io/ws_peer.hpp"

namespace {

using namespace ws_test;
using test_support::code_after;
using weir::errc;
using ws_peer = ws_test::peer;

struct bad_input {
  const char* what;
  std::string bytes;
  int code;
  errc error;
};

std::vector<bad_input> bad_inputs(bool masked) {
  const auto made = [&](int opcode, std::string_view payload, bool fin = true, int rsv = 0) {
    return frame(opcode, payload, {.fin = fin, .masked = masked, .rsv = rsv});
  };
  return {
      {"masked the wrong way", frame(op::text, "x", {.masked = !masked}), 1002, errc::bad_data},
      {"reserved bit", made(op::text, "x", true, 1), 1002, errc::bad_data},
      {"unknown opcode", made(5, ""), 1002, errc::bad_data},
      {"fragmented ping", made(op::ping, "", false), 1002, errc::bad_data},
      {"long ping", made(op::ping, std::string(126, 'p')), 1002, errc::bad_data},
      {"continuation of nothing", made(0, "x"), 1002, errc::bad_data},
      {"message in a message", made(op::text, "x", false) + made(op::text, "y"), 1002,
       errc::bad_data},
      {"half a close code", made(op::close, "x"), 1002, errc::bad_data},
      {"bad close code", close_frame(1005, "", masked), 1002, errc::bad_data},
      {"bad close reason", close_frame(1000, "\xc3\x28", masked), 1007, errc::bad_data},
      {"bad text", made(op::text, "\xc3\x28"), 1007, errc::bad_data},
      {"bad text in the first fragment", made(op::text, "\xff", false), 1007, errc::bad_data},
      {"too long", made(op::text, std::string(1001, 'x')), 1009, errc::too_long},
      {"too long in fragments",
       made(op::text, std::string(600, 'x'), false) + made(0, std::string(600, 'x'), false), 1009,
       errc::too_long},
      {"too long by its announcement",
       head(op::binary, std::uint64_t{1} << 62U, {.masked = masked}) + (masked ? "keyy" : ""), 1009,
       errc::too_long},
  };
}

constexpr ws::ws_options thousand{.max_message = 1000};

}  // namespace

FIBER_TEST(ws_hostile, clients_are_told_the_code) {
  for (const bad_input& bad : bad_inputs(true)) {
    std::error_code how;
    int code = 0;
    bool over = false;
    auto fn = [&](ws::connection& c) -> task<> {
      how = co_await code_after([&] { return c.read(); });
      const auto again = co_await c.read();
      over = !again;
      code = c.close_code();
    };
    co_await with_ws(fn, thousand, [&](int port) -> task<> {
      ws_peer p = co_await ws_peer::dial(port);
      co_await p.raw().send(bad.bytes);
      EXPECT_EQ(co_await p.closed(), bad.code) << bad.what;
      p.raw().half_close();
      EXPECT_TRUE(co_await p.at_end()) << bad.what;
    });
    EXPECT_EQ(how, bad.error) << bad.what;
    EXPECT_EQ(code, bad.code) << bad.what;
    EXPECT_TRUE(over) << bad.what;
  }
}

FIBER_TEST(ws_hostile, servers_are_told_the_code) {
  for (const bad_input& bad : bad_inputs(false)) {
    io::listener l = co_await io::listen();
    const int port = l.port();
    auto server = [&]() -> task<> {
      ws_peer p = co_await ws_peer::serve(l, "", bad.bytes);
      EXPECT_EQ(co_await p.closed(), bad.code) << bad.what;
    };
    auto client = [&]() -> task<> {
      auto c = co_await ws::connect(url_of(port), thousand);
      EXPECT_EQ(co_await code_after([&] { return c.read(); }), bad.error) << bad.what;
      EXPECT_FALSE(co_await c.read()) << bad.what;
      EXPECT_EQ(c.close_code(), bad.code) << bad.what;
    };
    co_await weir::all(server, client);
  }
}

FIBER_TEST(ws_hostile, what_came_before_is_read_first) {
  auto fn = [](ws::connection& c) -> task<> {
    EXPECT_EQ((co_await c.read())->data(), "good");
    EXPECT_EQ(co_await code_after([&] { return c.read(); }), errc::bad_data);
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    co_await p.raw().send(frame(op::text, "good") + frame(7, "bad"));
    EXPECT_EQ(co_await p.closed(), 1002);
  });
}

// ------------------------------------------------------------------ handshakes

namespace {

struct bad_handshake {
  const char* what;
  std::string request;
  int status;
};

std::string without(std::string_view line) {
  std::string request = upgrade_request();
  const std::size_t at = request.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return request.erase(at, request.find("\r\n", at) + 2 - at);
}

std::string with(std::string_view line, std::string_view instead) {
  std::string request = upgrade_request();
  const std::size_t at = request.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return request.replace(at, line.size(), instead);
}

std::vector<bad_handshake> bad_handshakes() {
  return {
      {"a plain request", "GET / HTTP/1.1\r\nhost: h\r\n\r\n", 426},
      {"no upgrade", without("upgrade: "), 426},
      {"another upgrade", with("upgrade: websocket", "upgrade: h2c"), 426},
      {"no connection", without("connection: "), 400},
      {"another connection", with("connection: upgrade", "connection: keep-alive"), 400},
      {"no version", without("sec-websocket-version"), 400},
      {"an old version", with("version: 13", "version: 8"), 426},
      {"no key", without("sec-websocket-key"), 400},
      {"a short key", with("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ="), 400},
      {"two keys", upgrade_request("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), 400},
      {"a POST", with("GET", "POST"), 400},
      {"a body", upgrade_request("content-length: 2\r\n") + "xx", 400},
  };
}

}  // namespace

FIBER_TEST(ws_handshake, that_is_not_one_is_refused) {
  co_await with_ws(echo, [](int port) -> task<> {
    for (const bad_handshake& bad : bad_handshakes()) {
      http_test::peer p = co_await http_test::peer::dial(port);
      co_await p.send(bad.request);
      const http_test::reply r = co_await p.next();
      EXPECT_EQ(r.status, bad.status) << bad.what;
      EXPECT_EQ(r.header("sec-websocket-version").has_value(), bad.status == 426) << bad.what;
    }
  });
}

FIBER_TEST(ws_handshake, is_found_in_lists_and_in_any_case_of_letters) {
  co_await with_ws(echo, [](int port) -> task<> {
    http_test::peer p = co_await http_test::peer::dial(port);
    co_await p.send(
        "GET / HTTP/1.1\r\nHOST: h\r\nUpgrade: WebSocket\r\nConnection: keep-alive, UPGRADE\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    const http_test::reply r = co_await p.next();
    EXPECT_EQ(r.status, 101);
    EXPECT_EQ(r.header("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    EXPECT_EQ(r.header("upgrade"), "websocket");
    EXPECT_EQ(r.header("connection"), "upgrade");
    EXPECT_FALSE(r.header("content-length"));
    EXPECT_FALSE(r.header("sec-websocket-extensions"));
  });
}

FIBER_TEST(ws_handshake, chooses_a_subprotocol_that_both_know) {
  std::string chosen;
  auto fn = [&](ws::connection& c) -> task<> {
    chosen = c.subprotocol();
    co_return;
  };
  co_await with_ws(fn, ws::ws_options{.subprotocol = "v2.chat, v1.chat"}, [&](int port) -> task<> {
    auto c = co_await ws::connect(url_of(port), {.subprotocol = "v1.chat,v2.chat"});
    EXPECT_EQ(c.subprotocol(), "v2.chat") << "the server prefers it";
    EXPECT_FALSE(co_await c.read());
    EXPECT_EQ(chosen, "v2.chat");
    auto none = co_await ws::connect(url_of(port), {.subprotocol = "other"});
    EXPECT_EQ(none.subprotocol(), "");
    EXPECT_FALSE(co_await none.read());
  });
}

FIBER_TEST(ws_handshake, that_a_server_refuses_or_breaks_is_an_error) {
  const std::vector<std::string> answers{
      "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
      "sec-websocket-accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
      "not HTTP at all\r\n\r\n",
      "",
  };
  for (const std::string& answer : answers) {
    io::listener l = co_await io::listen();
    const int port = l.port();
    auto server = [&]() -> task<> {
      io::socket c = co_await l.accept();
      co_await c.read_until("\r\n\r\n", 4096);
      co_await c.write_all(answer);
    };
    auto client = [&]() -> task<> {
      const auto code = co_await code_after([&] { return ws::connect(url_of(port)); });
      EXPECT_EQ(code, answer.empty() ? errc::end_of_stream : errc::bad_data) << answer;
    };
    co_await weir::all(server, client);
  }
  io::listener l = co_await io::listen();
  const int port = l.port();
  auto server = [&]() -> task<> {
    co_await ws_peer::serve(l, "sec-websocket-protocol: unasked\r\n");
  };
  auto client = [&]() -> task<> {
    EXPECT_EQ(co_await code_after([&] { return ws::connect(url_of(port)); }), errc::bad_data);
  };
  co_await weir::all(server, client);
}

FIBER_TEST(ws_handshake, sends_the_fields_of_the_caller) {
  io::listener l = co_await io::listen();
  const int port = l.port();
  auto server = [&]() -> task<> {
    ws_peer p = co_await ws_peer::serve(l);
    EXPECT_TRUE(http_test::has(p.request, "authorization: Bearer t\r\n")) << p.request;
    EXPECT_TRUE(http_test::has(p.request, "GET /chat HTTP/1.1\r\n")) << p.request;
    co_await p.close(1000);
  };
  auto client = [&]() -> task<> {
    http::headers fields;
    fields.set("authorization", "Bearer t");
    auto c = co_await ws::connect(url_of(port), {}, fields);
    EXPECT_FALSE(co_await c.read());
  };
  co_await weir::all(server, client);
}
