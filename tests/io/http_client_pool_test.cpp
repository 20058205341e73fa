// SPDX-License-Identifier: MIT
// The connections of http::client: reuse, places, idle ones, and those that are found dead.
#include "io/http_client_support.hpp"

using namespace weir_test;

namespace {

/// Answers `n` requests on each connection and then closes it.
server_script answers(int n) {
  return [n](served_connection& c) -> task<> {
    for (int i = 0; i < n; ++i) {
      if (!co_await c.request()) co_return;
      co_await c.send(answer_of("ok"));
    }
  };
}

}  // namespace

TEST(http_client_pool, a_connection_is_reused_for_the_same_host_and_port) {
  with_scripted_server(answers(100), [](scripted_server& s) -> task<> {
    http::client c;
    for (int i = 0; i < 10; ++i) EXPECT_EQ((co_await c.get(s.url())).body(), "ok");
    EXPECT_EQ(s.accepted, 1);
    const std::string by_name = "http://localhost:" + std::to_string(s.port) + "/";
    EXPECT_EQ((co_await c.get(by_name)).body(), "ok");
    EXPECT_EQ(s.accepted, 2);
    const std::string upper = "http://LOCALHOST:" + std::to_string(s.port) + "/";
    EXPECT_EQ((co_await c.get(upper)).body(), "ok");
    EXPECT_EQ(s.accepted, 2);
  });
}

TEST(http_client_pool, every_framing_of_an_answer_leaves_the_connection_as_it_should_be) {
  struct sample {
    std::string answer;
    bool kept;
  };
  const std::vector<sample> samples{
      {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", true},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
      {"HTTP/1.1 204 No Content\r\n\r\n", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
       true},
      {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", false},
      {"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", false},
      {"HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok", true},
      {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", false}};
  for (const sample& sample : samples) {
    SCOPED_TRACE(sample.answer);
    with_scripted_server(
        [&](served_connection& c) -> task<> { co_await c.answer_all(sample.answer); },
        [&](scripted_server& s) -> task<> {
          http::client c;
          for (int i = 0; i < 3; ++i) (void)co_await c.get(s.url());
          EXPECT_EQ(s.accepted, sample.kept ? 1 : 3);
        });
  }
}

TEST(http_client_pool, an_answer_that_ends_with_the_connection_is_complete) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        co_await c.request();
        co_await c.send("HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, 'x'));
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        EXPECT_EQ((co_await c.get(s.url())).body().size(), 100'000U);
        EXPECT_EQ((co_await c.get(s.url())).body().size(), 100'000U);
        EXPECT_EQ(s.accepted, 2);
      });
}

TEST(http_client_pool, a_caller_that_asks_to_close_keeps_nothing) {
  with_scripted_server(answers(100), [](scripted_server& s) -> task<> {
    http::client c;
    http::headers h;
    h.set("connection", "close");
    for (int i = 0; i < 2; ++i) co_await c.get(s.url(), h);
    EXPECT_EQ(s.accepted, 2);
    EXPECT_EQ(s.requests[0].field("connection"), "close");
  });
}

TEST(http_client_pool, no_more_than_max_per_host_run_and_the_others_wait_in_order) {
  weir::event may_answer;
  std::vector<std::string> order;
  with_scripted_server(
      [&](served_connection& c) -> task<> {
        while (const auto r = co_await c.request()) {
          co_await may_answer.wait();
          order.push_back(r.target());
          co_await c.send(answer_of("ok"));
        }
      },
      [&](scripted_server& s) -> task<> {
        http::client c({.max_per_host = 2});
        auto inside = [&](weir::scope& scope) -> task<> {
          for (int i = 0; i < 8; ++i)
            scope.spawn(
                [&c, &s, i]() -> task<> { (void)co_await c.get(s.url("/" + std::to_string(i))); });
          co_await wait_until([&] { return s.requests.size() == 2; });
          for (int i = 0; i < 20; ++i) co_await weir::yield();
          EXPECT_EQ(s.accepted, 2);
          EXPECT_EQ(s.requests.size(), 2U);
          may_answer.set();
        };
        co_await weir::with_scope(inside);
        EXPECT_EQ(s.accepted, 2);
        for (std::size_t i = 0; i < order.size(); ++i) {
          // Two run at once, so neighbours may change places; nobody is overtaken by two.
          EXPECT_LE(std::abs(std::stol(order[i].substr(1)) - static_cast<long>(i)), 1L);
        }
      });
}

TEST(http_client_pool, one_place_serves_strictly_in_order) {
  with_scripted_server(answers(100), [&](scripted_server& s) -> task<> {
    http::client c({.max_per_host = 1});
    auto inside = [&](weir::scope& scope) -> task<> {
      for (int i = 0; i < 10; ++i)
        scope.spawn(
            [&c, &s, i]() -> task<> { (void)co_await c.get(s.url("/" + std::to_string(i))); });
      co_return;
    };
    co_await weir::with_scope(inside);
    EXPECT_EQ(s.accepted, 1);
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(s.requests[i].target(), "/" + std::to_string(i));
  });
}

TEST(http_client_pool, an_idle_connection_is_closed_after_the_idle_timeout) {
  with_scripted_server(
      [](served_connection& c) -> task<> { co_await c.answer_all(answer_of("ok")); },
      [](scripted_server& s) -> task<> {
        http::client c({.idle_timeout = 20ms});
        co_await c.get(s.url());
        EXPECT_EQ(s.open, 1);
        co_await wait_until([&] { return s.open == 0; });
        co_await c.get(s.url());
        EXPECT_EQ(s.accepted, 2);
      });
}

TEST(http_client_pool, an_idle_timeout_of_nothing_keeps_nothing) {
  with_scripted_server(answers(100), [](scripted_server& s) -> task<> {
    http::client c({.idle_timeout = 0ms});
    for (int i = 0; i < 3; ++i) co_await c.get(s.url());
    EXPECT_EQ(s.accepted, 3);
  });
}

TEST(http_client_pool, a_kept_connection_that_became_readable_is_dropped) {
  for (const bool stray_bytes : {false, true}) {
    weir::event gone;
    with_scripted_server(
        [&](served_connection& c) -> task<> {
          (void)co_await c.request();
          co_await c.send(answer_of("ok"));
          if (c.number() > 0) co_return;
          if (stray_bytes) co_await c.send("HTTP/1.1 200 OK\r\n\r\n");
          if (!stray_bytes) c.socket().shutdown_write();
          gone.set();
          co_await weir::sleep(1h);
        },
        [&](scripted_server& s) -> task<> {
          http::client c;
          co_await c.get(s.url());
          co_await gone.wait();
          // Even a POST is safe: the connection is known to be of no use before it is sent.
          EXPECT_EQ((co_await c.post(s.url(), "x")).body(), "ok");
          EXPECT_EQ(s.accepted, 2);
          EXPECT_EQ(s.requests.size(), 2U);
        });
  }
}

TEST(http_client_pool, a_kept_connection_found_dead_is_replaced_once_for_idempotent_methods) {
  for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
    for (const bool with_reset : {false, true}) {
      SCOPED_TRACE(method);
      with_scripted_server(
          [&](served_connection& c) -> task<> {
            (void)co_await c.request();
            const std::string answer = std::string_view(method) == "HEAD"
                                           ? "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
                                           : answer_of("ok");
            co_await c.send(answer);
            (void)co_await c.request();  // the connection dies when it is used again
            if (with_reset) c.reset();
          },
          [&](scripted_server& s) -> task<> {
            http::client c;
            co_await c.request(method, s.url("/first"), "body");
            EXPECT_EQ((co_await c.request(method, s.url("/again"), "body")).status(), 200);
            EXPECT_EQ(s.accepted, 2);
            EXPECT_EQ(s.requests.size(), 3U);
            EXPECT_EQ(s.requests[2].body, "body");
          });
    }
}

TEST(http_client_pool, a_post_is_never_sent_twice) {
  for (const char* method : {"POST", "PATCH", "x-own"})
    for (const bool with_reset : {false, true}) {
      SCOPED_TRACE(method);
      with_scripted_server(
          [&](served_connection& c) -> task<> {
            (void)co_await c.request();
            co_await c.send(answer_of("ok"));
            (void)co_await c.request();
            if (with_reset) c.reset();
          },
          [&](scripted_server& s) -> task<> {
            http::client c;
            co_await c.get(s.url());
            const auto error =
                co_await failure_of([&] { return c.request(method, s.url("/order"), "1"); });
            EXPECT_TRUE(http::is_transient(error)) << what_of(error);
            EXPECT_EQ(s.requests.size(), 2U);
            EXPECT_EQ(s.accepted, 1);
            EXPECT_EQ((co_await c.request(method, s.url("/order"), "1")).status(), 200);
          });
    }
}

TEST(http_client_pool, a_connection_is_replaced_once_and_a_new_one_not_at_all) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        (void)co_await c.request();
        if (c.number() > 0) co_return;
        co_await c.send(answer_of("ok"));
        (void)co_await c.request();
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        co_await c.get(s.url());
        const auto error = co_await failure_of([&] { return c.get(s.url()); });
        EXPECT_EQ(code_of(error), errc::end_of_stream);
        EXPECT_EQ(s.accepted, 2);
        EXPECT_EQ(co_await code_after([&] { return c.get(s.url()); }), errc::end_of_stream);
        EXPECT_EQ(s.accepted, 3);
      });
}

TEST(http_client_pool, after_a_byte_of_the_answer_nothing_is_repeated) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        (void)co_await c.request();
        co_await c.send(answer_of("ok"));
        (void)co_await c.request();
        co_await c.send("H");
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        co_await c.get(s.url());
        EXPECT_EQ(co_await code_after([&] { return c.get(s.url()); }), errc::end_of_stream);
        EXPECT_EQ(s.requests.size(), 2U);
      });
}

TEST(http_client_pool, survives_a_restart_of_the_server) {
  auto program = []() -> task<> {
    http::client c({.max_per_host = 4});
    int port = 0;
    for (int life = 0; life < 3; ++life) {
      scripted_server server(answers(1000));
      auto l = co_await io::listen({.port = port});
      port = server.port = l.port();
      auto inside = [&](weir::scope& s) -> task<> {
        s.background(server.run(l));
        std::vector<int> many(20);
        auto get = [&](int) -> task<int> { co_return (co_await c.get(server.url())).status(); };
        const auto statuses = co_await weir::parallel_map(many, get, 20);
        EXPECT_EQ(statuses, std::vector<int>(20, 200));
        EXPECT_LE(server.accepted, 4);
        EXPECT_EQ((co_await c.post(server.url(), "x")).status(), 200);
      };
      co_await weir::with_scope(inside);
    }
  };
  weir::run(program);
}
