// SPDX-License-Identifier: MIT
// A client for the tests of the HTTP server: it sends bytes as they are, on an io::socket, so that
// the same test runs on loopback and on the simulated network, without threads.
#pragma once

#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace http_test {

using weir::task;

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}
inline bool has(std::string_view all, std::string_view part) {
  return all.find(part) != std::string_view::npos;
}

struct reply {
  int status = 0;  // 0: no answer
  std::string head;
  std::string body;
  bool whole = false;  // it ended as its framing says

  std::optional<std::string> header(std::string_view name) const {
    const std::string wanted = "\r\n" + lower(name) + ": ";
    const std::size_t at = lower(head).find(wanted);
    if (at == std::string::npos) return std::nullopt;
    const std::size_t begin = at + wanted.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

class peer {
 public:
  static task<peer> dial(int port) {
    auto socket = co_await weir::io::connect("127.0.0.1", port);
    co_return peer(std::move(socket));
  }
  explicit peer(weir::io::socket s) : socket_(std::move(s)) {}

  weir::io::socket& socket() { return socket_; }
  task<> send(std::string bytes) { co_await socket_.write_all(bytes); }
  void half_close() { socket_.shutdown_write(); }
  void close() { socket_.close(); }

  /// Everything up to the mark and the mark; what came, if the connection ends before.
  task<std::string> until(std::string mark) {
    while (buffer_.find(mark) == std::string::npos)
      if (!co_await more()) co_return std::exchange(buffer_, {});
    const std::size_t n = buffer_.find(mark) + mark.size();
    std::string out = buffer_.substr(0, n);
    buffer_.erase(0, n);
    co_return out;
  }
  task<std::string> exactly(std::size_t n) {
    while (buffer_.size() < n)
      if (!co_await more()) break;
    std::string out = buffer_.substr(0, n);
    buffer_.erase(0, out.size());
    co_return out;
  }
  /// To the end of the connection.
  task<std::string> all() {
    for (bool open = true; open;) open = co_await more();
    co_return std::exchange(buffer_, {});
  }
  /// Whether the connection has ended, and nothing comes before.
  task<bool> at_end() {
    if (!buffer_.empty()) co_return false;
    const bool open = co_await more();
    co_return !open;
  }
  bool ended_cleanly() const { return ended_cleanly_; }

  task<reply> next(bool head_only = false) {
    reply r;
    r.head = co_await until("\r\n\r\n");
    if (!r.head.ends_with("\r\n\r\n") || r.head.size() < 16) co_return r;
    r.status = std::atoi(r.head.c_str() + 9);
    r.whole = head_only || r.status < 200 || r.status == 204 || r.status == 304;
    if (r.whole) co_return r;
    const auto length = r.header("content-length");
    if (r.header("transfer-encoding") == "chunked") {
      co_await read_chunks(r);
    } else if (length) {
      r.body = co_await exactly(std::stoul(*length));
      r.whole = r.body.size() == std::stoul(*length);
    } else {
      r.body = co_await all();
      r.whole = ended_cleanly_;
    }
    co_return r;
  }

 private:
  task<> read_chunks(reply& r) {
    for (;;) {
      const std::string line = co_await until("\r\n");
      if (!line.ends_with("\r\n")) co_return;
      const std::size_t n = std::strtoul(line.c_str(), nullptr, 16);
      const std::string piece = co_await exactly(n + 2);
      r.body += piece.substr(0, n);
      if (piece.size() < n + 2) co_return;
      if (n == 0) {
        r.whole = true;
        co_return;
      }
    }
  }

  task<bool> more() {
    std::array<std::byte, 4096> bytes;
    std::size_t n = 0;
    try {
      n = co_await socket_.read_some(bytes);
    } catch (const weir::error&) {
      co_return false;
    }
    ended_cleanly_ = n == 0;
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), n);
    co_return n > 0;
  }

  weir::io::socket socket_;
  std::string buffer_;
  bool ended_cleanly_ = false;
};

/// One request on a connection of its own.
inline task<reply> ask(int port, std::string bytes, bool head_only = false) {
  peer p = co_await peer::dial(port);
  co_await p.send(bytes);
  co_return co_await p.next(head_only);
}
inline std::string get_bytes(std::string_view target, std::string_view fields = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n";
}
inline task<reply> get(int port, std::string target, std::string fields = "") {
  return ask(port, get_bytes(target, fields + "Connection: close\r\n"));
}
inline std::string post_bytes(std::string_view target, std::string_view body,
                              std::string_view fields = "") {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

/// Serves while `body(port)` runs.
template <class Handler, class Body>
task<> serve_while(Handler& handler, weir::http::http_options options, Body& body) {
  auto in_scope = [&](weir::scope& s) -> task<> {
    auto l = co_await weir::io::listen();
    auto run = [&]() -> task<> { co_await weir::http::serve(l, handler, options); };
    s.background(run);
    co_await body(l.port());
  };
  co_await weir::with_scope(in_scope);
}

template <class Handler, class Body>
void on_loopback(Handler handler, weir::http::http_options options, Body body) {
  auto program = [&]() -> task<> { co_await serve_while(handler, options, body); };
  weir::run(program);
}

}  // namespace http_test
