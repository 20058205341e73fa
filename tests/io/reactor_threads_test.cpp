// SPDX-License-Identifier: MIT
// reactor: a loop that waits for I/O is woken by other threads, and loses nothing of either.
#include <atomic>
#include <thread>

#include <csignal>

#include "io_support.hpp"

using namespace weir_test;

TEST(reactor, a_loop_that_waits_for_io_hears_messages_of_other_threads) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto read = s.spawn(read_n(c, 4));
      for (int i = 0; i < 200; ++i) {
        const int got = co_await weir::blocking([i] { return i; });
        EXPECT_EQ(got, i);
      }
      EXPECT_FALSE(read.done());
      peer.send("done");
      co_await read;
    });
  });
}

TEST(reactor, messages_and_readiness_at_the_same_time_are_both_delivered) {
  weir::loop_thread other;
  auto program = [&]() -> task<> {
    auto l = co_await io::listen();
    const int port = l.port();
    std::thread client([port] {
      plain_socket c = plain_socket::dial(port);
      for (int i = 0; i < 2000; ++i) {
        c.send("x");
        char back = 0;
        if (::recv(c.number(), &back, 1, 0) != 1) return;
      }
    });
    auto c = co_await l.accept();
    int trips = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto echo = [&]() -> task<> {
        std::string one(1, '.');
        while (co_await c.read_some(bytes_of(one)) > 0) co_await c.write_all(one);
      };
      auto echoing = s.spawn(echo);
      while (!echoing.done()) {
        trips += co_await weir::on(other, [] { return ready(1); });
      }
    });
    client.join();
    EXPECT_GT(trips, 0);
  };
  weir::run(program);
}

TEST(reactor, each_loop_has_its_own) {
  auto program = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto serve_and_ask = []() -> task<std::string> {
        socket_pair p = co_await connected_pair();
        co_await p.a.write_all("over there");
        p.a.shutdown_write();
        co_return co_await read_all(p.b);
      };
      weir::loop_thread one(s);
      weir::loop_thread two(s);
      auto a = s.spawn(weir::on(one, serve_and_ask));
      auto b = s.spawn(weir::on(two, serve_and_ask));
      EXPECT_EQ(co_await a, "over there");
      EXPECT_EQ(co_await b, "over there");
    });
  };
  weir::run(program);
}

TEST(reactor, a_signal_handler_wakes_a_loop_that_waits_for_io) {
  auto program = []() -> task<> {
    socket_pair p = co_await connected_pair();
    std::string into(1, '.');
    std::thread killer([] { ::kill(::getpid(), SIGTERM); });
    auto join = weir::scope_exit([&] { killer.join(); });
    co_await p.a.read_some(bytes_of(into));
    ADD_FAILURE() << "nothing was sent";
  };
  EXPECT_THROW(weir::run({.handle_signals = true}, program), weir::cancelled_error);
}
