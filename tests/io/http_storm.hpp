// SPDX-License-Identifier: MIT
// Servers with handlers that do what handlers should not, and clients that leave at any moment:
// they cancel, reset, half-close, and close while others read and write. The same on loopback, over
// several loops, and in a simulation. What must hold: an answer that arrives whole is the right
// one, bytes are neither lost nor repeated, and nothing is left behind.
#pragma once

#include <weir/http/client.hpp>
#include <weir/http/serve.hpp>

#include <atomic>
#include <random>

#include "network_support.hpp"

namespace storm {

using namespace weir_test;
namespace http = weir::http;

class dice {
 public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}
  /// 0 to n - 1.
  std::size_t roll(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }

 private:
  std::mt19937_64 engine_;
};

/// Where the servers are. The ports are written by their loop and read by others.
struct place {
  std::string host = "127.0.0.1";
  std::atomic<int> echo{0};
  std::atomic<int> web{0};
  bool simulated = false;

  std::string url(const std::string& path) const {
    return "http://" + host + ":" + std::to_string(web) + path;
  }
};

inline task<> pause(const place& at, std::size_t n) {
  if (at.simulated) co_await weir::sleep(std::chrono::milliseconds(n));
  for (std::size_t i = 0; i < n; ++i) co_await weir::yield();
}

// ------------------------------------------------------------------ the servers

inline weir::stream<std::string> endless() {
  for (;;) {
    co_await weir::yield();
    co_yield std::string(1000, 'e');
  }
}
inline weir::stream<std::string> failing() {
  for (int i = 0; i < 3; ++i) co_yield std::string(100, 'f');
  throw boom(3);
}
inline weir::stream<std::string> same(weir::stream<std::string> body) {
  while (auto piece = co_await body.next()) co_yield std::move(*piece);
}
inline task<> read_outside(weir::stream<std::string> body) {
  try {
    for (auto piece = co_await body.next(); piece;) piece = co_await body.next();
  } catch (const weir::error&) {
    co_return;  // the answer has ended
  }
}
inline task<> fail_later() {
  co_await weir::yield();
  throw boom(1);
}
inline task<> wait_for_ever() {
  weir::queue<int> nothing(1);
  (void)co_await nothing.next();
}

/// A handler that leaves fibers in a scope that outlives the request.
class handler {
 public:
  explicit handler(weir::scope& outside) : outside_(&outside) {}

  task<http::response> operator()(http::request& r) const {
    const std::string path(r.path());
    if (path == "/echo") co_return http::response(200, co_await r.body());
    if (path == "/same") co_return http::response::stream(same(r.body_stream()));
    if (path == "/cut") co_return http::response::stream(failing());
    if (path == "/endless") co_return http::response::stream(endless());
    if (path == "/throw") throw boom(2);
    if (path == "/park") co_await wait_for_ever();
    if (path == "/child") co_await weir::all(fail_later(), wait_for_ever());
    if (path == "/outside") outside_->spawn(read_outside(r.body_stream()));
    if (path == "/paused") {
      weir::stream<std::string> body = r.body_stream();
      auto one = [&]() -> task<> { (void)co_await body.next(); };
      auto turn = []() -> task<> { co_await weir::yield(); };
      (void)co_await weir::settle(weir::race(one, turn));
      outside_->spawn(read_outside(std::move(body)));
    }
    co_return http::response(200, path);
  }

 private:
  weir::scope* outside_;
};

inline task<> run_servers(place& at, int echo = 0, int web = 0) {
  io::listener raw = co_await io::listen({.port = echo});
  io::listener http_listener = co_await io::listen({.port = web});
  auto inside = [&](weir::scope& s) -> task<> {
    s.spawn(io::serve(raw, echo_back, {.drain = 0ms}));
    s.spawn(http::serve(http_listener, handler(s), {.max_body = 300'000, .drain = 0ms}));
    at.echo = raw.port();
    at.web = http_listener.port();
    co_await weir::yield();
  };
  co_await weir::with_scope({.failure = weir::failure::isolate}, inside);
}

// ------------------------------------------------------------------ the clients

inline weir::stream<std::string> in_pieces(std::string text) {
  for (std::size_t at = 0; at < text.size(); at += 7000) {
    co_await weir::yield();
    co_yield text.substr(at, 7000);
  }
}

class client {
 public:
  client(const place& at, http::client& web, weir::counting_governor& places, std::uint64_t seed)
      : at_(at), web_(web), places_(places), dice_(seed) {}

  task<> run(int rounds) {
    for (int i = 0; i < rounds; ++i) co_await round();
  }
  int answered = 0;

 private:
  task<> round() {
    const std::size_t how = dice_.roll(4);
    if (how == 0) co_await guarded();
    if (how == 1) {
      auto act = [this] { return guarded(); };
      auto end = [this] { return pause(at_, dice_.roll(60)); };
      (void)co_await weir::race(act, end);
    }
    if (how == 2) {
      auto body = [this](weir::scope& s) -> task<> {
        s.spawn(guarded());
        co_await pause(at_, dice_.roll(60));
        s.cancel();
      };
      co_await weir::with_scope(body);
    }
    if (how == 3) {
      auto body = [this](weir::scope& s) -> task<> {
        s.defer([this]() -> task<> { co_await pause(at_, 2); });
        auto act = [this] { return guarded(); };
        auto end = [this] { return pause(at_, 20); };
        auto shielded = [&] { return weir::shield(std::chrono::milliseconds(20), act); };
        (void)co_await weir::race(shielded, end);
      };
      co_await weir::with_scope(body);
    }
  }

  task<> guarded() {
    try {
      co_await act();
    } catch (const weir::error&) {
      co_return;  // the network, or the server, as it should be
    }
  }

  task<> act() {
    const std::size_t what = dice_.roll(10);
    if (what == 0) co_await echo_exactly();
    if (what == 1) co_await read_in_parts();
    if (what == 2) co_await close_while_used();
    if (what == 3) co_await reset_or_half_close();
    if (what == 4) co_await broken_request();
    if (what >= 5) co_await ask();
  }

  task<io::socket> dial(int port) { return io::connect(at_.host, port); }

  task<> echo_exactly() {
    io::socket c = co_await dial(at_.echo);
    const std::string text = pattern(1 + dice_.roll(5000), 3);
    co_await c.write_all(text);
    const std::string back = co_await read_n(c, text.size());
    EXPECT_EQ(back, text);
    ++answered;
  }

  /// Reads that lose races on the way take nothing.
  task<> read_in_parts() {
    io::socket c = co_await dial(at_.echo);
    const std::string text = pattern(3000, 5);
    co_await c.write_all(text);
    c.shutdown_write();
    std::string all;
    for (int i = 0; i < 10; ++i) {
      std::string piece(500, '\0');
      auto read = [&]() -> task<> {
        co_await c.read_exactly(bytes_of(piece));
        all += piece;
      };
      auto end = [&] { return pause(at_, dice_.roll(5)); };
      (void)co_await weir::race(read, end);
      if (all.size() == text.size()) break;
    }
    all += co_await read_all(c);
    EXPECT_EQ(all, text);
    ++answered;
  }

  task<> close_while_used() {
    io::socket c = co_await dial(at_.echo);
    const std::string much = pattern(1 << 20, 1);
    auto body = [&](weir::scope& s) -> task<> {
      auto write = s.spawn([&]() -> task<> { co_await c.write_all(much); });
      auto read = s.spawn([&]() -> task<> { (void)co_await read_all(c); });
      co_await pause(at_, dice_.roll(30));
      c.close();
      const auto one = co_await weir::settle(write);
      const auto other = co_await weir::settle(read);
      EXPECT_FALSE(one.is_cancelled() || other.is_cancelled());
    };
    co_await weir::with_scope({.failure = weir::failure::isolate}, body);
  }

  task<> reset_or_half_close() {
    io::socket c = co_await dial(at_.echo);
    const std::string text = pattern(2000, 7);
    co_await c.write_all(text);
    co_await pause(at_, dice_.roll(10));
    if (dice_.roll(2) == 0) {
      const linger now{1, 0};
      if (c.native_handle() >= 0)
        ::setsockopt(c.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
      co_return;
    }
    c.shutdown_write();
    const std::string back = co_await read_all(c);
    EXPECT_EQ(back, text);
    ++answered;
  }

  /// Bytes of a request, cut off anywhere, or too many of them.
  task<> broken_request() {
    io::socket c = co_await dial(at_.web);
    std::string bytes = "POST /same HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (std::size_t i = 0; i < 1 + dice_.roll(40); ++i) bytes += "5\r\nabcde\r\n";
    if (dice_.roll(2) == 0) bytes += "0\r\n\r\n" + bytes + "0\r\n\r\nGARBAGE \r\n\r\n";
    bytes.resize(dice_.roll(bytes.size() + 1));
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = std::min(1 + dice_.roll(200), bytes.size() - at);
      co_await c.write_all(std::string_view(bytes).substr(at, n));
      at += n;
    }
    if (dice_.roll(2) == 0) co_return;
    c.shutdown_write();
    (void)co_await read_all(c);
  }

  task<> ask() {
    static constexpr const char* paths[] = {"/echo",    "/echo",   "/same",   "/cut",
                                            "/endless", "/throw",  "/park",   "/child",
                                            "/outside", "/paused", "/ignored"};
    const std::string path = paths[dice_.roll(std::size(paths))];
    const std::string body = pattern(dice_.roll(2) == 0 ? dice_.roll(2000) : dice_.roll(200'000));
    if (path == "/endless") {
      http::incoming in = co_await web_.open("GET", at_.url(path));
      for (int i = 0; i < 3; ++i) (void)co_await in.next();
      co_return;
    }
    const http::response r = co_await send(path, body);
    const bool echoes = path == "/echo" || path == "/same";
    if (r.status() == 504) co_return;  // the server has seen the deadline before the client
    EXPECT_EQ(r.status(), path == "/throw" || path == "/child" ? 500 : 200) << path;
    if (echoes) {
      EXPECT_EQ(r.body(), body) << path;
    }
    ++answered;
  }

  /// A POST, under one of the policies.
  task<http::response> send(const std::string& path, const std::string& body) {
    const weir::duration limit = at_.simulated ? 1s : 30ms;
    auto once = [&] { return web_.post(at_.url(path), body); };
    auto streamed = [&] { return web_.post(at_.url(path), in_pieces(body)); };
    auto often =
        weir::op(once) | weir::retry({.attempts = 2, .base = 1ms}).when(http::is_transient);
    auto doubly = weir::op(once) | weir::hedge({.after = 2ms});
    const std::size_t policy = dice_.roll(5);
    if (policy == 0) co_return co_await weir::with_timeout(limit, often);
    if (policy == 1) co_return co_await weir::with_timeout(limit, doubly);
    if (policy == 2) co_return co_await weir::with_timeout(limit, streamed);
    if (policy == 3) {
      auto permit = co_await places_.acquire();
      co_return co_await weir::with_timeout(limit, once);
    }
    co_return co_await weir::with_timeout(limit, once);
  }

  const place& at_;
  http::client& web_;
  weir::counting_governor& places_;
  dice dice_;
};

/// Several clients on the running loop; returns how many of their rounds had an answer.
inline task<int> run_clients(const place& at, std::uint64_t seed, int clients, int rounds) {
  http::client web({.max_per_host = 3, .timeout = 2s});
  weir::counting_governor places(2);
  std::vector<std::unique_ptr<client>> all;
  for (int i = 0; i < clients; ++i)
    all.push_back(
        std::make_unique<client>(at, web, places, seed * 1000 + static_cast<unsigned>(i)));
  auto body = [&](weir::scope& s) -> task<> {
    for (auto& c : all) s.spawn(c->run(rounds));
    co_await weir::yield();
  };
  co_await weir::with_scope(body);
  int answered = 0;
  for (const auto& c : all) answered += c->answered;
  co_return answered;
}

}  // namespace storm
