// SPDX-License-Identifier: MIT
#include <weir/http/serve.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "io/http_peer.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

namespace {

using namespace std::chrono_literals;
namespace http = weir::http;
using http_test::ask;
using http_test::get;
using http_test::get_bytes;
using http_test::has;
using http_test::on_loopback;
using http_test::peer;
using http_test::post_bytes;
using http_test::reply;
using weir::task;

task<http::response> plain_handler(http::request& r) {
  if (r.path() == "/echo") {
    std::string body = co_await r.body();
    co_return http::response(200, body);
  }
  if (r.path() == "/large") co_return http::response(200, std::string(300'000, 'l'));
  co_return http::response(200, std::string(r.method()) + " " + std::string(r.path()));
}

TEST(http_server, answers_on_one_connection_again_and_again) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    for (int i = 0; i < 20; ++i) {
      co_await p.send(get_bytes("/k" + std::to_string(i)));
      const reply r = co_await p.next();
      EXPECT_EQ(r.status, 200);
      EXPECT_EQ(r.body, "GET /k" + std::to_string(i));
      EXPECT_TRUE(r.header("date").has_value());
      EXPECT_EQ(r.header("content-type"), "text/plain; charset=utf-8");
      EXPECT_EQ(r.header("connection"), std::nullopt);
    }
  });
}

TEST(http_server, answers_pipelined_requests_in_order) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    std::string all;
    for (int i = 0; i < 50; ++i)
      all += i % 2 == 0 ? get_bytes("/" + std::to_string(i))
                        : post_bytes("/echo", std::string(static_cast<std::size_t>(i), 'b'));
    co_await p.send(all);
    for (int i = 0; i < 50; ++i) {
      const reply r = co_await p.next();
      EXPECT_EQ(r.body, i % 2 == 0 ? "GET /" + std::to_string(i)
                                   : std::string(static_cast<std::size_t>(i), 'b'));
    }
  });
}

TEST(http_server, reads_requests_byte_by_byte) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    const std::string bytes =
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nTrailer: t\r\n\r\n";
    for (const char c : bytes + bytes) co_await p.send(std::string(1, c));
    EXPECT_EQ((co_await p.next()).body, "abcde");
    EXPECT_EQ((co_await p.next()).body, "abcde");
  });
}

TEST(http_server, keeps_a_connection_of_1_0_only_if_asked) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer old = co_await peer::dial(port);
    co_await old.send("GET /a HTTP/1.0\r\n\r\n");
    const reply r = co_await old.next();
    EXPECT_EQ(r.body, "GET /a");
    EXPECT_EQ(r.header("connection"), "close");
    EXPECT_TRUE(co_await old.at_end());
    peer kept = co_await peer::dial(port);
    for (int i = 0; i < 2; ++i) {
      co_await kept.send("GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      const reply again = co_await kept.next();
      EXPECT_EQ(again.body, "GET /b");
      EXPECT_EQ(again.header("connection"), "keep-alive");
    }
  });
}

TEST(http_server, closes_after_connection_close) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/a", "Connection: close\r\n") + get_bytes("/b"));
    const reply r = co_await p.next();
    EXPECT_EQ(r.body, "GET /a");
    EXPECT_EQ(r.header("connection"), "close");
    EXPECT_TRUE(co_await p.at_end());
  });
}

TEST(http_server, closes_if_the_handler_says_so) {
  auto handler = [](http::request&) -> task<http::response> {
    co_return http::response(200, "x").set("Connection", "close").set("Date", "never");
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    const reply r = co_await p.next();
    EXPECT_EQ(r.header("connection"), "close");
    EXPECT_NE(r.header("date"), "never") << "the date is the server's";
    EXPECT_TRUE(co_await p.at_end());
  });
}

TEST(http_server, sends_the_length_of_get_to_head) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("HEAD /large HTTP/1.1\r\nHost: h\r\n\r\n" + get_bytes("/x"));
    const reply r = co_await p.next(true);
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.header("content-length"), "300000");
    EXPECT_EQ((co_await p.next()).body, "GET /x");
  });
}

TEST(http_server, sends_large_bodies_whole) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    const reply r = co_await get(port, "/large");
    EXPECT_TRUE(r.whole);
    EXPECT_EQ(r.body, std::string(300'000, 'l'));
  });
}

TEST(http_server, sends_no_body_with_1xx_204_and_304) {
  auto handler = [](http::request& r) -> task<http::response> {
    co_return http::response(std::stoi(std::string(r.path().substr(1))), "text");
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    for (const char* status : {"204", "304"}) {
      peer p = co_await peer::dial(port);
      co_await p.send(get_bytes("/" + std::string(status)) + get_bytes("/200"));
      const reply r = co_await p.next();
      EXPECT_EQ(std::to_string(r.status), status);
      EXPECT_EQ(r.header("content-length"), std::nullopt);
      EXPECT_EQ((co_await p.next()).body, "text");
    }
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/103"));
    EXPECT_TRUE((co_await p.all()).ends_with("\r\n\r\n"));
  });
}

TEST(http_server, shows_the_request_to_its_handler) {
  std::string seen;
  auto handler = [&](http::request& r) -> task<http::response> {
    seen = std::string(r.method()) + "|" + std::string(r.target()) + "|" + std::string(r.path()) +
           "|" + r.query("a").value_or("-") + "|" + r.query("b").value_or("-") + "|" +
           std::string(r.header("X-IT").value_or("-")) + "|" +
           std::string(r.header("none").value_or("-")) + "|" + r.peer().address();
    co_return http::response(200);
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    const reply r = co_await get(port, "/p/./x/../%79?a=1%262&b", "x-it: yes\r\n");
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.header("content-length"), "0");
    EXPECT_EQ(seen, "GET|/p/./x/../%79?a=1%262&b|/p/y|1&2||yes|-|127.0.0.1");
  });
}

TEST(http_server, takes_a_url_as_target) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    EXPECT_EQ((co_await get(port, "http://h/a%20b?c")).body, "GET /a b");
    EXPECT_EQ((co_await get(port, "http://H?c")).body, "GET /");
  });
}

TEST(http_server, sends_100_when_the_body_is_asked_for_and_not_before) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    const std::string expect = "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    co_await p.send("POST /echo HTTP/1.1\r\nHost: h\r\n" + expect);
    EXPECT_EQ((co_await p.next()).status, 100);
    co_await p.send("abc");
    EXPECT_EQ((co_await p.next()).body, "abc");
    // A client that does not wait gets none.
    co_await p.send("POST /echo HTTP/1.1\r\nHost: h\r\n" + expect + "abc");
    EXPECT_EQ((co_await p.next()).status, 200);
    // Nobody asks for this body: no 100, and the connection ends after the answer.
    co_await p.send("POST /other HTTP/1.1\r\nHost: h\r\n" + expect);
    const reply r = co_await p.next();
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.header("connection"), "close");
    EXPECT_TRUE(co_await p.at_end());
    EXPECT_TRUE(p.ended_cleanly());
  });
}

TEST(http_server, throws_away_64_KiB_of_a_body_and_closes_after_more) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(post_bytes("/ignored", std::string(60'000, 'x')));
    EXPECT_EQ((co_await p.next()).body, "POST /ignored");
    co_await p.send(get_bytes("/next"));
    EXPECT_EQ((co_await p.next()).body, "GET /next");
    co_await p.send(post_bytes("/ignored", std::string(100'000, 'x')));
    const reply r = co_await p.next();
    EXPECT_EQ(r.body, "POST /ignored");
    EXPECT_EQ(r.header("connection"), "close");
    EXPECT_TRUE(co_await p.at_end());
    // Chunks do not say how much will come.
    peer q = co_await peer::dial(port);
    std::string chunks = "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 10; ++i) chunks += "2710\r\n" + std::string(10'000, 'c') + "\r\n";
    co_await q.send(chunks);
    EXPECT_EQ((co_await q.next()).body, "POST /c");
    EXPECT_TRUE(co_await q.at_end());
  });
}

TEST(http_server, a_body_is_taken_once) {
  auto handler = [](http::request& r) -> task<http::response> {
    std::string body = co_await r.body();
    try {
      (void)r.body_stream();
    } catch (const weir::error& e) {
      co_return http::response(200, body + (e.code() == weir::errc::already_taken ? " once" : ""));
    }
    co_return http::response(200, "twice");
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    EXPECT_EQ((co_await ask(port, post_bytes("/", "abc"))).body, "abc once");
  });
}

TEST(http_server, serves_unix_sockets) {
  auto program = [&]() -> task<> {
    const std::string path = ::testing::TempDir() + "weir_http_" + weir::uuid();
    auto l = co_await weir::io::listen_unix(path);
    auto body = [&](weir::scope& s) -> task<> {
      auto run = [&]() -> task<> { co_await http::serve(l, plain_handler); };
      s.background(run);
      auto c = co_await weir::io::connect_unix(path);
      peer p(std::move(c));
      co_await p.send(get_bytes("/unix"));
      EXPECT_EQ((co_await p.next()).body, "GET /unix");
    };
    co_await weir::with_scope(body);
  };
  weir::run(program);
}

TEST(http_server, answers_many_connections_and_leaves_nothing) {
  on_loopback(plain_handler, {.max_connections = 50}, [](int port) -> task<> {
    std::vector<int> clients(200);
    auto one = [&](int) -> task<int> {
      const reply r = co_await get(port, "/many");
      co_return r.status;
    };
    const auto answers = co_await weir::parallel_map(clients, one, 100);
    EXPECT_EQ(answers, std::vector<int>(200, 200));
  });
}

TEST(http_server, survives_clients_that_leave_at_any_byte) {
  on_loopback(plain_handler, {}, [](int port) -> task<> {
    const std::string bytes = post_bytes("/echo", "abcdefgh") + get_bytes("/large");
    for (std::size_t n = 0; n <= bytes.size(); ++n) {
      peer p = co_await peer::dial(port);
      if (n > 0) co_await p.send(bytes.substr(0, n));
      if (n % 3 == 1) co_await weir::yield();
      p.close();
    }
    EXPECT_EQ((co_await get(port, "/after")).body, "GET /after");
  });
}

TEST(http_server, allocates_nothing_for_a_request_on_a_warm_connection) {
  if (WEIR_TEST_ASAN || WEIR_TEST_TSAN) GTEST_SKIP() << "each frame is an allocation there";
  auto handler = [](http::request& r) -> task<http::response> {
    co_return http::response(200, r.path() == "/some/path" ? "found" : "?");
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    auto c = co_await weir::io::connect("127.0.0.1", port);
    std::array<std::byte, 1000> answer;
    for (int i = 0; i < 200; ++i) {
      if (i == 100) test_support::begin_to_count();
      co_await c.write_all("GET /some/path?and=query HTTP/1.1\r\nHost: example.org\r\n\r\n");
      co_await c.read_some(answer);
    }
    EXPECT_EQ(test_support::end_count(), 0);
  });
}

TEST(http_server, has_the_name_that_it_was_given) {
  const auto dumped = [](http::http_options options) {
    std::ostringstream out;
    on_loopback(plain_handler, options, [&](int port) -> task<> {
      EXPECT_EQ((co_await get(port, "/")).status, 200);
      weir::dump(out);
    });
    return out.str();
  };
  EXPECT_TRUE(has(dumped({.name = "front door"}), "scope 'front door'"));
  EXPECT_TRUE(has(dumped({}), "scope 'http'"));
}

TEST(http_server, takes_no_more_connections_than_allowed) {
  int now = 0;
  int most = 0;
  auto handler = [&](http::request&) -> task<http::response> {
    most = std::max(most, ++now);
    co_await weir::yield();
    --now;
    co_return http::response(200);
  };
  on_loopback(handler, {.max_connections = 3}, [](int port) -> task<> {
    std::vector<int> clients(20);
    auto one = [&](int) -> task<int> {
      const reply r = co_await get(port, "/");
      co_return r.status;
    };
    const auto answers = co_await weir::parallel_map(clients, one, 20);
    EXPECT_EQ(answers, std::vector<int>(20, 200));
  });
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
}

TEST(http_server, has_no_limits_in_time_if_asked_to) {
  const http::http_options patient{.header_timeout = weir::duration::max(),
                                   .idle_timeout = weir::duration::max(),
                                   .progress_timeout = weir::duration::max()};
  on_loopback(plain_handler, patient, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("POST /echo HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < 10; ++i) co_await weir::yield();
    co_await p.send("Content-Length: 3\r\n\r\n");
    for (int i = 0; i < 10; ++i) co_await weir::yield();
    co_await p.send("abc");
    EXPECT_EQ((co_await p.next()).body, "abc");
  });
}

TEST(http_server, refuses_options_that_make_no_sense) {
  const auto refused = [](http::http_options options) {
    auto program = [&]() -> task<bool> {
      auto l = co_await weir::io::listen();
      try {
        co_await http::serve(l, plain_handler, options);
      } catch (const weir::error& e) {
        co_return e.code() == weir::errc::invalid_argument;
      }
      co_return false;
    };
    return weir::run(program);
  };
  EXPECT_TRUE(refused({.max_header = 0}));
  EXPECT_TRUE(refused({.max_body = -1}));
  EXPECT_TRUE(refused({.header_timeout = 0s}));
  EXPECT_TRUE(refused({.idle_timeout = -1s}));
  EXPECT_TRUE(refused({.drain = -1s}));
  EXPECT_TRUE(refused({.progress_timeout = 0s}));
  EXPECT_TRUE(refused({.max_connections = 0}));
}

static_assert(std::is_trivially_destructible_v<http::http_options>);

}  // namespace
