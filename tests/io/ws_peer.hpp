// SPDX-License-Identifier: MIT
// What the tests of WebSocket share: frames made by hand, and a peer that sends them as they are,
// on an io::socket, so that the same test runs on loopback and on the simulated network.
#pragma once

#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/http_peer.hpp"
#include "io/ws_frame.hpp"

namespace ws_test {

using namespace std::chrono_literals;
using weir::task;
namespace http = weir::http;
namespace io = weir::io;
namespace ws = weir::ws;

struct op {
  static constexpr int text = 1;
  static constexpr int binary = 2;
  static constexpr int close = 8;
  static constexpr int ping = 9;
  static constexpr int pong = 10;
};

struct shape {
  bool fin = true;
  bool masked = true;
  int rsv = 0;
};

/// The head of a frame without its key; `bytes` of length (0, 2 or 8), or as few as possible.
inline std::string head(int opcode, std::uint64_t length, shape how = {}, int bytes = -1) {
  std::string out;
  out += static_cast<char>((how.fin ? 0x80 : 0) | how.rsv << 4 | opcode);
  if (bytes < 0) bytes = length < 126 ? 0 : length < 65536 ? 2 : 8;
  const int first = bytes == 0 ? static_cast<int>(length) : bytes == 2 ? 126 : 127;
  out += static_cast<char>((how.masked ? 0x80 : 0) | first);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(length >> (8 * i) & 0xff);
  return out;
}

inline std::string frame(int opcode, std::string_view payload, shape how = {}) {
  std::string out = head(opcode, payload.size(), how);
  if (!how.masked) return out.append(payload);
  constexpr std::string_view key = "\x11\xa2\x07\xfe";
  out += key;
  for (std::size_t i = 0; i < payload.size(); ++i)
    out += static_cast<char>(payload[i] ^ key[i % 4]);
  return out;
}

inline std::string close_frame(int code, std::string_view reason = "", bool masked = true) {
  std::string payload{static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
  payload += reason;
  return frame(op::close, payload, {.masked = masked});
}

/// A frame that came. The opcode is -1 if the connection has ended.
struct got {
  int opcode = -1;
  bool fin = true;
  std::string data;

  int code() const {
    return data.size() < 2
               ? 0
               : static_cast<unsigned char>(data[0]) << 8 | static_cast<unsigned char>(data[1]);
  }
};

inline std::string upgrade_request(std::string_view more = "") {
  return "GET /chat HTTP/1.1\r\nhost: server\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
         "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         std::string(more) + "\r\n";
}

/// One end of a connection, made by hand.
class peer {
 public:
  explicit peer(io::socket socket, bool client = true) : raw_(std::move(socket)), client_(client) {}

  /// A client of a server at 127.0.0.1, or at another host.
  static task<peer> dial(int port, std::string host = "127.0.0.1") {
    io::socket socket = co_await io::connect(host, port);
    peer made(std::move(socket));
    co_await made.raw_.send(upgrade_request());
    const http_test::reply r = co_await made.raw_.next();
    EXPECT_EQ(r.status, 101) << r.head;
    co_return made;
  }
  /// The server of a client that connects to `l`. `answer`: behind the status line.
  static task<peer> serve(io::listener& l, std::string more = "", std::string behind = "") {
    io::socket socket = co_await l.accept();
    peer made(std::move(socket), false);
    made.request = co_await made.raw_.until("\r\n\r\n");
    constexpr std::string_view name = "sec-websocket-key: ";
    const std::size_t at = made.request.find(name) + name.size();
    const std::string key = made.request.substr(at, made.request.find("\r\n", at) - at);
    co_await made.raw_.send(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
        "connection: Upgrade\r\nsec-websocket-accept: " +
        weir::detail::ws_accept_of(key) + "\r\n" + more + "\r\n" + behind);
    co_return made;
  }

  http_test::peer& raw() { return raw_; }
  task<> send(int opcode, std::string payload, bool fin = true) {
    return raw_.send(frame(opcode, payload, {.fin = fin, .masked = client_}));
  }
  task<> close(int code, std::string reason = "") {
    return raw_.send(close_frame(code, reason, client_));
  }
  task<got> next() {
    got g;
    const std::string first = co_await raw_.exactly(2);
    if (first.size() < 2) co_return g;
    const auto a = static_cast<unsigned char>(first[0]);
    const auto b = static_cast<unsigned char>(first[1]);
    EXPECT_EQ((b & 0x80) != 0, !client_) << "clients mask, servers do not";
    std::uint64_t n = b & 0x7f;
    const std::size_t extra = n == 126 ? 2 : n == 127 ? 8 : 0;
    if (extra > 0) {
      n = 0;
      for (const char c : co_await raw_.exactly(extra)) n = n << 8 | static_cast<unsigned char>(c);
    }
    std::string key;
    if (!client_) key = co_await raw_.exactly(4);
    g.data = co_await raw_.exactly(n);
    if (g.data.size() < n) co_return got{};
    for (std::size_t i = 0; i < g.data.size() && !key.empty(); ++i)
      g.data[i] = static_cast<char>(g.data[i] ^ key[i % 4]);
    g.opcode = a & 0x0f;
    g.fin = (a & 0x80) != 0;
    co_return g;
  }
  /// The code of the close frame, whatever comes before it; 0: none came.
  task<int> closed() {
    for (;;) {
      const got g = co_await next();
      if (g.opcode < 0) co_return 0;
      if (g.opcode == op::close) co_return g.code();
    }
  }
  task<bool> at_end() { return raw_.at_end(); }

  std::string request;  // what a client has sent

 private:
  http_test::peer raw_;
  bool client_;
};

/// Serves `fn` while `body(port)` runs, in the loop and the network of the caller.
template <class Fn, class Body>
task<> with_ws(Fn fn, ws::ws_options options, Body body, http::http_options how = {.drain = 0ms}) {
  auto handler = [&fn, options](http::request& r) -> task<http::response> {
    return ws::accept(r, fn, options);
  };
  co_await http_test::serve_while(handler, how, body);
}
template <class Fn, class Body>
task<> with_ws(Fn fn, Body body) {
  return with_ws(std::move(fn), ws::ws_options{}, std::move(body));
}

inline task<> echo(ws::connection& c) {
  for (;;) {
    const auto m = co_await c.read();
    if (!m) co_return;
    if (m->text()) {
      co_await c.write_text(m->data());
    } else {
      co_await c.write_binary(m->data());
    }
  }
}

inline std::string url_of(int port) { return "ws://127.0.0.1:" + std::to_string(port) + "/chat"; }

}  // namespace ws_test
