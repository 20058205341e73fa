// SPDX-License-Identifier: MIT
// What the HTTP server does when time passes, on the simulated network.
#include <weir/http/serve.hpp>
#include <weir/sim/network.hpp>

#include <gtest/gtest.h>

#include <string>

#include "io/http_peer.hpp"
#include "support/sim_test.hpp"

namespace {

using namespace std::chrono_literals;
namespace http = weir::http;
using http_test::get;
using http_test::get_bytes;
using http_test::has;
using http_test::peer;
using http_test::post_bytes;
using http_test::reply;
using http_test::serve_while;
using weir::task;

task<http::response> body_size(http::request& r) {
  std::string body = co_await r.body();
  co_return http::response(200, std::to_string(body.size()));
}

template <class Handler, class Body>
void in_simulation(Handler handler, http::http_options options, Body body) {
  weir::sim::world w({.seed = 1});
  w.run([&]() -> task<> { co_await serve_while(handler, options, body); });
}

TEST(http_time, a_header_has_header_timeout_from_its_first_byte) {
  in_simulation(body_size, {.header_timeout = 10s}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await weir::sleep(30s);  // it is idle: this does not count
    const auto begin = weir::now();
    co_await p.send("G");
    for (int i = 0; i < 9; ++i) {
      co_await weir::sleep(1s);
      co_await p.send("E");
    }
    const reply r = co_await p.next();
    EXPECT_EQ(r.status, 408);
    EXPECT_EQ(r.header("connection"), "close");
    EXPECT_EQ(weir::now() - begin, 10s);
    EXPECT_TRUE(co_await p.at_end());
  });
}

TEST(http_time, a_header_that_is_complete_in_time_is_answered) {
  in_simulation(body_size, {.header_timeout = 10s}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    for (int round = 0; round < 3; ++round) {
      co_await p.send("GET / HTTP/1.1\r\nHost: ");
      co_await weir::sleep(9s);
      co_await p.send("h\r\n\r\n");
      EXPECT_EQ((co_await p.next()).status, 200);
    }
  });
}

TEST(http_time, an_idle_connection_is_closed_silently_after_idle_timeout) {
  in_simulation(body_size, {.idle_timeout = 60s}, [](int port) -> task<> {
    peer fresh = co_await peer::dial(port);
    const auto begin = weir::now();
    EXPECT_EQ(co_await fresh.all(), "");
    EXPECT_EQ(weir::now() - begin, 60s);
    peer kept = co_await peer::dial(port);
    co_await kept.send(get_bytes("/"));
    EXPECT_EQ((co_await kept.next()).status, 200);
    co_await weir::sleep(59s);
    co_await kept.send(get_bytes("/"));
    EXPECT_EQ((co_await kept.next()).status, 200);
    EXPECT_EQ(co_await kept.all(), "");
  });
}

TEST(http_time, a_body_that_stands_still_closes_the_connection) {
  bool timed_out = false;
  auto handler = [&](http::request& r) -> task<http::response> {
    try {
      std::string body = co_await r.body();
    } catch (const weir::timeout_error&) {
      timed_out = true;
      throw;
    }
    co_return http::response(200);
  };
  in_simulation(handler, {.progress_timeout = 30s}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
    const auto begin = weir::now();
    EXPECT_EQ(co_await p.all(), "");
    EXPECT_EQ(weir::now() - begin, 30s);
    EXPECT_TRUE(timed_out);
  });
}

TEST(http_time, a_body_that_moves_may_take_as_long_as_it_needs) {
  in_simulation(body_size, {.progress_timeout = 30s}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n");
    for (int i = 0; i < 100; ++i) {
      co_await weir::sleep(29s);
      co_await p.send("x");
    }
    EXPECT_EQ((co_await p.next()).body, "100");
  });
}

task<http::response> long_answer(http::request&) {
  co_return http::response(200, std::string(1 << 20, 'l'));
}

TEST(http_time, an_answer_that_no_one_reads_closes_the_connection) {
  in_simulation(long_answer, {.progress_timeout = 30s}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    co_await weir::sleep(61s);
    const reply r = co_await p.next();
    EXPECT_FALSE(r.whole);
    EXPECT_LT(r.body.size(), std::size_t{1 << 20});
  });
}

TEST(http_time, an_answer_that_is_read_slowly_arrives) {
  in_simulation(long_answer, {.progress_timeout = 30s}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    const auto begin = weir::now();
    (void)co_await p.until("\r\n\r\n");
    std::size_t all = 0;
    while (all < (1 << 20)) {
      co_await weir::sleep(20s);
      const std::string piece = co_await p.exactly(32 * 1024);
      if (piece.empty()) break;
      all += piece.size();
    }
    EXPECT_EQ(all, std::size_t{1 << 20});
    EXPECT_GT(weir::now() - begin, 5min);
  });
}

TEST(http_time, a_refused_client_that_does_not_close_is_cut_off_after_a_second) {
  in_simulation(body_size, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("NONSENSE\r\n\r\n");
    EXPECT_EQ((co_await p.next()).status, 400);
    EXPECT_TRUE(co_await p.at_end());
    co_await weir::sleep(999ms);
    co_await p.send("still here");
    co_await weir::sleep(2ms);
    bool gone = false;
    try {
      for (int i = 0; i < 3; ++i) {
        co_await p.send("gone?");
        co_await weir::sleep(1ms);
      }
    } catch (const weir::error&) {
      gone = true;
    }
    EXPECT_TRUE(gone);
  });
}

TEST(http_time, a_refused_client_that_goes_on_sending_is_cut_off_after_1_MiB) {
  in_simulation(body_size, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("NONSENSE\r\n\r\n");
    EXPECT_EQ((co_await p.next()).status, 400);
    const auto begin = weir::now();
    std::size_t sent = 0;
    try {
      for (; sent < (4 << 20); sent += 10'000) co_await p.send(std::string(10'000, 'x'));
    } catch (const weir::error&) {
    }
    EXPECT_LT(weir::now() - begin, 1s);
    EXPECT_GE(sent, std::size_t{1'000'000});
    EXPECT_LT(sent, std::size_t{2 << 20});
  });
}

weir::stream<http::event> rare_events(weir::event& ended) {
  struct mark {
    weir::event& e;
    ~mark() { e.set(); }
  } at_end{ended};
  co_yield http::event("a", "1");
  co_await weir::sleep(40s);
  co_yield http::event("b", "2");
  co_await weir::sleep(14s);
  co_yield http::event("c", "3");
}

TEST(http_time, a_comment_is_sent_every_15_s_without_events) {
  weir::event ended;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::events(rare_events(ended));
  };
  in_simulation(handler, {}, [&](int port) -> task<> {
    const reply r = co_await get(port, "/");
    EXPECT_EQ(r.body, "event: a\ndata: 1\n\n:\n\n:\n\nevent: b\ndata: 2\n\nevent: c\ndata: 3\n\n");
    EXPECT_TRUE(r.whole);
    const reply old = co_await http_test::ask(port, "GET / HTTP/1.0\r\n\r\n");
    EXPECT_EQ(old.body, r.body);
  });
}

weir::stream<http::event> no_events(weir::event& ended) {
  struct mark {
    weir::event& e;
    ~mark() { e.set(); }
  } at_end{ended};
  co_yield http::event("a", "1");
  co_await weir::sleep(24h);
}

TEST(http_time, a_comment_finds_a_client_that_does_not_read_any_more) {
  weir::event ended;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::events(no_events(ended));
  };
  weir::sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> {
        auto l = co_await weir::io::listen({.port = 80});
        co_await http::serve(l, handler, {.drain = 0s, .progress_timeout = 30s});
      };
      auto run = [&]() -> task<> { co_await weir::on(w.loop("server"), serve); };
      s.background(run);
      co_await weir::sleep(1s);
      auto socket = co_await weir::io::connect("server", 80);
      peer p(std::move(socket));
      co_await p.send(get_bytes("/"));
      (void)co_await p.until("data: 1");
      w.network().reset("main", "server");
      co_await weir::sleep(1s);
    };
    co_await weir::with_scope(body);
    co_return;
  });
  EXPECT_TRUE(ended.is_set());
}

/// Clients that leave at any moment, handlers that park or not: nothing is left, nothing hangs.
TEST(http_time, every_order_of_a_client_that_leaves_ends) {
  weir_test::for_each_order([](weir::sim::world& w) {
    int answered = 0;
    w.run([&]() -> task<> {
      auto handler = [](http::request& r) -> task<http::response> {
        std::string body = co_await r.body();
        if (r.path() == "/park") co_await weir::sleep(10s);
        co_return http::response(200, body);
      };
      auto client = [&](int port) -> task<> {
        auto leaver = [&]() -> task<> {
          peer p = co_await peer::dial(port);
          co_await p.send(post_bytes("/park", "abc"));
          p.half_close();
          EXPECT_EQ(co_await p.all(), "") << "its handler was parked";
        };
        auto stayer = [&]() -> task<> {
          peer p = co_await peer::dial(port);
          co_await p.send(post_bytes("/", "abc") + post_bytes("/park", "de"));
          EXPECT_EQ((co_await p.next()).body, "abc");
          EXPECT_EQ((co_await p.next()).body, "de");
          ++answered;
        };
        auto quick = [&]() -> task<> {
          peer p = co_await peer::dial(port);
          co_await p.send(post_bytes("/", "abc"));
          p.half_close();
          EXPECT_EQ((co_await p.next()).body, "abc");
          ++answered;
        };
        co_await weir::all(leaver, stayer, quick);
      };
      co_await serve_while(handler, {}, client);
    });
    EXPECT_EQ(answered, 2);
  });
}

}  // namespace
