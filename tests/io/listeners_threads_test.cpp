// SPDX-License-Identifier: MIT
// One listener per loop of a runtime, over real sockets and threads.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "io_support.hpp"

using namespace weir_test;
namespace http = weir::http;

namespace {

/// The threads that have served a connection.
class thread_set {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    seen_.insert(std::this_thread::get_id());
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return seen_.size();
  }

 private:
  std::mutex mutex_;
  std::set<std::thread::id> seen_;
};

/// Runs `body(listeners, scope)` while `serve(listeners)` runs beside it on two loops.
template <class Serve, class Body>
void while_served(Serve serve, Body body) {
  auto program = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 2});
      io::listeners l = co_await io::listen(rt);
      EXPECT_EQ(l.size(), 2U);
      EXPECT_GT(l.port(), 0);
      auto served = s.spawn(serve(l));
      co_await body(l, served);
      served.cancel();
      co_await weir::settle(served);
    });
  };
  weir::run(program);
  EXPECT_EQ(live_fibers(), 0);
}

task<> echo_one(io::socket& c) {
  std::array<std::byte, 64> room;
  while (const std::size_t n = co_await c.read_some(room))
    co_await c.write_all(std::span(room).first(n));
}

task<std::string> said_back(int port, std::string text) {
  io::socket c = co_await io::connect("127.0.0.1", port);
  co_await c.write_all(text);
  co_return co_await read_n(c, text.size());
}

}  // namespace

TEST(listeners_threads, connections_are_spread_over_the_loops_of_the_runtime) {
  thread_set threads;
  auto handler = [&](io::socket& c) -> task<> {
    threads.add();
    co_await echo_one(c);
  };
  while_served([&](io::listeners& l) { return io::serve(l, handler, {.drain = 0ms}); },
               [&](io::listeners& l, weir::child<void>&) -> task<> {
                 int asked = 0;
                 for (; asked < 50 || (threads.size() < 2 && asked < 1000); ++asked)
                   EXPECT_EQ(co_await said_back(l.port(), "hello"), "hello");
               });
  EXPECT_EQ(threads.size(), 2U);
}

TEST(listeners_threads, each_loop_has_its_own_copy_of_the_handler) {
  struct counting {
    std::atomic<int>* copies;
    int calls = 0;  // without a lock: each copy belongs to one loop
    std::atomic<int>* most;
    task<> operator()(io::socket& c) {
      int now = ++calls;
      int before = most->load();
      while (before < now && !most->compare_exchange_weak(before, now)) {
      }
      co_await echo_one(c);
    }
  };
  std::atomic<int> copies{0};
  std::atomic<int> most{0};
  while_served(
      [&](io::listeners& l) { return io::serve(l, counting{&copies, 0, &most}, {.drain = 0ms}); },
      [&](io::listeners& l, weir::child<void>&) -> task<> {
        for (int i = 0; i < 200; ++i) co_await said_back(l.port(), "x");
      });
  EXPECT_GE(most.load(), 100);  // one of two has had at least half of them
  EXPECT_LE(most.load(), 200);
}

TEST(listeners_threads, the_limit_is_for_all_loops_together) {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  auto handler = [&](io::socket& c) -> task<> {
    const int n = ++now;
    int before = most.load();
    while (before < n && !most.compare_exchange_weak(before, n)) {
    }
    co_await echo_one(c);
    --now;
  };
  while_served(
      [&](io::listeners& l) { return io::serve(l, handler, {.max_connections = 3, .drain = 0ms}); },
      [&](io::listeners& l, weir::child<void>&) -> task<> {
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          for (int i = 0; i < 60; ++i) s.spawn(said_back(l.port(), "hello"));
          co_await s.join();
        });
      });
  EXPECT_LE(most.load(), 3);
  EXPECT_GE(most.load(), 1);
}

TEST(listeners_threads, with_one_place_every_loop_gets_its_turn) {
  thread_set threads;
  auto handler = [&](io::socket& c) -> task<> {
    threads.add();
    co_await echo_one(c);
  };
  while_served(
      [&](io::listeners& l) { return io::serve(l, handler, {.max_connections = 1, .drain = 0ms}); },
      [&](io::listeners& l, weir::child<void>&) -> task<> {
        for (int i = 0; i < 50 || (threads.size() < 2 && i < 1000); ++i)
          EXPECT_EQ(co_await said_back(l.port(), "x"), "x");
      });
  EXPECT_EQ(threads.size(), 2U);
}

TEST(listeners_threads, closing_drains_all_loops_and_serve_returns) {
  while_served([&](io::listeners& l) { return io::serve(l, echo_one, {.drain = 1h}); },
               [&](io::listeners& l, weir::child<void>& served) -> task<> {
                 const int port = l.port();
                 std::vector<io::socket> open;
                 for (int i = 0; i < 8; ++i) {
                   open.push_back(co_await io::connect("127.0.0.1", port));
                   co_await open.back().write_all("x");
                   EXPECT_EQ(co_await read_n(open.back(), 1), "x");
                 }
                 l.close();
                 EXPECT_EQ(l.size(), 0U);
                 co_await wait_until([&] { return !plain_socket::dial(port).open(); });
                 for (io::socket& c : open) {  // they are served to their end
                   co_await c.write_all("y");
                   EXPECT_EQ(co_await read_n(c, 1), "y");
                   c.close();
                 }
                 co_await served;
                 co_await io::serve(l, echo_one);  // closed: returns at once
               });
}

TEST(listeners_threads, cancelling_drains_and_then_cancels_the_connections) {
  while_served([&](io::listeners& l) { return io::serve(l, echo_one, {.drain = 1ms}); },
               [&](io::listeners& l, weir::child<void>& served) -> task<> {
                 io::socket c = co_await io::connect("127.0.0.1", l.port());
                 co_await c.write_all("x");
                 EXPECT_EQ(co_await read_n(c, 1), "x");
                 served.cancel();
                 EXPECT_TRUE((co_await weir::settle(served)).is_cancelled());
                 EXPECT_EQ(co_await read_all(c), "");
                 EXPECT_EQ(l.size(), 2U);  // they still listen, and can be served again
                 auto again = [&]() -> task<> { co_await io::serve(l, echo_one, {.drain = 0ms}); };
                 auto asks = [&]() -> task<> {
                   EXPECT_EQ(co_await said_back(l.port(), "again"), "again");
                 };
                 co_await weir::race(again, asks);
               });
}

TEST(listeners_threads, destroying_them_while_they_are_served_closes_them) {
  auto program = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 2});
      std::optional<io::listeners> l = co_await io::listen(rt);
      auto served = s.spawn(io::serve(*l, echo_one, {.drain = 0ms}));
      EXPECT_EQ(co_await said_back(l->port(), "x"), "x");
      l.reset();
      co_await served;
    });
  };
  weir::run(program);
}

TEST(listeners_threads, http_is_served_by_all_loops) {
  thread_set threads;
  http::router routes;
  routes.get("/{name}", [&](http::request& r) -> task<http::response> {
    threads.add();
    co_return http::response(200, "hello " + std::string(r.param("name")));
  });
  while_served([&](io::listeners& l) { return http::serve(l, routes, {.drain = 0ms}); },
               [&](io::listeners& l, weir::child<void>&) -> task<> {
                 const std::string url = "http://127.0.0.1:" + std::to_string(l.port()) + "/weir";
                 for (int i = 0; i < 20 || (threads.size() < 2 && i < 1000); ++i) {
                   http::client c;  // a connection of its own
                   const http::response r = co_await c.get(url);
                   EXPECT_EQ(r.body(), "hello weir");
                 }
               });
  EXPECT_EQ(threads.size(), 2U);
}

TEST(listeners_threads, what_cannot_listen_is_refused) {
  auto program = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 2});
      io::listener taken = co_await io::listen();
      const int port = taken.port();
      EXPECT_EQ(co_await code_after([&] { return io::listen(rt, {.port = port}); }),
                std::errc::address_in_use);
      EXPECT_EQ(co_await code_after([&] { return io::listen(rt, {.address = "nowhere"}); }),
                errc::invalid_argument);
      EXPECT_EQ(co_await code_after([&] { return io::listen(rt, {.backlog = 0}); }),
                errc::invalid_argument);
      io::listeners l = co_await io::listen(rt);
      EXPECT_EQ(co_await code_after([&] { return io::serve(l, echo_one, {.max_connections = 0}); }),
                errc::invalid_argument);
      io::listeners moved = std::move(l);
      EXPECT_EQ(l.size(), 0U);  // NOLINT
      co_await io::serve(l, echo_one);
      EXPECT_EQ(moved.size(), 2U);
    });
  };
  weir::run(program);
}

TEST(listeners_threads, a_storm_of_clients_is_answered_and_no_descriptor_is_left) {
  auto program = []() -> task<> {
    EXPECT_FALSE(plain_socket::dial(1).open());
    co_await weir::settle(weir::with_timeout(1ms, weir::readable(STDIN_FILENO)));
    const std::size_t before = open_descriptors();
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 2});
      io::listeners l = co_await io::listen(rt);
      auto served = s.spawn(io::serve(l, echo_one, {.max_connections = 20, .drain = 0ms}));
      for (int round = 0; round < 5; ++round) {
        co_await weir::with_scope([&](weir::scope& clients) -> task<> {
          for (int i = 0; i < 40; ++i) clients.spawn(said_back(l.port(), std::to_string(i)));
          co_await clients.join();
        });
      }
      served.cancel();
      co_await weir::settle(served);
    });
    EXPECT_LE(open_descriptors(), before + 2);  // the loop's own reactor may have come meanwhile
  };
  weir::run(program);
}
