// SPDX-License-Identifier: MIT
// The HTTP server on a simulated network: the same code as on real sockets, under faults.
#include <weir/http/client.hpp>
#include <weir/http/serve.hpp>

#include <optional>

#include "network_support.hpp"

using namespace weir_test;
namespace http = weir::http;

namespace {

task<http::response> shout(http::request& r) {
  std::string body = co_await r.body();
  for (char& c : body) c = static_cast<char>(c - 'a' + 'A');
  co_return http::response(200, std::move(body));
}

template <class Handler>
task<> http_server(Handler answer) {
  io::listener l = co_await io::listen({.port = service});
  co_await http::serve(l, answer, {.drain = 0ms});
}

std::string post_of(const std::string& body, bool chunked) {
  std::string text = "POST / HTTP/1.1\r\nhost: server\r\n";
  if (!chunked) return text + "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  text += "transfer-encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < body.size(); at += 10) {
    const std::string piece = body.substr(at, 10);
    text += std::string(1, "0123456789a"[piece.size()]) + "\r\n" + piece + "\r\n";
  }
  return text + "0\r\n\r\n";
}

/// The body of the next answer, which must be 200 and have a length.
task<std::string> next_answer(io::socket& c) {
  const std::string head = co_await c.read_until("\r\n\r\n", 4096);
  EXPECT_EQ(head.substr(0, 12), "HTTP/1.1 200") << head;
  constexpr std::string_view length = "content-length: ";
  const std::size_t at = head.find(length);
  EXPECT_NE(at, std::string::npos) << head;
  if (at == std::string::npos) co_return "";
  co_return co_await read_n(c, std::stoul(head.substr(at + length.size())));
}

std::string in_capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(c - 'a' + 'A');
  return text;
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(sim_http, every_request_is_answered_in_order_whatever_the_network_does) {
  w.network().set({.latency = 5ms, .jitter = 20ms, .loss = 0.05});
  auto client = [](unsigned number) -> task<> {
    io::socket c = co_await io::connect("server", service);
    const std::string small = pattern(20, number), empty, large = pattern(700, number + 1);
    // Two that come together, then one after the other.
    co_await c.write_all(post_of(small, true) + post_of(empty, false));
    EXPECT_EQ(co_await next_answer(c), in_capitals(small));
    EXPECT_EQ(co_await next_answer(c), "");
    co_await c.write_all(post_of(large, false));
    EXPECT_EQ(co_await next_answer(c), in_capitals(large));
    co_await c.write_all(post_of(large, true));
    EXPECT_EQ(co_await next_answer(c), in_capitals(large));
  };
  auto clients = [&]() -> task<> { co_await weir::all(client(0), client(5)); };
  co_await against(w, [] { return http_server(shout); }, clients);
}

FIBER_TEST_IN_EVERY_ORDER(sim_http, a_reset_cancels_the_handler) {
  struct witness {
    ~witness() {
      if (const weir::cancel_reason* reason = weir::unwinding()) why = reason->kind;
    }
    std::optional<weir::cancel_kind>& why;
  };
  std::optional<weir::cancel_kind> why;
  auto slow = [&](http::request&) -> task<http::response> {
    const witness here{why};
    co_await weir::sleep(1h);
    co_return http::response(200);
  };
  co_await against(
      w, [&] { return http_server(slow); },
      [&]() -> task<> {
        io::socket c = co_await io::connect("server", service);
        co_await c.write_all("GET / HTTP/1.1\r\nhost: server\r\n\r\n");
        co_await weir::sleep(1s);
        w.network().reset("main", "server");
        co_await weir::sleep(1s);
        EXPECT_EQ(why, weir::cancel_kind::remote);
      });
}

FIBER_TEST_IN_EVERY_ORDER(sim_http, an_answer_arrives_although_the_request_was_refused) {
  w.network().set({.latency = 5ms, .jitter = 5ms});
  co_await against(
      w, [] { return http_server(shout); },
      []() -> task<> {
        io::socket c = co_await io::connect("server", service);
        co_await c.write_all("GET / HTTP/1.1\r\n folded: yes\r\nhost: server\r\n\r\n" +
                             pattern(5000));
        const std::string answer = co_await c.read_until("\r\n\r\n", 4096);
        EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 400") << answer;
        EXPECT_TRUE(contains(answer, "connection: close")) << answer;
      });
}

FIBER_TEST_IN_EVERY_ORDER(sim_http, idle_connections_end_in_virtual_time) {
  co_await against(
      w, [] { return http_server(shout); },
      []() -> task<> {
        io::socket c = co_await io::connect("server", service);
        co_await c.write_all(post_of("abc", false));
        EXPECT_EQ(co_await next_answer(c), "ABC");
        const weir::time_point start = weir::now();
        EXPECT_EQ(co_await read_all(c), "");
        EXPECT_EQ(weir::now() - start, 60s);
      });
}

FIBER_TEST_IN_EVERY_ORDER(sim_http, the_client_of_weir_gets_its_answers_whatever_the_network_does) {
  w.network().set({.latency = 5ms, .jitter = 20ms, .loss = 0.05});
  co_await against(
      w, [] { return http_server(shout); },
      []() -> task<> {
        http::client c({.max_per_host = 2});
        auto ask = [&](unsigned number) -> task<> {
          const std::string body = pattern(300 * number, number);
          const http::response answer = co_await c.post("http://server/", body);
          EXPECT_EQ(answer.status(), 200);
          EXPECT_EQ(answer.body(), in_capitals(body));
        };
        co_await weir::all(ask(0), ask(1), ask(2));
        co_await ask(3);
      });
}

FIBER_TEST_IN_EVERY_ORDER(sim_http, a_get_survives_a_kept_connection_that_was_reset) {
  auto hello = [](http::request&) -> task<http::response> { co_return http::response(200, "hi"); };
  co_await against(
      w, [&] { return http_server(hello); },
      [&]() -> task<> {
        http::client c;
        for (int i = 0; i < 3; ++i) {
          const http::response answer = co_await c.get("http://server/");
          EXPECT_EQ(answer.body(), "hi");
          w.network().reset("main", "server");
        }
      });
}
