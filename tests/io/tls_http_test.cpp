// SPDX-License-Identifier: MIT
// http::client and http::serve over TLS.
#include <weir/http.hpp>

#include "network_support.hpp"
#include "tls_support.hpp"

using namespace weir_test;
namespace http = weir::http;

namespace {

/// Serves HTTP over TLS while `body(url)` runs.
template <class Handler, class Body>
void while_serving_https(const localhost_authority& ca, Handler handler, Body body) {
  io::tls_context context = ca.server("srv", {.alpn = "http/1.1"});
  auto program = [&]() -> task<> {
    auto l = co_await io::listen({.tls = &context});
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await http::serve(l, handler, {.drain = 0ms}); };
      s.background(serve);
      co_await body("https://localhost:" + std::to_string(l.port()));
    });
  };
  weir::run(program);
  EXPECT_EQ(ERR_peek_error(), 0U);
}

task<http::response> tell_request(http::request& r) {
  std::string body = co_await r.body();
  co_return http::response(200, std::string(r.method()) + " " + std::string(r.path()) + " " +
                                    std::to_string(body.size()));
}

/// Answers one request of each connection with these bytes, and ends it with close_notify or not.
template <class Body>
void while_answering(const localhost_authority& ca, std::string bytes, bool notify, Body body) {
  auto answer = [&](io::socket& c) -> task<> {
    (void)co_await c.read_until("\r\n\r\n", 4096);
    co_await c.write_all(bytes);
    if (!notify) ::shutdown(c.native_handle(), SHUT_WR);
  };
  while_serving_tls(ca.server("srv"), answer, [&](int port) -> task<> {
    co_await body("https://localhost:" + std::to_string(port) + "/");
  });
}

}  // namespace

TEST(tls_http, requests_and_answers_of_any_size_go_over_kept_connections) {
  const localhost_authority ca;
  std::set<std::string> peers;
  auto handler = [&](http::request& r) -> task<http::response> {
    peers.insert(r.peer().str());
    return tell_request(r);
  };
  while_serving_https(ca, handler, [&](std::string url) -> task<> {
    http::client c({.ca_file = ca.root});
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ((co_await c.get(url + "/a")).body(), "GET /a 0");
      EXPECT_EQ((co_await c.post(url + "/b", pattern(500'000))).body(), "POST /b 500000");
    }
  });
  EXPECT_EQ(peers.size(), 1U);
}

TEST(tls_http, streams_and_server_sent_pieces_work) {
  const localhost_authority ca;
  auto pieces = []() -> weir::stream<std::string> {
    for (int i = 0; i < 50; ++i) {
      co_await weir::yield();
      co_yield pattern(5000, static_cast<unsigned>(i));
    }
  };
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(pieces());
  };
  while_serving_https(ca, handler, [&](std::string url) -> task<> {
    http::client c({.ca_file = ca.root});
    auto in = co_await c.open("GET", url + "/");
    std::string all;
    while (auto piece = co_await in.next()) all += *piece;
    EXPECT_EQ(all.size(), 250'000U);
  });
}

TEST(tls_http, a_certificate_of_an_unknown_authority_is_refused_and_not_transient) {
  const localhost_authority ca;
  while_serving_https(ca, tell_request, [&](std::string url) -> task<> {
    http::client strict;
    const std::exception_ptr error = co_await attempt([&] { return strict.get(url + "/"); });
    EXPECT_EQ(code_of(error), errc::tls_failed);
    EXPECT_TRUE(contains(what_of(error), "localhost")) << what_of(error);
    EXPECT_FALSE(http::is_transient(error));
  });
}

TEST(tls_http, a_body_without_a_length_must_end_with_close_notify) {
  const localhost_authority ca;
  const std::string answer = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhalf of it";
  while_answering(ca, answer, true, [&](std::string url) -> task<> {
    http::client c({.ca_file = ca.root});
    EXPECT_EQ((co_await c.get(url)).body(), "half of it");
  });
  while_answering(ca, answer, false, [&](std::string url) -> task<> {
    http::client c({.ca_file = ca.root});
    const std::exception_ptr error = co_await attempt([&] { return c.get(url); });
    EXPECT_EQ(code_of(error), errc::tls_truncated);
    EXPECT_TRUE(http::is_transient(error));
  });
}

TEST(tls_http, a_body_with_a_length_is_whole_without_close_notify) {
  const localhost_authority ca;
  while_answering(ca, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole", false,
                  [&](std::string url) -> task<> {
                    http::client c({.ca_file = ca.root});
                    EXPECT_EQ((co_await c.get(url)).body(), "whole");
                    // The connection is of no use any more, and is replaced.
                    EXPECT_EQ((co_await c.get(url)).body(), "whole");
                    EXPECT_EQ((co_await c.post(url, "x")).body(), "whole");
                  });
}

TEST(tls_http, a_cut_answer_without_a_length_does_not_look_whole) {
  const localhost_authority ca;
  auto broken = []() -> weir::stream<std::string> {
    co_yield std::string("begin");
    throw boom(1);
  };
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(broken());
  };
  while_serving_https(ca, handler, [&](std::string url) -> task<> {
    const int port = std::stoi(url.substr(url.rfind(':') + 1));
    auto c = co_await io::tls_connect("localhost", port, {.ca_file = ca.root});
    co_await c.write_all("GET / HTTP/1.0\r\n\r\n");
    const std::exception_ptr error = co_await attempt([&] { return read_all(c); });
    EXPECT_TRUE(code_of(error) == std::errc::connection_reset ||
                code_of(error) == errc::tls_truncated)
        << what_of(error);
  });
}

TEST(tls_http, redirects_go_to_https_but_not_back) {
  const localhost_authority ca;
  std::string plain_url;
  auto secure = [&](http::request& r) -> task<http::response> {
    if (r.path() != "/back") co_return http::response(200, "secure");
    http::response to(302);
    to.set("location", plain_url + "/");
    co_return to;
  };
  while_serving_https(ca, secure, [&](std::string url) -> task<> {
    auto l = co_await io::listen();
    plain_url = "http://localhost:" + std::to_string(l.port());
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto up = [&](http::request&) -> task<http::response> {
        http::response to(302);
        to.set("location", url + "/");
        co_return to;
      };
      auto serve = [&]() -> task<> { co_await http::serve(l, up, {.drain = 0ms}); };
      s.background(serve);
      http::client c({.ca_file = ca.root});
      EXPECT_EQ((co_await c.get(plain_url + "/")).body(), "secure");
      EXPECT_EQ((co_await c.get(url + "/back")).status(), 302);
      http::client any({.redirects = http::redirects::any, .ca_file = ca.root});
      EXPECT_EQ((co_await any.get(url + "/back")).body(), "secure");  // back, and up again
    });
  });
}

TEST(tls_http, a_client_that_leaves_cancels_its_handler) {
  const localhost_authority ca;
  bool cancelled = false;
  bool begun = false;
  auto handler = [&](http::request&) -> task<http::response> {
    begun = true;
    auto mark = weir::scope_exit([&] { cancelled = weir::unwinding() != nullptr; });
    co_await weir::sleep(1h);
    co_return http::response(200);
  };
  while_serving_https(ca, handler, [&](std::string url) -> task<> {
    const int port = std::stoi(url.substr(url.rfind(':') + 1));
    {
      auto c = co_await io::tls_connect("localhost", port, {.ca_file = ca.root});
      co_await c.write_all("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      co_await wait_until([&] { return begun; });
    }
    co_await wait_until([&] { return cancelled; });
  });
}
