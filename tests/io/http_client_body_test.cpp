// SPDX-License-Identifier: MIT
// Bodies of http::client: limits, bodies that are cut or lie, streams in both directions.
#include "io/http_client_support.hpp"

using namespace weir_test;

namespace {

/// Sends `answer` for each request and closes the connection.
server_script sends_once(std::string answer) {
  return [answer = std::move(answer)](served_connection& c) -> task<> {
    (void)co_await c.request();
    co_await c.send(answer);
  };
}

weir::stream<std::string> pieces_of(int n, std::size_t size) {
  for (int i = 0; i < n; ++i) co_yield std::string(size, 'p');
}

weir::stream<std::string> failing_pieces() {
  co_yield std::string("x");
  throw boom(5);
}

weir::stream<std::string> endless_pieces() {
  for (;;) co_yield std::string(10'000, 'e');
}

task<std::string> rest_of(http::incoming& in) {
  std::string all;
  while (auto piece = co_await in.next()) {
    EXPECT_FALSE(piece->empty());
    all += *piece;
  }
  co_return all;
}

}  // namespace

TEST(http_client_body, cut_short_is_end_of_stream_and_transient) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "HTTP/1.1 200 OK\r\ncontent-le", ""}) {
    SCOPED_TRACE(answer);
    with_scripted_server(sends_once(answer), [](scripted_server& s) -> task<> {
      http::client c;
      const auto error = co_await failure_of([&] { return c.get(s.url("/cut")); });
      EXPECT_EQ(code_of(error), errc::end_of_stream) << what_of(error);
      EXPECT_TRUE(contains(what_of(error), s.url("/cut"))) << what_of(error);
      EXPECT_TRUE(http::is_transient(error));
      EXPECT_EQ(s.requests.size(), 1U);
    });
  }
}

TEST(http_client_body, what_could_be_framed_in_two_ways_is_not_transient_and_drops_the_connection) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabcde",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\na",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11111111111111111\r\n",
        "HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", "HTTP/1.1 200 OK\r\nname : x\r\n\r\n",
        "HTTP/1.1 200 OK\ncontent-length: 0\n\n", "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n"}) {
    SCOPED_TRACE(answer);
    with_scripted_server([&](served_connection& c) -> task<> { co_await c.answer_all(answer); },
                         [](scripted_server& s) -> task<> {
                           http::client c;
                           for (int i = 0; i < 2; ++i) {
                             const auto error = co_await failure_of([&] { return c.get(s.url()); });
                             EXPECT_EQ(code_of(error), errc::bad_data) << what_of(error);
                             EXPECT_FALSE(http::is_transient(error));
                           }
                           EXPECT_EQ(s.accepted, 2);
                         });
  }
}

TEST(http_client_body, heads_and_interim_answers_have_limits) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        const auto r = co_await c.request();
        if (r.target() == "/interim") {
          for (int i = 0; i < 200; ++i) co_await c.send("HTTP/1.1 102 Processing\r\n\r\n");
        } else {
          co_await c.send("HTTP/1.1 200 OK\r\nx: " + std::string(100'000, 'y') + "\r\n\r\n");
        }
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        for (const char* path : {"/interim", "/head"})
          EXPECT_EQ(co_await code_after([&] { return c.get(s.url(path)); }), errc::bad_data);
      });
}

TEST(http_client_body, beyond_the_limit_is_too_large_declared_or_counted) {
  const std::string big(60'000, 'b');
  for (const std::string& answer :
       {answer_of(big), "HTTP/1.1 200 OK\r\n\r\n" + big,
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nea60\r\n" + big + "\r\n0\r\n\r\n"}) {
    with_scripted_server(sends_once(answer), [](scripted_server& s) -> task<> {
      http::client c({.max_body = 59'999});
      const auto error = co_await failure_of([&] { return c.get(s.url()); });
      EXPECT_EQ(code_of(error), errc::too_large);
      EXPECT_FALSE(http::is_transient(error));
      http::client enough({.max_body = 60'000});
      EXPECT_EQ((co_await enough.get(s.url())).body().size(), 60'000U);
    });
  }
}

TEST(http_client_body, a_declared_length_is_refused_before_the_body_was_read) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        (void)co_await c.request();
        co_await c.send("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n");
        (void)co_await c.request();
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        EXPECT_EQ(co_await code_after([&] { return c.get(s.url()); }), errc::too_large);
        co_await wait_until([&] { return s.open == 0; });
      });
}

// ------------------------------------------------------------------ incoming

TEST(http_client_body, an_incoming_is_pulled_piece_by_piece_and_its_connection_kept) {
  weir::event go_on;
  with_scripted_server(
      [&](served_connection& c) -> task<> {
        while (const auto r = co_await c.request()) {
          co_await c.send("HTTP/1.1 200 OK\r\nx-it: yes\r\ntransfer-encoding: chunked\r\n\r\n");
          co_await c.send("3\r\none\r\n");
          co_await go_on.wait();
          co_await c.send("3\r\ntwo\r\n0\r\n\r\n");
        }
      },
      [&](scripted_server& s) -> task<> {
        http::client c({.max_body = 1});  // not a limit of what is pulled
        for (int i = 0; i < 2; ++i) {
          go_on.reset();
          http::incoming in = co_await c.open("GET", s.url());
          EXPECT_EQ(in.status(), 200);
          EXPECT_EQ(in.header("X-It"), "yes");
          EXPECT_EQ(co_await in.next(), "one");
          go_on.set();
          EXPECT_EQ(co_await rest_of(in), "two");
          EXPECT_EQ(co_await in.next(), std::nullopt);
        }
        EXPECT_EQ(s.accepted, 1);
      });
}

TEST(http_client_body, an_incoming_that_is_dropped_early_closes_its_connection) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        (void)co_await c.request();
        co_await c.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx");
        (void)co_await c.request();
      },
      [](scripted_server& s) -> task<> {
        http::client c({.max_per_host = 1});
        {
          http::incoming in = co_await c.open("GET", s.url());
          EXPECT_EQ(co_await in.next(), "x");
          http::incoming moved = std::move(in);
          EXPECT_EQ(co_await code_after([&] { return in.next(); }), errc::closed);  // NOLINT
        }
        co_await wait_until([&] { return s.open == 0; });
        const auto again = co_await c.open("GET", s.url());  // its place is free
        EXPECT_EQ(s.accepted, 2);
      });
}

TEST(http_client_body, an_incoming_that_fails_says_so_once_and_is_closed_then) {
  with_scripted_server(sends_once("HTTP/1.1 500 No\r\ncontent-length: 100\r\n\r\nx"),
                       [](scripted_server& s) -> task<> {
                         http::client c;
                         http::incoming in = co_await c.open("GET", s.url());
                         EXPECT_TRUE(holds<http::status_error>(thrown_by([&] {
                           in.raise_for_status();
                           return 0;
                         })));
                         EXPECT_EQ(co_await in.next(), "x");
                         EXPECT_EQ(co_await code_after([&] { return in.next(); }),
                                   errc::end_of_stream);
                         EXPECT_EQ(co_await code_after([&] { return in.next(); }), errc::closed);
                       });
}

TEST(http_client_body, a_next_that_is_cancelled_has_taken_nothing) {
  weir::event go_on;
  with_scripted_server(
      [&](served_connection& c) -> task<> {
        (void)co_await c.request();
        co_await c.send("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\none");
        co_await go_on.wait();
        co_await c.send("two");
      },
      [&](scripted_server& s) -> task<> {
        http::client c({.timeout = 30ms});
        http::incoming in = co_await c.open("GET", s.url());
        EXPECT_EQ(co_await in.next(), "one");
        const auto lost = co_await weir::race(in.next(), weir::sleep(1ms));
        EXPECT_EQ(lost.index(), 1U);
        const auto late = co_await failure_of([&] { return in.next(); });
        EXPECT_TRUE(holds<weir::timeout_error>(late));
        go_on.set();
        EXPECT_EQ(co_await in.next(), "two");
        EXPECT_EQ(co_await in.next(), std::nullopt);
      });
}

TEST(http_client_body, two_pulls_at_once_are_refused) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        (void)co_await c.request();
        co_await c.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n");
        co_await weir::sleep(1h);
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        http::incoming in = co_await c.open("GET", s.url());
        auto inside = [&](weir::scope& scope) -> task<> {
          auto first = scope.spawn(in.next());
          co_await weir::yield();
          EXPECT_EQ(co_await code_after([&] { return in.next(); }), errc::busy);
          first.cancel();
        };
        co_await weir::with_scope(inside);
      });
}

// ------------------------------------------------------------------ streams as bodies

TEST(http_client_body, a_stream_is_sent_in_chunks) {
  with_scripted_server(
      [](served_connection& c) -> task<> { co_await c.answer_all(answer_of("ok")); },
      [](scripted_server& s) -> task<> {
        http::client c;
        EXPECT_EQ((co_await c.post(s.url(), pieces_of(3, 5))).body(), "ok");
        EXPECT_EQ((co_await c.post(s.url(), pieces_of(100, 10'000))).body(), "ok");
        EXPECT_EQ((co_await c.post(s.url(), pieces_of(0, 0))).body(), "ok");
        EXPECT_EQ((co_await c.post(s.url(), pieces_of(3, 0))).body(), "ok");
        EXPECT_EQ(s.requests[0].field("transfer-encoding"), "chunked");
        EXPECT_EQ(s.requests[0].body, std::string(15, 'p'));
        EXPECT_EQ(s.requests[1].body.size(), 1'000'000U);
        EXPECT_EQ(s.requests[2].body + s.requests[3].body, "");
        EXPECT_EQ(s.accepted, 1);
      });
}

TEST(http_client_body, an_error_of_the_stream_is_the_error_of_the_request) {
  with_scripted_server(
      [](served_connection& c) -> task<> { (void)co_await c.request(); },
      [](scripted_server& s) -> task<> {
        http::client c;
        EXPECT_EQ(boom_of(co_await failure_of([&] { return c.post(s.url(), failing_pieces()); })),
                  5);
        co_await wait_until([&] { return s.open == 0; });
        EXPECT_TRUE(s.requests.empty());  // it saw no end mark
      });
}

TEST(http_client_body, an_answer_that_comes_first_ends_the_upload) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        (void)co_await c.socket().read_until("\r\n\r\n", 1000);
        co_await c.send(answer_of("no", "", "413 Too Large"));
        co_await weir::sleep(1h);
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        for (int i = 0; i < 2; ++i) {
          const auto r = co_await c.post(s.url(), endless_pieces());
          EXPECT_EQ(r.status(), 413);
          EXPECT_EQ(r.body(), "no");
        }
        const auto r = co_await c.post(s.url(), std::string(10'000'000, 'x'));
        EXPECT_EQ(r.status(), 413);
        EXPECT_EQ(s.accepted, 3);  // none of them was kept
      });
}

TEST(http_client_body, is_sent_while_the_answer_is_read) {
  with_scripted_server(
      [](served_connection& c) -> task<> {  // an echo that begins before the body has ended
        (void)co_await c.socket().read_until("\r\n\r\n", 1000);
        co_await c.send("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        for (bool last = false; !last;) {
          const std::string line = co_await c.socket().read_until("\r\n", 100);
          std::string chunk(std::stoul(line, nullptr, 16) + 2, '\0');
          last = chunk.size() == 2;
          co_await c.socket().read_exactly(std::as_writable_bytes(std::span(chunk)));
          co_await c.send(chunk.substr(0, chunk.size() - 2));
        }
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        const auto r = co_await c.post(s.url(), pieces_of(1000, 10'000));
        EXPECT_EQ(r.body().size(), 10'000'000U);
        http::incoming in = co_await c.open("POST", s.url(), pieces_of(1000, 10'000));
        EXPECT_EQ((co_await rest_of(in)).size(), 10'000'000U);
      });
}
