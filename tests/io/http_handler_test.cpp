// SPDX-License-Identifier: MIT
#include <weir/http/serve.hpp>

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "io/http_peer.hpp"

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

TEST(http_handler, that_throws_is_500_with_an_id_and_without_its_text) {
  std::vector<std::string> ids;
  std::string said;
  auto handler = [](http::request& r) -> task<http::response> {
    if (r.path() == "/boom") throw std::runtime_error("boom-secret");
    co_return http::response(200, "fine");
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    const auto watch = weir::on_event([&](const weir::event_info& e) {
      if (e.name != "request_failed") return;
      ids.emplace_back(e.object);
      try {
        std::rethrow_exception(e.error);
      } catch (const std::exception& what) {
        said = what.what();
      }
    });
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/boom") + get_bytes("/fine"));
    const reply r = co_await p.next();
    EXPECT_EQ(r.status, 500);
    EXPECT_FALSE(has(r.head + r.body, "boom-secret"));
    EXPECT_EQ(ids.size(), 1U);
    EXPECT_EQ(r.header("x-error-id"), ids.at(0));
    EXPECT_EQ(said, "boom-secret");
    EXPECT_EQ((co_await p.next()).body, "fine") << "the connection is kept";
  });
}

TEST(http_handler, gets_its_error_for_headers_that_break_their_line) {
  int refused = 0;
  auto handler = [&](http::request&) -> task<http::response> {
    http::response r(200, "body");
    const std::pair<const char*, const char*> bad[] = {
        {"X", "a\r\nb"}, {"X", "a\nb"}, {"X Y", "a"}, {"Content-Length", "5"}};
    for (const auto& [name, value] : bad) {
      try {
        r.set(name, value);
      } catch (const weir::error& e) {
        refused += e.code() == weir::errc::invalid_argument ? 1 : 0;
      }
    }
    try {
      r.add("content-length", "5");
    } catch (const weir::error& e) {
      refused += e.code() == weir::errc::invalid_argument ? 1 : 0;
    }
    r.set("Content-Length", "4").add("set-cookie", "a").add("set-cookie", "b");
    co_return r;
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    const reply r = co_await get(port, "/");
    EXPECT_EQ(refused, 5);
    EXPECT_EQ(r.header("content-length"), "4");
    EXPECT_TRUE(has(r.head, "set-cookie: a\r\nset-cookie: b\r\n"));
    EXPECT_EQ(r.head.find("ontent-length"), r.head.rfind("ontent-length"));
  });
  EXPECT_THROW(http::response(99), weir::error);
  EXPECT_THROW(http::response(1000), weir::error);
}

TEST(http_handler, returns_json) {
  auto handler = [](http::request&) -> task<http::response> {
    co_return http::response::json("{}");
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    const reply r = co_await get(port, "/");
    EXPECT_EQ(r.header("content-type"), "application/json");
    EXPECT_EQ(r.body, "{}");
  });
}

TEST(http_handler, raises_for_a_status_of_400_and_more) {
  EXPECT_NO_THROW(http::response(399).raise_for_status());
  try {
    http::response(404).raise_for_status();
    ADD_FAILURE();
  } catch (const http::status_error& e) {
    EXPECT_EQ(e.status(), 404);
    EXPECT_TRUE(has(e.what(), "404"));
  }
}

TEST(http_handler, runs_under_the_deadline_of_its_client) {
  int started = 0;
  std::vector<bool> limited;
  auto handler = [&](http::request& r) -> task<http::response> {
    ++started;
    limited.push_back(r.deadline().has_value());
    if (r.path() == "/park") co_await weir::sleep(24h);
    if (r.path() == "/own") co_await weir::with_timeout(1ms, weir::sleep(24h));
    co_return http::response(200);
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    EXPECT_EQ((co_await get(port, "/park", "x-deadline-ms: 5\r\n")).status, 504);
    EXPECT_EQ(started, 1);
    EXPECT_EQ((co_await get(port, "/", "x-deadline-ms: 0\r\n")).status, 504);
    EXPECT_EQ((co_await get(port, "/", "x-deadline-ms: -7\r\n")).status, 504);
    EXPECT_EQ(started, 1) << "an expired one does not start the handler";
    EXPECT_EQ((co_await get(port, "/own", "x-deadline-ms: 3600000\r\n")).status, 500)
        << "a longer one changes nothing";
    EXPECT_EQ((co_await get(port, "/", "x-deadline-ms: 99999999999999999999999\r\n")).status, 200);
    EXPECT_EQ((co_await get(port, "/")).status, 200);
    EXPECT_EQ(limited, (std::vector<bool>{true, true, false, false}));
    EXPECT_EQ((co_await get(port, "/", "x-deadline-ms: 1.5\r\n")).status, 400);
    EXPECT_EQ((co_await get(port, "/", "x-deadline-ms:\r\n")).status, 400);
  });
}

TEST(http_handler, sees_the_traceparent_of_its_client) {
  auto handler = [](http::request&) -> task<http::response> {
    std::string seen = "[" + http::traceparent.get() + "]";
    co_return http::response(200, seen);
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    EXPECT_EQ((co_await get(port, "/", "traceparent: 00-abc-def-01\r\n")).body, "[00-abc-def-01]");
    EXPECT_EQ((co_await get(port, "/")).body, "[]");
  });
}

/// What ended the handler: filled by its destructors.
struct handler_end {
  std::optional<weir::cancel_kind> kind;
  weir::event parked;
  weir::event ended;
};
struct handler_guard {
  handler_end& end;
  explicit handler_guard(handler_end& e) : end(e) {}
  handler_guard(const handler_guard&) = delete;
  ~handler_guard() {
    if (const auto* why = weir::unwinding()) end.kind = why->kind;
    end.ended.set();
  }
};
auto parking_handler(handler_end& end) {
  return [&end](http::request&) -> task<http::response> {
    const handler_guard guard(end);
    end.parked.set();
    co_await weir::sleep(24h);
    co_return http::response(200);
  };
}

TEST(http_handler, that_is_parked_is_cancelled_when_its_client_goes_away) {
  for (const bool reset : {false, true}) {
    handler_end end;
    on_loopback(parking_handler(end), {.half_close = reset}, [&](int port) -> task<> {
      peer p = co_await peer::dial(port);
      co_await p.send(get_bytes("/"));
      co_await end.parked.wait();
      if (reset) {
        const linger at_once{1, 0};
        ::setsockopt(p.socket().native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        p.close();
      } else {
        p.half_close();
      }
      co_await end.ended.wait();
    });
    EXPECT_EQ(end.kind, weir::cancel_kind::remote) << reset;
  }
}

TEST(http_handler, that_is_parked_answers_a_half_closed_client_if_asked_to) {
  weir::event parked;
  weir::event go_on;
  auto handler = [&](http::request&) -> task<http::response> {
    parked.set();
    co_await go_on.wait();
    co_return http::response(200, "patient");
  };
  on_loopback(handler, {.half_close = true}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    co_await parked.wait();
    p.half_close();
    for (int i = 0; i < 100; ++i) co_await weir::yield();
    go_on.set();
    EXPECT_EQ((co_await p.next()).body, "patient");
    EXPECT_TRUE(co_await p.at_end());
  });
}

TEST(http_handler, that_does_not_park_answers_a_half_closed_client) {
  auto handler = [](http::request& r) -> task<http::response> {
    std::string body = co_await r.body();
    // More awaits than one turn allows, but none of them waits.
    for (int i = 0; i < 2000; ++i) co_await weir::checkpoint();
    co_return http::response(200, std::to_string(body.size()));
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{200'000}}) {
      peer p = co_await peer::dial(port);
      co_await p.send(post_bytes("/", std::string(size, 'b')));
      p.half_close();
      const reply r = co_await p.next();
      EXPECT_EQ(r.body, std::to_string(size));
      EXPECT_TRUE(co_await p.at_end());
    }
  });
}

TEST(http_handler, that_waits_for_children_that_do_not_park_answers_a_half_closed_client) {
  auto handler = [](http::request&) -> task<http::response> {
    std::vector<int> items(100);
    auto work = [](int) -> task<int> {
      co_await weir::yield();
      co_return 1;
    };
    const auto done = co_await weir::parallel_map(items, work, 10);
    co_return http::response(200, std::to_string(done.size()));
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    p.half_close();
    EXPECT_EQ((co_await p.next()).body, "100");
  });
}

TEST(http_handler, is_not_cancelled_while_a_half_closed_client_reads_a_long_answer) {
  auto handler = [](http::request&) -> task<http::response> {
    co_return http::response(200, std::string(8 << 20, 'l'));
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    p.half_close();
    const reply r = co_await p.next();
    EXPECT_TRUE(r.whole);
    EXPECT_EQ(r.body.size(), std::size_t{8 << 20});
  });
}

TEST(http_handler, is_cancelled_with_the_server_after_the_drain) {
  handler_end end;
  auto program = [&]() -> task<> {
    auto l = co_await weir::io::listen();
    auto body = [&](weir::scope& s) -> task<> {
      auto run = [&]() -> task<> { co_await http::serve(l, parking_handler(end), {.drain = 0s}); };
      auto server = s.spawn(run);
      peer p = co_await peer::dial(l.port());
      co_await p.send(get_bytes("/"));
      co_await end.parked.wait();
      server.cancel();
      EXPECT_TRUE(co_await p.at_end());
    };
    co_await weir::with_scope(body);
  };
  weir::run(program);
  EXPECT_TRUE(end.ended.is_set());
  EXPECT_TRUE(end.kind.has_value());
  EXPECT_NE(end.kind, weir::cancel_kind::remote);
}

TEST(http_handler, finishes_its_answer_while_idle_connections_are_closed_at_once) {
  weir::event parked;
  weir::event go_on;
  auto handler = [&](http::request& r) -> task<http::response> {
    if (r.path() == "/slow") {
      parked.set();
      co_await go_on.wait();
    }
    co_return http::response(200, "done");
  };
  auto program = [&]() -> task<> {
    auto l = co_await weir::io::listen();
    auto body = [&](weir::scope& s) -> task<> {
      auto run = [&]() -> task<> { co_await http::serve(l, handler, {.drain = 1h}); };
      auto server = s.spawn(run);
      peer fresh = co_await peer::dial(l.port());
      peer kept = co_await peer::dial(l.port());
      peer busy = co_await peer::dial(l.port());
      co_await kept.send(get_bytes("/"));
      EXPECT_EQ((co_await kept.next()).status, 200);
      co_await busy.send(get_bytes("/slow"));
      co_await parked.wait();
      server.cancel();
      EXPECT_TRUE(co_await kept.at_end());
      EXPECT_TRUE(co_await fresh.at_end());
      EXPECT_FALSE(server.done());
      go_on.set();
      const reply r = co_await busy.next();
      EXPECT_EQ(r.body, "done");
      EXPECT_EQ(r.header("connection"), "close");
      EXPECT_TRUE(co_await busy.at_end());
    };
    co_await weir::with_scope(body);
  };
  weir::run(program);
}

TEST(http_handler, drains_when_the_listener_is_closed) {
  auto handler = [](http::request&) -> task<http::response> { co_return http::response(200); };
  auto program = [&]() -> task<> {
    auto l = co_await weir::io::listen();
    auto body = [&](weir::scope& s) -> task<> {
      auto run = [&]() -> task<> { co_await http::serve(l, handler, {.drain = 1h}); };
      auto server = s.spawn(run);
      peer kept = co_await peer::dial(l.port());
      co_await kept.send(get_bytes("/"));
      EXPECT_EQ((co_await kept.next()).status, 200);
      l.close();
      EXPECT_TRUE(co_await kept.at_end());
      co_await server;
    };
    co_await weir::with_scope(body);
  };
  weir::run(program);
}

}  // namespace
