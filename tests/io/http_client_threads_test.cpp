// SPDX-License-Identifier: MIT
// http::client against a server of plain descriptors on threads of its own.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <weir/io.hpp>

#include "support/test_support.hpp"

using namespace test_support;
using weir::errc;
using weir::task;
namespace http = weir::http;

namespace {

/// A connection of the plain server: blocking calls on a thread.
class plain_peer {
 public:
  explicit plain_peer(int number) : number_(number) {}
  plain_peer(const plain_peer&) = delete;
  plain_peer& operator=(const plain_peer&) = delete;
  ~plain_peer() { ::close(number_); }

  /// Everything up to the mark; empty if the client has gone.
  std::string until(std::string_view mark) {
    std::string all;
    char c = 0;
    while (!all.ends_with(mark)) {
      if (::recv(number_, &c, 1, 0) <= 0) return {};
      all += c;
    }
    return all;
  }
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::send(number_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

 private:
  int number_;
};

class plain_server {
 public:
  explicit plain_server(std::function<void(plain_peer&)> script)
      : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), script_(std::move(script)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listening_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(listening_, 100), 0);
    EXPECT_EQ(::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  plain_server(const plain_server&) = delete;
  plain_server& operator=(const plain_server&) = delete;
  ~plain_server() {
    ::shutdown(listening_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& t : connections_) t.join();
    ::close(listening_);
  }

  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  std::atomic<int> accepted{0};

 private:
  void accept_all() {
    for (;;) {
      const int number = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      if (number < 0) return;
      ++accepted;
      connections_.emplace_back([this, number] {
        plain_peer peer(number);
        script_(peer);
      });
    }
  }

  int listening_;
  int port_ = 0;
  std::function<void(plain_peer&)> script_;
  std::vector<std::thread> connections_;
  std::thread accepting_;
};

const std::string plain_ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

}  // namespace

TEST(http_client_threads, a_foreign_server_is_asked_over_few_connections) {
  plain_server server([](plain_peer& c) {
    while (!c.until("\r\n\r\n").empty())
      if (!c.send(plain_ok)) return;
  });
  weir::run([&]() -> task<> {
    http::client c({.max_per_host = 3});
    std::vector<int> many(200);
    auto get = [&](int) -> task<std::string> { co_return (co_await c.get(server.url())).body(); };
    const auto bodies = co_await weir::parallel_map(many, get, 40);
    EXPECT_EQ(bodies, std::vector<std::string>(200, "ok"));
  });
  EXPECT_LE(server.accepted, 3);
}

TEST(http_client_threads, a_server_that_closes_after_each_answer_costs_a_connection_each) {
  plain_server server([](plain_peer& c) {
    c.until("\r\n\r\n");
    c.send(plain_ok);
  });
  weir::run([&]() -> task<> {
    http::client c;
    for (int i = 0; i < 50; ++i) EXPECT_EQ((co_await c.get(server.url())).body(), "ok");
  });
  EXPECT_GE(server.accepted, 50);
}

TEST(http_client_threads, bytes_that_come_one_by_one_are_the_same_answer) {
  plain_server server([](plain_peer& c) {
    c.until("\r\n\r\n");
    for (const char byte : std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       "3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\nt: u\r\n\r\n"))
      if (!c.send({&byte, 1})) return;
    c.until("never");
  });
  weir::run([&]() -> task<> {
    http::client c;
    EXPECT_EQ((co_await c.get(server.url())).body(), "abc0123456789");
  });
}

TEST(http_client_threads, cancels_at_any_moment_leave_nothing_behind) {
  plain_server server([](plain_peer& c) {
    while (!c.until("\r\n\r\n").empty())
      if (!c.send("HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n" + std::string(30'000, 'x')))
        return;
  });
  weir::run([&]() -> task<> {
    http::client c({.max_per_host = 4});
    int done = 0;
    for (int i = 0; i < 300; ++i) {
      auto get = [&]() -> task<> {
        (void)co_await c.get(server.url());
        ++done;
      };
      (void)co_await weir::settle(weir::with_timeout(std::chrono::microseconds(7 * (i % 60)), get));
    }
    EXPECT_EQ((co_await c.get(server.url())).body().size(), 30'000U);
  });
}

TEST(http_client_threads, a_client_is_refused_on_another_loop_while_its_own_runs) {
  weir::run([]() -> task<> {
    http::client c;
    (void)co_await error_of(c.get("http://127.0.0.1:1/"));
    std::exception_ptr error;
    std::thread other([&] {
      weir::run([&]() -> task<> { error = co_await error_of(c.get("http://127.0.0.1:1/")); });
    });
    other.join();
    EXPECT_EQ(code_of(error), errc::wrong_loop);
  });
}
