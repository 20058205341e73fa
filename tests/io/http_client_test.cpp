// SPDX-License-Identifier: MIT
// http::client: what is sent, what comes back, errors, limits of time and size.
#include "io/http_client_support.hpp"
#include "io/resolver.hpp"

using namespace weir_test;

namespace {

task<> says_ok(served_connection& c) { co_await c.answer_all(answer_of("ok")); }

}  // namespace

TEST(http_client, a_get_gives_status_headers_and_body) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        co_await c.answer_all(answer_of("hello", "X-It: yes \r\nx-two: 1\r\nX-Two: 2\r\n"));
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        const auto r = co_await c.get(s.url("/path?query=1#fragment"));
        EXPECT_EQ(r.status(), 200);
        EXPECT_EQ(r.body(), "hello");
        EXPECT_EQ(r.header("x-it"), "yes");
        EXPECT_EQ(r.header("X-TWO"), "1");
        EXPECT_EQ(r.header("none"), std::nullopt);
        EXPECT_EQ(s.requests.size(), 1U);
        EXPECT_EQ(s.requests[0].method(), "GET");
        EXPECT_EQ(s.requests[0].target(), "/path?query=1");
        EXPECT_EQ(s.requests[0].field("host"), "127.0.0.1:" + std::to_string(s.port));
        EXPECT_EQ(s.requests[0].field("content-length"), "(none)");
      });
}

TEST(http_client, a_post_sends_its_body_and_headers) {
  with_scripted_server(says_ok, [](scripted_server& s) -> task<> {
    http::client c;
    http::headers h;
    h.set("content-type", "application/json").set("x-a", "1").add("x-a", "2");
    co_await c.post(s.url("/a"), "{}", h);
    co_await c.post(s.url("/a"), std::string(100'000, 'b'));
    co_await c.post(s.url("/a"), std::string_view());
    co_await c.request("PUT", s.url("/a"), "x");
    co_await c.request("PATCH", s.url("/a"));
    co_await c.request("DELETE", s.url("/a"));
    co_await c.request("x-own", s.url("/a"));
    EXPECT_EQ(s.requests[0].body, "{}");
    EXPECT_EQ(s.requests[0].field("content-type"), "application/json");
    EXPECT_TRUE(contains(s.requests[0].head, "x-a: 1\r\nx-a: 2\r\n"));
    EXPECT_EQ(s.requests[1].body, std::string(100'000, 'b'));
    EXPECT_EQ(s.requests[2].field("content-length"), "0");
    EXPECT_EQ(s.requests[3].method() + s.requests[3].body, "PUTx");
    EXPECT_EQ(s.requests[4].field("content-length"), "0");
    EXPECT_EQ(s.requests[5].method() + s.requests[5].field("content-length"), "DELETE(none)");
    EXPECT_EQ(s.requests[6].method(), "x-own");
    EXPECT_EQ(s.accepted, 1);
  });
}

TEST(http_client, a_status_is_no_error_unless_it_is_raised) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        while (const auto r = co_await c.request())
          co_await c.send(answer_of("text", "", r.target().substr(1) + " Reason"));
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        for (const int status : {200, 204, 304, 399, 400, 404, 500, 599, 999}) {
          const auto r = co_await c.get(s.url("/" + std::to_string(status)));
          EXPECT_EQ(r.status(), status);
          if (status == 204 || status == 304) co_await weir::yield();
          const auto error = thrown_by([&] {
            r.raise_for_status();
            return 0;
          });
          EXPECT_EQ(error != nullptr, status >= 400) << status;
          if (error == nullptr) continue;
          EXPECT_FALSE(http::is_transient(error));
          try {
            std::rethrow_exception(error);
          } catch (const http::status_error& e) {
            EXPECT_EQ(e.status(), status);
          }
        }
      });
}

TEST(http_client, bad_urls_methods_and_headers_are_refused_before_anything_is_sent) {
  with_scripted_server(says_ok, [](scripted_server& s) -> task<> {
    http::client c;
    const auto refused = [&](auto make) -> task<> {
      EXPECT_EQ(co_await code_after(make), errc::invalid_argument);
    };
    for (const char* url : {"", "ftp://a/", "http://", "http://u@127.0.0.1/", "/x"})
      co_await refused([&] { return c.get(url); });
    co_await refused([&] { return c.get(s.url("/a b")); });
    co_await refused([&] { return c.get(s.url("/\r\nx: y")); });
    for (const char* method : {"", "G T", "GET\r\n", "CONNECT"})
      co_await refused([&] { return c.request(method, s.url()); });
    for (const char* name : {"transfer-encoding", "expect", "upgrade", "content-length"}) {
      http::headers h;
      h.set(name, "7");
      co_await refused([&] { return c.post(s.url(), "x", h); });
    }
    http::headers two;
    two.add("host", "a").add("Host", "a");
    co_await refused([&] { return c.get(s.url(), two); });
    http::headers path;
    path.set("host", "a/b");
    co_await refused([&] { return c.get(s.url(), path); });
    const auto traced = [&] { return c.get(s.url()); };
    co_await refused([&] { return weir::with_local(http::traceparent, "a\r\nx: y", traced); });
    EXPECT_EQ(s.accepted, 0);
  });
}

TEST(http_client, bad_options_are_refused) {
  const auto code = [](http::client_options o) {
    return code_of(thrown_by([&] {
      const http::client c(o);
      return 0;
    }));
  };
  EXPECT_EQ(code({.max_per_host = 0}), errc::invalid_argument);
  EXPECT_EQ(code({.max_per_host = weir::unbounded}), errc::invalid_argument);
  EXPECT_EQ(code({.timeout = 0ms}), errc::invalid_argument);
  EXPECT_EQ(code({.max_body = -1}), errc::invalid_argument);
  EXPECT_EQ(code({.redirects = static_cast<http::redirects>(9)}), errc::invalid_argument);
  EXPECT_EQ(code({.max_redirects = -1}), errc::invalid_argument);
  EXPECT_EQ(code({.idle_timeout = -1ms}), errc::invalid_argument);
  EXPECT_EQ(code({.timeout = weir::unbounded, .max_body = weir::unbounded}), std::error_code());
}

TEST(http_client, what_users_pass_is_copied_before_anything_waits) {
  with_scripted_server(says_ok, [](scripted_server& s) -> task<> {
    http::client c;
    std::string url = s.url("/kept");
    std::string body = "kept body";
    auto request = c.post(url, std::string_view(body));
    url.assign(url.size(), '#');
    body.assign(body.size(), '#');
    co_await std::move(request);
    EXPECT_EQ(s.requests[0].target() + s.requests[0].body, "/keptkept body");
  });
}

// ------------------------------------------------------------------ time

TEST(http_client, the_timeout_covers_a_server_that_does_not_answer_or_drips) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        const auto r = co_await c.request();
        if (r.target() == "/drip")
          co_await c.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
        for (;;) {
          if (r.target() == "/drip") co_await c.send("x");
          co_await weir::sleep(5ms);
        }
      },
      [](scripted_server& s) -> task<> {
        http::client c({.timeout = 40ms});
        for (const char* path : {"/hang", "/drip"}) {
          const auto error = co_await failure_of([&] { return c.get(s.url(path)); });
          EXPECT_TRUE(holds<weir::timeout_error>(error));
          EXPECT_TRUE(contains(what_of(error), path)) << what_of(error);
          EXPECT_TRUE(http::is_transient(error));
        }
      });
}

TEST(http_client, the_timeout_covers_waiting_for_a_place) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        co_await c.request();
        co_await weir::sleep(1h);
      },
      [](scripted_server& s) -> task<> {
        http::client c({.max_per_host = 1, .timeout = 40ms});
        auto inside = [&](weir::scope& scope) -> task<> {
          auto first = scope.spawn(weir::settle(c.get(s.url("/first"))));
          auto second = scope.spawn(weir::settle(c.get(s.url("/second"))));
          EXPECT_TRUE(holds<weir::timeout_error>((co_await first).error()));
          EXPECT_TRUE(holds<weir::timeout_error>((co_await second).error()));
        };
        co_await weir::with_scope(inside);
      });
}

TEST(http_client, the_deadline_of_the_caller_is_sent_as_the_time_left) {
  with_scripted_server(says_ok, [](scripted_server& s) -> task<> {
    http::client c({.timeout = 20s});
    co_await c.get(s.url());
    co_await weir::with_timeout(5s, [&] { return c.get(s.url()); });
    co_await weir::with_timeout(1h, [&] { return c.get(s.url()); });
    http::headers own;
    own.set("x-deadline-ms", "7");
    co_await c.get(s.url(), own);
    {
      const auto in = co_await c.open("GET", s.url());
    }
    const auto opened = [&]() -> task<> { const auto in = co_await c.open("GET", s.url()); };
    co_await weir::with_timeout(5s, opened);
    const auto sent = [&](std::size_t i) {
      return std::stol(s.requests[i].field("x-deadline-ms"));
    };
    EXPECT_GT(sent(0), 5'000);
    EXPECT_LE(sent(0), 20'000);
    EXPECT_LE(sent(1), 5'000);
    EXPECT_GT(sent(1), 0);
    EXPECT_GT(sent(2), 5'000);
    EXPECT_LE(sent(2), 20'000);
    EXPECT_EQ(sent(3), 7);
    EXPECT_EQ(s.requests[4].field("x-deadline-ms"), "(none)");
    EXPECT_LE(sent(5), 5'000);
  });
}

TEST(http_client, a_trace_context_is_passed_on) {
  with_scripted_server(says_ok, [](scripted_server& s) -> task<> {
    http::client c;
    co_await c.get(s.url());
    const auto traced = [&] { return c.get(s.url()); };
    co_await weir::with_local(http::traceparent, "00-abc-def-01", traced);
    http::headers own;
    own.set("traceparent", "mine");
    const auto overridden = [&] { return c.get(s.url(), own); };
    co_await weir::with_local(http::traceparent, "00-abc-def-01", overridden);
    EXPECT_EQ(s.requests[0].field("traceparent"), "(none)");
    EXPECT_EQ(s.requests[1].field("traceparent"), "00-abc-def-01");
    EXPECT_EQ(s.requests[2].field("traceparent"), "mine");
  });
}

// ------------------------------------------------------------------ errors

TEST(http_client, transient_is_what_another_attempt_may_mend) {
  const auto as_pointer = [](const auto& e) { return std::make_exception_ptr(e); };
  const auto system = [&](std::errc code) {
    return as_pointer(
        weir::error(std::error_code(static_cast<int>(code), std::system_category()), "text"));
  };
  for (const std::errc code : {std::errc::connection_refused, std::errc::connection_reset,
                               std::errc::broken_pipe, std::errc::timed_out})
    EXPECT_TRUE(http::is_transient(system(code)));
  EXPECT_TRUE(http::is_transient(as_pointer(weir::timeout_error())));
  EXPECT_TRUE(http::is_transient(as_pointer(weir::error(errc::end_of_stream))));
  EXPECT_TRUE(http::is_transient(as_pointer(weir::detail::temporary_host_error("for now"))));
  EXPECT_FALSE(http::is_transient(system(std::errc::permission_denied)));
  for (const errc code : {errc::host_not_found, errc::tls_failed, errc::bad_data, errc::too_large,
                          errc::invalid_argument, errc::too_many_redirects})
    EXPECT_FALSE(http::is_transient(as_pointer(weir::error(code))));
  EXPECT_FALSE(http::is_transient(as_pointer(http::status_error(503))));
  EXPECT_FALSE(http::is_transient(as_pointer(std::runtime_error("x"))));
  EXPECT_FALSE(http::is_transient(nullptr));
}

TEST(http_client, a_refused_connection_has_the_code_of_the_system_and_may_be_retried) {
  weir::run([]() -> task<> {
    int port = 0;
    {
      auto l = co_await io::listen();
      port = l.port();
    }
    http::client c;
    const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/";
    int attempts = 0;
    auto get = weir::op([&] {
                 ++attempts;
                 return c.get(url);
               }) |
               weir::retry({.attempts = 3, .base = 1ms}).when(http::is_transient);
    const auto error = co_await failure_of([&] { return get(); });
    EXPECT_EQ(code_of(error), std::errc::connection_refused);
    EXPECT_EQ(attempts, 3);
  });
}

TEST(http_client, a_host_that_does_not_exist_is_an_error_and_not_transient) {
  weir::run([]() -> task<> {
    http::client c;
    const auto error = co_await failure_of([&] { return c.get("http://no-such-host.invalid/"); });
    EXPECT_EQ(code_of(error), errc::host_not_found);
  });
}

TEST(http_client, a_request_that_is_cancelled_closes_its_connection_and_gives_its_place_back) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        const auto r = co_await c.request();
        if (r.target() == "/ok") co_await c.send(answer_of("ok"));
        (void)co_await c.request();
      },
      [](scripted_server& s) -> task<> {
        http::client c({.max_per_host = 1});
        auto inside = [&](weir::scope& scope) -> task<> {
          auto hangs = scope.spawn([&]() -> task<> { (void)co_await c.get(s.url("/hang")); });
          co_await wait_until([&] { return s.requests.size() == 1; });
          hangs.cancel();
          co_await weir::settle(hangs);
          EXPECT_EQ((co_await c.get(s.url("/ok"))).body(), "ok");
        };
        co_await weir::with_scope(inside);
        EXPECT_EQ(s.accepted, 2);
        co_await wait_until([&] { return s.open == 1; });
      });
}

// ------------------------------------------------------------------ misuse

TEST(http_client_death_test, destroying_it_with_a_request_pending_aborts) {
  const auto destroy = [] {
    with_scripted_server(
        [](served_connection& c) -> task<> {
          co_await c.request();
          co_await weir::sleep(1h);
        },
        [](scripted_server& s) -> task<> {
          auto inside = [&](weir::scope& scope) -> task<> {
            std::optional<http::client> c(std::in_place);
            scope.spawn(c->get(s.url()));
            co_await wait_until([&] { return s.requests.size() == 1; });
            c.reset();
          };
          co_await weir::with_scope(inside);
        });
  };
  EXPECT_DEATH(destroy(), "http::client destroyed while 1 request is pending");
}

TEST(http_client_death_test, destroying_it_before_an_incoming_of_it_aborts) {
  const auto destroy = [] {
    with_scripted_server(
        [](served_connection& c) -> task<> {
          co_await c.request();
          co_await c.send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
          co_await weir::sleep(1h);
        },
        [](scripted_server& s) -> task<> {
          std::optional<http::client> c(std::in_place);
          const auto in = co_await c->open("GET", s.url());
          c.reset();
        });
  };
  EXPECT_DEATH(destroy(), "http::client destroyed while 1 request is pending");
}

TEST(http_client, a_request_that_starts_after_its_client_is_gone_is_refused) {
  weir::run([]() -> task<> {
    std::optional<http::client> c(std::in_place);
    auto late = c->get("http://127.0.0.1:1/");
    c.reset();
    EXPECT_EQ(code_of(co_await error_of(std::move(late))), errc::closed);
  });
}

TEST(http_client, a_client_may_serve_one_loop_after_the_other) {
  http::client c;
  for (int i = 0; i < 2; ++i)
    with_scripted_server(says_ok, [&](scripted_server& s) -> task<> {
      EXPECT_EQ((co_await c.get(s.url())).body(), "ok");
      EXPECT_EQ((co_await c.get(s.url())).body(), "ok");
      EXPECT_EQ(s.accepted, 1);
    });
}
