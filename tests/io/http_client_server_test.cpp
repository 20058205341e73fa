// SPDX-License-Identifier: MIT
// weir's client against weir's server, on loopback and on the simulated network.
#include <map>

#include "io/http_client_support.hpp"
#include "io/network_support.hpp"

using namespace weir_test;

namespace {

/// Runs `body(url of the server)` beside a server on the same loop, really and simulated.
template <class Handler, class Body>
void beside_a_server(Handler handler, Body body) {
  on_loopback_and_simulated([&]() -> task<> {
    auto l = co_await io::listen();
    const std::string url = "http://127.0.0.1:" + std::to_string(l.port());
    auto inside = [&](weir::scope& s) -> task<> {
      s.background(http::serve(l, handler, {.max_body = 8 << 20, .drain = 0ms}));
      co_await body(url);
    };
    co_await weir::with_scope(inside);
  });
}

weir::stream<std::string> numbered_pieces(int n) {
  for (int i = 0; i < n; ++i) co_yield "piece " + std::to_string(i) + "\n";
}

weir::stream<http::event> endless_events() {
  for (int i = 0;; ++i) {
    co_yield http::event("tick", std::to_string(i));
    co_await weir::sleep(1ms);
  }
}

task<http::response> everything(http::request& r) {
  if (r.path() == "/echo") co_return http::response(200, co_await r.body());
  if (r.path() == "/stream") co_return http::response::stream(numbered_pieces(1000));
  if (r.path() == "/events") co_return http::response::events(endless_events());
  if (r.path() == "/throws") throw boom(1);
  if (r.path() == "/moved") co_return http::response(302).set("location", "/echo");
  if (r.path() == "/trace") co_return http::response(200, http::traceparent.get());
  if (r.path() == "/slow") co_await weir::sleep(1h);
  if (r.path() == "/count") {
    std::size_t n = 0;
    auto body = r.body_stream();
    while (auto piece = co_await body.next()) n += piece->size();
    co_return http::response(200, std::to_string(n));
  }
  co_return http::response(404, "nothing is at " + std::string(r.path()));
}

}  // namespace

TEST(http_client_server, requests_of_all_kinds_are_answered) {
  beside_a_server(everything, [](const std::string& url) -> task<> {
    http::client c;
    EXPECT_EQ((co_await c.post(url + "/echo", "text")).body(), "text");
    EXPECT_EQ((co_await c.post(url + "/echo", std::string(500'000, 'x'))).body().size(), 500'000U);
    EXPECT_EQ((co_await c.get(url + "/none")).status(), 404);
    EXPECT_EQ((co_await c.get(url + "/throws")).status(), 500);
    EXPECT_EQ((co_await c.get(url + "/moved")).status(), 200);
    const auto head = co_await c.request("HEAD", url + "/none");
    EXPECT_EQ(head.status(), 404);
    EXPECT_EQ(head.header("content-length"), "19");
    EXPECT_EQ(head.body(), "");
  });
}

TEST(http_client_server, streams_go_both_ways) {
  beside_a_server(everything, [](const std::string& url) -> task<> {
    http::client c;
    const auto r = co_await c.get(url + "/stream");
    EXPECT_TRUE(r.body().starts_with("piece 0\npiece 1\n"));
    EXPECT_TRUE(r.body().ends_with("piece 999\n"));
    std::size_t size = 0;
    http::incoming in = co_await c.open("GET", url + "/stream");
    while (auto piece = co_await in.next()) size += piece->size();
    EXPECT_EQ(size, r.body().size());
    EXPECT_EQ((co_await c.post(url + "/count", numbered_pieces(1000))).body(),
              std::to_string(size));
    EXPECT_EQ((co_await c.post(url + "/echo", numbered_pieces(1000))).body(), r.body());
  });
}

TEST(http_client_server, events_are_pulled_until_the_client_has_enough) {
  beside_a_server(everything, [](const std::string& url) -> task<> {
    http::client c;
    http::incoming in = co_await c.open("GET", url + "/events");
    EXPECT_EQ(in.header("content-type"), "text/event-stream");
    std::string text;
    while (!contains(text, "data: 5\n")) text += *co_await in.next();
    EXPECT_TRUE(text.starts_with("event: tick\ndata: 0\n"));
  });
}

TEST(http_client_server, the_deadline_of_the_caller_ends_the_handler) {
  beside_a_server(everything, [](const std::string& url) -> task<> {
    http::client c;
    // Sent as 20 ms, so the handler ends although this client would wait.
    http::headers h;
    h.set("x-deadline-ms", "20");
    EXPECT_EQ((co_await c.get(url + "/slow", h)).status(), 504);
    const auto slow = [&] { return c.get(url + "/slow"); };
    const auto late = co_await failure_of([&] { return weir::with_timeout(20ms, slow); });
    // The server's 504 and the limit of the caller come at the same time; either is right.
    EXPECT_TRUE(late == nullptr || holds<weir::timeout_error>(late));
  });
}

TEST(http_client_server, a_trace_crosses_the_network) {
  beside_a_server(everything, [](const std::string& url) -> task<> {
    http::client c;
    const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const auto get = [&] { return c.get(url + "/trace"); };
    EXPECT_EQ((co_await weir::with_local(http::traceparent, trace, get)).body(), trace);
  });
}

TEST(http_client_server, many_requests_at_once_share_few_connections) {
  beside_a_server(everything, [](const std::string& url) -> task<> {
    http::client c({.max_per_host = 3});
    std::vector<int> numbers(100);
    for (int i = 0; i < 100; ++i) numbers[static_cast<std::size_t>(i)] = i;
    auto echo = [&](int i) -> task<std::string> {
      co_return (co_await c.post(url + "/echo", std::to_string(i))).body();
    };
    const auto bodies = co_await weir::parallel_map(numbers, echo, 50);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(bodies[i], std::to_string(i));
  });
}

// ------------------------------------------------------------------ on another host

namespace {

task<> everything_on_port_80() {
  auto l = co_await io::listen({.port = service});
  co_await http::serve(l, everything, {.drain = 0ms});
}

}  // namespace

FIBER_TEST(http_client_sim, a_server_is_reached_by_the_name_of_its_loop_and_time_is_virtual) {
  auto client = [&]() -> task<> {
    http::client c;
    w.network().set({.latency = 1s});
    const auto start = weir::now();
    EXPECT_EQ((co_await c.post("http://server/echo", "hi")).body(), "hi");
    EXPECT_GE(ms_since(start), 4000);  // the connection, and the request, there and back
    const auto again = weir::now();
    EXPECT_EQ((co_await c.get("http://server/echo")).status(), 200);
    EXPECT_EQ(ms_since(again), 2000);  // the connection was kept
    EXPECT_EQ(co_await code_after([&] { return c.get("http://nobody/"); }), errc::host_not_found);
    EXPECT_EQ(co_await code_after([&] { return c.get("http://server:81/"); }),
              std::errc::connection_refused);
  };
  co_await against(w, everything_on_port_80, client);
}

FIBER_TEST(http_client_sim, a_partition_is_a_timeout_and_after_it_requests_work_again) {
  auto client = [&]() -> task<> {
    http::client c({.timeout = 10s});
    EXPECT_EQ((co_await c.get("http://server/echo")).status(), 200);
    w.network().partition("main", "server");
    const auto start = weir::now();
    const auto error = co_await failure_of([&] { return c.get("http://server/echo"); });
    EXPECT_TRUE(holds<weir::timeout_error>(error));
    EXPECT_EQ(ms_since(start), 10'000);
    w.network().heal();
    EXPECT_EQ((co_await c.get("http://server/echo")).status(), 200);
  };
  co_await against(w, everything_on_port_80, client);
}

FIBER_TEST(http_client_sim, a_server_that_crashes_and_comes_back_is_found_again) {
  http::client c;
  for (int life = 0; life < 3; ++life) {
    auto client = [&]() -> task<> {
      EXPECT_EQ((co_await c.get("http://server/echo")).status(), 200);
    };
    co_await against(w, everything_on_port_80, client);
    w.crash("server");
  }
}

FIBER_TEST(http_client_sim, idle_connections_are_closed_to_the_second) {
  int open = 0;
  auto handle = [&](io::socket& s) -> task<> {
    ++open;
    std::vector<received_request> all;
    served_connection c(s, 0, all);
    co_await c.answer_all(answer_of("ok"));
    --open;
  };
  auto server = [&]() -> task<> {
    auto l = co_await io::listen({.port = service});
    co_await io::serve(l, handle, {.drain = 0ms});
  };
  auto client = [&]() -> task<> {
    http::client c({.idle_timeout = 30s});
    co_await c.get("http://server/");
    co_await weir::sleep(29s);
    EXPECT_EQ(open, 1);
    co_await c.get("http://server/");
    co_await weir::sleep(29s);
    EXPECT_EQ(open, 1);
    co_await weir::sleep(2s);
    EXPECT_EQ(open, 0);
  };
  co_await against(w, server, client);
}

TEST(http_client_sim, an_order_is_placed_at_most_once_whatever_the_network_does) {
  for_each_order([](weir::sim::world& w) {
    w.run([&]() -> task<> {
      std::map<std::string, int> orders;
      auto take_order = [&](http::request& r) -> task<http::response> {
        ++orders[co_await r.body()];
        co_await weir::sleep(1ms);
        co_return http::response(201);
      };
      auto server = [&]() -> task<> {
        auto l = co_await io::listen({.port = service});
        co_await http::serve(l, take_order, {.drain = 0ms});
      };
      auto client = [&]() -> task<> {
        http::client c({.max_per_host = 2});
        w.network().set({.latency = 1ms, .jitter = 2ms});
        auto inside = [&](weir::scope& s) -> task<> {
          s.background([&]() -> task<> {
            for (;;) {
              co_await weir::sleep(3ms);
              w.network().reset("main", "server");
            }
          });
          int placed = 0;
          int failed = 0;
          for (int i = 0; i < 6; ++i) {
            const std::string order = std::to_string(i);
            const auto error =
                co_await failure_of([&] { return c.post("http://server/orders", order); });
            EXPECT_TRUE(error == nullptr || http::is_transient(error)) << what_of(error);
            ++(error == nullptr ? placed : failed);
          }
          EXPECT_EQ(placed + failed, 6);
        };
        co_await weir::with_scope(inside);
        for (const auto& [order, times] : orders) EXPECT_EQ(times, 1) << order;
      };
      co_await against(w, server, client);
    });
  });
}
