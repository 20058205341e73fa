// SPDX-License-Identifier: MIT
// Servers for the tests of the client: they run on its loop, as scripts that read requests and
// write whatever bytes a test wants as answers.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/http/client.hpp>
#include <weir/io.hpp>

#include "support/test_support.hpp"

namespace weir_test {

using namespace test_support;
using weir::errc;
using weir::task;
namespace io = weir::io;
namespace http = weir::http;

/// An answer with a length.
inline std::string answer_of(std::string_view body, std::string_view more = "",
                             std::string_view status = "200 OK") {
  return "HTTP/1.1 " + std::string(status) + "\r\ncontent-length: " + std::to_string(body.size()) +
         "\r\n" + std::string(more) + "\r\n" + std::string(body);
}

/// One request as a server gets it; empty at the end.
struct received_request {
  std::string head;
  std::string body;

  explicit operator bool() const { return !head.empty(); }
  std::string method() const { return head.substr(0, head.find(' ')); }
  std::string target() const {
    const std::size_t begin = head.find(' ') + 1;
    return head.substr(begin, head.find(' ', begin) - begin);
  }
  /// The value of a field that is sent in lower case; "(none)" if there is none.
  std::string field(const std::string& name) const {
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "(none)";
    const std::size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

/// A connection of a scripted server.
class served_connection {
 public:
  served_connection(io::socket& socket, int number, std::vector<received_request>& all)
      : socket_(socket), number_(number), all_(all) {}

  int number() const { return number_; }
  io::socket& socket() { return socket_; }
  /// Waits for the next request, with its body; empty if the client has closed the connection.
  task<received_request> request() {
    received_request r;
    try {
      r.head = co_await socket_.read_until("\r\n\r\n", 1 << 20);
      if (const std::string length = r.field("content-length"); length != "(none)") {
        r.body.resize(std::stoul(length));
        if (!r.body.empty())
          co_await socket_.read_exactly(std::as_writable_bytes(std::span(r.body)));
      } else if (r.field("transfer-encoding") == "chunked") {
        for (bool last = false; !last;) {
          const std::string line = co_await socket_.read_until("\r\n", 100);
          std::string chunk(std::stoul(line, nullptr, 16) + 2, '\0');
          last = chunk.size() == 2;
          co_await socket_.read_exactly(std::as_writable_bytes(std::span(chunk)));
          r.body += chunk.substr(0, chunk.size() - 2);
        }
      }
    } catch (const weir::error&) {
      co_return received_request();
    }
    all_.push_back(r);
    co_return r;
  }
  task<> send(std::string text) { co_await socket_.write_all(text); }
  /// Answers every request in the same way, until the client has gone.
  task<> answer_all(std::string text) {
    for (;;) {  // built by g++-12, `while (co_await request()) co_await send(text)` crashed here
      const received_request r = co_await request();
      if (!r) co_return;
      co_await send(text);
    }
  }
  /// Closes with a reset instead of an end.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_.close();
  }

 private:
  io::socket& socket_;
  int number_;
  std::vector<received_request>& all_;
};

using server_script = std::function<task<>(served_connection&)>;

class scripted_server {
 public:
  explicit scripted_server(server_script script) : script_(std::move(script)) {}

  int port = 0;
  int accepted = 0;
  int open = 0;  // connections whose script runs
  std::vector<received_request> requests;

  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port) + path;
  }
  task<> run(io::listener& l) {
    auto handle = [this](io::socket& s) -> task<> {
      served_connection c(s, accepted++, requests);
      struct count {
        int& n;
        explicit count(int& of) : n(of) { ++n; }
        ~count() { --n; }
      } mark(open);
      co_await script_(c);
    };
    co_await io::serve(l, handle, {.drain = 0ms});
  }

 private:
  server_script script_;
};

/// Runs `body(server)` while the server runs, on one loop.
template <class Body>
void with_scripted_server(server_script script, Body body) {
  scripted_server server(std::move(script));
  auto program = [&]() -> task<> {
    auto l = co_await io::listen();
    server.port = l.port();
    auto inside = [&](weir::scope& s) -> task<> {
      s.background(server.run(l));
      co_await body(server);
    };
    co_await weir::with_scope(inside);
  };
  weir::run(program);
}

/// Runs a program on a real loop and in a simulation.
template <class F>
void on_loopback_and_simulated(F program) {
  {
    SCOPED_TRACE("real");
    weir::run(program);
  }
  SCOPED_TRACE("simulated");
  weir_test::in_order(program);
}

/// The error of an awaited request, or null.
template <class F>
task<std::exception_ptr> failure_of(F request) {
  co_return co_await attempt(std::move(request));
}

}  // namespace weir_test
