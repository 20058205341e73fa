// SPDX-License-Identifier: MIT
// WebSocket on a simulated network, under faults and in every order.
#include <weir/ws.hpp>

#include <vector>

#include "io/network_support.hpp"
#include "io/ws_peer.hpp"

namespace {

using namespace weir_test;
namespace ws = weir::ws;
namespace http = weir::http;

task<> ws_server(weir::duration drain) {
  io::listener l = co_await io::listen({.port = service});
  auto handler = [](http::request& r) -> task<http::response> {
    return ws::accept(r, ws_test::echo);
  };
  co_await http::serve(l, handler, {.drain = drain});
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(sim_ws, messages_arrive_whole_and_in_order_whatever_the_network_does) {
  w.network().set({.latency = 5ms, .jitter = 20ms, .loss = 0.05});
  auto client = []() -> task<> {
    auto c = co_await ws::connect("ws://server:80/");
    std::vector<std::string> sent;
    for (unsigned i = 0; i < 4; ++i) sent.push_back(pattern(i * 300, i));
    auto write = [&]() -> task<> {
      for (const std::string& text : sent) co_await c.write_text(text);
    };
    auto read = [&]() -> task<> {
      for (const std::string& text : sent) {
        // Cancelled again and again: nothing may be lost by it.
        std::optional<ws::message> m;
        while (!m) {
          auto tried = co_await weir::settle(weir::with_timeout(3ms, c.read()));
          if (tried.is_value()) m = tried.take();
        }
        EXPECT_EQ(m->data(), text);
      }
    };
    co_await weir::all(write, read);
    co_await c.close(4000);
    EXPECT_EQ(c.close_code(), 4000);
  };
  auto clients = [&]() -> task<> { co_await weir::all(client(), client()); };
  co_await against(w, [] { return ws_server(0ms); }, clients);
}

FIBER_TEST_IN_EVERY_ORDER(sim_ws, cancelled_writes_leave_the_frames_whole) {
  w.network().set({.latency = 5ms, .jitter = 5ms});
  auto client = []() -> task<> {
    auto c = co_await ws::connect("ws://server:80/");
    const std::string much = pattern(80'000);
    const auto first = co_await weir::settle(weir::with_timeout(7ms, c.write_text(much)));
    co_await weir::all(
        [&]() -> task<> {
          co_await c.write_text("after");
          co_await c.close();
        },
        [&]() -> task<> {
          std::vector<std::size_t> sizes;
          while (auto m = co_await c.read()) sizes.push_back(m->data().size());
          // The answer to the last one may be cut off by the close; none is ever broken.
          for (const std::size_t n : sizes) EXPECT_TRUE(n == much.size() || n == 5) << n;
        });
    EXPECT_EQ(c.close_code(), 1000);
  };
  co_await against(w, [] { return ws_server(0ms); }, client);
}

FIBER_TEST_IN_EVERY_ORDER(sim_ws, a_reset_ends_both_ends_with_1006) {
  auto client = [&]() -> task<> {
    auto c = co_await ws::connect("ws://server:80/");
    co_await c.write_text("x");
    EXPECT_EQ((co_await c.read())->data(), "x");
    w.network().reset("main", "server");
    EXPECT_FALSE(co_await c.read());
    EXPECT_EQ(c.close_code(), 1006);
    EXPECT_EQ(co_await code_after([&] { return c.write_text("late"); }), errc::closed);
  };
  co_await against(w, [] { return ws_server(0ms); }, client);
}

FIBER_TEST_IN_EVERY_ORDER(sim_ws, a_partition_is_noticed_by_silence) {
  auto client = [&]() -> task<> {
    auto c = co_await ws::connect("ws://server:80/", {.ping_every = 10s});
    w.network().partition("main", "server");
    const weir::time_point start = weir::now();
    EXPECT_EQ(co_await code_after([&] { return c.read(); }), errc::closed);
    EXPECT_LE(weir::now() - start, 20s);
    EXPECT_FALSE(co_await c.read());
  };
  co_await against(w, [] { return ws_server(0ms); }, client);
}
