// SPDX-License-Identifier: MIT
// Handlers that do what handlers should not, and clients that want to hurt the server: each harms
// its own connection, and nothing else.
#include <weir/http/router.hpp>
#include <weir/http/serve.hpp>

#include <optional>

#include "http_peer.hpp"
#include "io_support.hpp"

using namespace weir_test;
namespace http = weir::http;
using http_test::get_bytes;
using http_test::on_loopback;
using http_test::peer;
using http_test::post_bytes;
using http_test::reply;

namespace {

/// A request whose body never becomes complete.
std::string open_post(std::string_view target) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
}

/// A scope around the server, in which handlers leave fibers.
template <class Handler, class Body>
void with_scope_outside(Handler handler, Body body) {
  auto program = [&]() -> task<> {
    auto inside = [&](weir::scope& outside) -> task<> {
      auto answer = [&](http::request& r) { return handler(r, outside); };
      co_await http_test::serve_while(answer, {}, body);
    };
    co_await weir::with_scope(inside);
  };
  weir::run(program);
}

task<> turns(int n = 50) {
  for (int i = 0; i < n; ++i) co_await weir::yield();
}

}  // namespace

// ------------------------------------------------------------------ bodies that leave their
// request

TEST(http_hostile, a_fiber_that_reads_the_body_beyond_the_answer_finds_it_closed) {
  std::error_code code;
  std::string got;
  auto handler = [&](http::request& r, weir::scope& outside) -> task<http::response> {
    auto read = [&, body = r.body_stream()]() mutable -> task<> {
      const auto pull = [&]() -> task<> {
        for (auto piece = co_await body.next(); piece; piece = co_await body.next()) got += *piece;
      };
      code = co_await code_after(pull);
    };
    outside.spawn(std::move(read));
    co_await turns();  // it has read what is there, and waits
    co_return http::response(200, "early");
  };
  with_scope_outside(handler, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(open_post("/"));
    const reply r = co_await p.next();
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.body, "early");
    p.half_close();
    EXPECT_TRUE(co_await p.at_end());
    co_await turns();
  });
  EXPECT_EQ(got, "abc");
  EXPECT_EQ(code, errc::closed);
}

TEST(http_hostile, a_whole_body_that_is_read_beyond_the_answer_is_closed) {
  std::error_code code;
  auto handler = [&](http::request& r, weir::scope& outside) -> task<http::response> {
    auto read = [&, body = r.body()]() mutable -> task<> {
      const auto take = [&]() -> task<> { (void)co_await std::move(body); };
      code = co_await code_after(take);
    };
    outside.spawn(std::move(read));
    const bool waits = r.path() == "/waits";
    if (waits) co_await turns();  // otherwise it begins after the answer
    co_return http::response(200, "early");
  };
  for (const std::string target : {"/waits", "/begins"}) {
    SCOPED_TRACE(target);
    code = {};
    with_scope_outside(handler, [&](int port) -> task<> {
      peer p = co_await peer::dial(port);
      co_await p.send(open_post(target));
      EXPECT_EQ((co_await p.next()).body, "early");
      p.half_close();
      (void)co_await p.all();
      co_await turns();
    });
    EXPECT_EQ(code, errc::closed);
  }
}

// Its pull was paused in the middle of a read: what it refers to stays until it is gone.
TEST(http_hostile, a_stream_of_a_body_that_was_paused_and_kept_is_closed) {
  std::optional<weir::stream<std::string>> kept;
  auto handler = [&](http::request& r) -> task<http::response> {
    kept.emplace(r.body_stream());
    const auto first = co_await kept->next();
    EXPECT_EQ(first, "abc");
    auto more = [&]() -> task<> { (void)co_await kept->next(); };
    auto end = [] { return turns(); };
    (void)co_await weir::race(more, end);
    co_return http::response(200, "early");
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    for (const bool pulled : {true, false}) {
      peer p = co_await peer::dial(port);
      co_await p.send(open_post("/"));
      EXPECT_EQ((co_await p.next()).body, "early");
      p.half_close();
      EXPECT_TRUE(co_await p.at_end());
      auto pull = [&]() -> task<> { (void)co_await kept->next(); };
      if (pulled) {
        EXPECT_EQ(co_await code_after(pull), errc::closed);
      }
      kept.reset();
    }
    // Others are served as before.
    EXPECT_EQ((co_await http_test::ask(port, open_post("/") + "0\r\n\r\n")).status, 200);
    kept.reset();
  });
}

TEST(http_hostile, a_stream_of_a_body_that_was_read_and_kept_costs_nothing) {
  std::optional<weir::stream<std::string>> kept;
  auto handler = [&](http::request& r) -> task<http::response> {
    if (r.method() == "GET") co_return http::response(200, "next");
    kept.emplace(r.body_stream());
    (void)co_await kept->next();
    co_return http::response(200, "first");
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(post_bytes("/", "abc") + get_bytes("/"));
    EXPECT_EQ((co_await p.next()).body, "first");
    EXPECT_EQ((co_await p.next()).body, "next") << "the connection is kept";
    auto pull = [&]() -> task<> { (void)co_await kept->next(); };
    EXPECT_EQ(co_await code_after(pull), errc::closed);
    kept.reset();
  });
}

// ------------------------------------------------------------------ answers

TEST(http_hostile, an_answer_may_be_kept_and_sent_again) {
  const http::response cached = http::response::json("[1]").set("x-kept", "yes");
  auto handler = [&](http::request&) -> task<http::response> { co_return cached; };
  on_loopback(handler, {}, [](int port) -> task<> {
    for (int i = 0; i < 2; ++i) {
      const reply r = co_await http_test::get(port, "/");
      EXPECT_EQ(r.body, "[1]");
      EXPECT_EQ(r.header("x-kept"), "yes");
    }
  });
}

namespace {

weir::stream<std::string> two_pieces() {
  co_yield std::string("a");
  co_yield std::string("b");
}

}  // namespace

TEST(http_hostile, a_stream_is_sent_by_one_of_the_copies_of_its_answer) {
  const http::response streams = http::response::stream(two_pieces());
  auto handler = [&](http::request&) -> task<http::response> { co_return streams; };
  on_loopback(handler, {}, [](int port) -> task<> {
    const reply head = co_await http_test::ask(port, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", true);
    EXPECT_EQ(head.status, 200);  // which does not pull it
    EXPECT_EQ((co_await http_test::get(port, "/")).body, "ab");
    EXPECT_EQ((co_await http_test::get(port, "/")).status, 500);
  });
}

TEST(http_hostile, the_response_of_a_child_can_be_settled) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto child = s.spawn([]() -> task<http::response> { co_return http::response(201, "made"); });
      const auto how = co_await weir::settle(child);
      EXPECT_EQ(how.value().body(), "made");
      EXPECT_EQ((co_await child).status(), 201);
    });
  });
}

namespace {

/// What a stream of a careless author keeps.
struct throws_at_its_end {
  ~throws_at_its_end() noexcept(false) {
    if (weir::unwinding() == nullptr) throw boom(4);
  }
};
weir::stream<std::string> ends_badly() {
  const throws_at_its_end bad;
  co_yield std::string("piece");
}

}  // namespace

TEST(http_hostile, a_stream_whose_destructors_throw_is_cut) {
  auto handler = [](http::request&) -> task<http::response> {
    co_return http::response::stream(ends_badly());
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    for (int i = 0; i < 2; ++i) {
      const reply r = co_await http_test::get(port, "/");
      EXPECT_EQ(r.body, "piece");
      EXPECT_FALSE(r.whole);
    }
  });
}

TEST(http_hostile, a_handler_may_ask_its_router_twice) {
  http::router routes;
  routes.post("/{what}", [](http::request& r) -> task<http::response> {
    std::string body = co_await r.body();
    co_return http::response(200, std::string(r.param("what")) + " " + body);
  });
  auto twice = [&](http::request& r) -> task<http::response> {
    const http::response first = co_await routes(r);
    EXPECT_EQ(first.body(), "thing abc");
    co_return co_await routes(r);  // the body was taken
  };
  on_loopback(twice, {}, [](int port) -> task<> {
    EXPECT_EQ((co_await http_test::ask(port, post_bytes("/thing", "abc"))).status, 500);
  });
}

// ------------------------------------------------------------------ clients

TEST(http_hostile, a_thousand_requests_in_one_write_are_answered_in_order) {
  auto handler = [](http::request& r) -> task<http::response> {
    co_return http::response(200, std::string(r.path()));
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    std::string all;
    for (int i = 0; i < 1000; ++i) all += get_bytes("/" + std::to_string(i));
    auto body = [&](weir::scope& s) -> task<> {
      s.spawn(p.send(all));
      for (int i = 0; i < 1000; ++i) {
        const reply r = co_await p.next();
        EXPECT_EQ(r.body, "/" + std::to_string(i));
      }
    };
    co_await weir::with_scope(body);
  });
}

TEST(http_hostile, a_client_that_sends_and_never_reads_does_not_make_the_server_grow) {
  int answered = 0;
  auto handler = [&](http::request&) -> task<http::response> {
    ++answered;
    co_return http::response(200, std::string(100'000, 'x'));
  };
  on_loopback(handler, {.drain = 0ms}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    std::string all;
    for (int i = 0; i < 2000; ++i) all += get_bytes("/");
    auto body = [&](weir::scope& s) -> task<> {
      s.spawn(p.send(all));
      int before = -1;
      while (answered != before) {  // until it stands still
        before = answered;
        co_await turns(2000);
      }
      EXPECT_LT(answered, 1000);
      EXPECT_EQ((co_await http_test::get(port, "/")).status, 200) << "others are served";
      s.cancel();
    };
    co_await weir::with_scope(body);
  });
}

TEST(http_hostile, floods_of_headers_chunks_and_trailers_are_refused) {
  auto handler = [](http::request& r) -> task<http::response> {
    std::string body = co_await r.body();
    co_return http::response(200, std::move(body));
  };
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += "a" + std::to_string(i) + ": b\r\n";
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, int> floods[] = {
      {get_bytes("/", fields), 431},
      {get_bytes("/", "a: " + std::string(20'000, 'b') + "\r\n"), 431},
      {get_bytes("/" + std::string(20'000, 'b')), 431},
      {chunked + "1;" + std::string(20'000, 'e') + "\r\n", 400},
      {chunked + "0\r\n" + fields + "\r\n", 431},
      {chunked + "ffffffffffffffff\r\nx", 0},
      {chunked + "fffffffffffffffff\r\n", 400},
      {chunked + "100001\r\n" + std::string(0x100001, 'x') + "\r\n", 413},
  };
  on_loopback(handler, {.drain = 0ms}, [&](int port) -> task<> {
    for (const auto& [bytes, status] : floods) {
      SCOPED_TRACE(bytes.substr(0, 80));
      peer p = co_await peer::dial(port);
      co_await p.send(bytes);
      if (status == 0) continue;  // as much as the client wants to send, and not one byte more
      EXPECT_EQ((co_await p.next()).status, status);
    }
  });
}
