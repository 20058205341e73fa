// SPDX-License-Identifier: MIT
// WebSocket over TLS.
#include <weir/ws.hpp>

#include "io/tls_support.hpp"
#include "io/ws_peer.hpp"

namespace {

using namespace weir_test;
namespace http = weir::http;
namespace ws = weir::ws;

/// Echoes over wss while `body(url)` runs.
template <class Body>
void while_serving_wss(const localhost_authority& ca, Body body) {
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv", {.alpn = "http/1.1"});
    auto l = co_await io::listen({.tls = &context});
    auto handler = [](http::request& r) -> task<http::response> {
      return ws::accept(r, ws_test::echo);
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await http::serve(l, handler, {.drain = 0ms}); };
      s.background(serve);
      co_await body("wss://localhost:" + std::to_string(l.port()) + "/");
    });
  };
  weir::run(program);
}

}  // namespace

TEST(tls_ws, messages_go_both_ways_and_the_close_is_clean) {
  const localhost_authority ca;
  while_serving_wss(ca, [&](std::string url) -> task<> {
    auto c = co_await ws::connect(url, {.tls = {.ca_file = ca.root}});
    for (const std::size_t n : {0U, 1U, 126U, 65536U, 1U << 20U}) {
      const std::string text(n, 'w');
      auto write = [&]() -> task<> { co_await c.write_text(text); };
      auto read = [&]() -> task<> {
        const auto m = co_await c.read();
        EXPECT_TRUE(m && m->data() == text) << n;
      };
      co_await weir::all(write, read);
    }
    co_await c.close(4000);
    EXPECT_EQ(c.close_code(), 4000);
  });
}

TEST(tls_ws, a_server_that_is_not_trusted_is_refused) {
  const localhost_authority ca;
  const localhost_authority other;
  while_serving_wss(ca, [&](std::string url) -> task<> {
    const io::tls_options untrusting{.ca_file = other.root};
    EXPECT_EQ(co_await code_after([&] { return ws::connect(url, {.tls = untrusting}); }),
              errc::tls_failed);
  });
}
