// SPDX-License-Identifier: MIT
// socket: duplicates of its descriptor, forked children, urgent data, dumps at the wrong moment,
// ports that connect to themselves.
#include <sys/wait.h>

#include <sstream>

#include "io_support.hpp"

using namespace weir_test;

namespace {

/// Turns of the loop, in which it asks the reactor.
task<> turns() {
  for (int i = 0; i < 200; ++i) co_await weir::yield();
}

/// Waits once, so that the descriptor is registered.
task<> register_it(io::socket& c) {
  std::string one(1, '.');
  auto read = [&]() -> task<> { (void)co_await c.read_some(bytes_of(one)); };
  (void)co_await weir::race(read, turns());
}

}  // namespace

// The kernel keeps a registration until the last duplicate is closed, and reports its events.
TEST(socket, a_duplicate_of_its_descriptor_reports_nothing_after_close) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await register_it(c);
    const plain_socket duplicate(::dup(c.native_handle()));
    c = io::socket();
    peer.send("to nobody");
    co_await turns();
    EXPECT_EQ(duplicate.arrived(), "to nobody");
  });
}

TEST(listener, a_duplicate_of_its_descriptor_reports_nothing_after_close) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    const int port = l.port();
    (void)co_await weir::race(l.accept(), turns());
    const plain_socket duplicate(::dup(l.native_handle()));
    l = io::listener();
    const plain_socket client = plain_socket::dial(port);
    EXPECT_TRUE(client.open());
    co_await turns();
  };
  weir::run(program);
}

TEST(socket, a_forked_child_that_closes_it_does_not_disturb_its_parent) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await register_it(c);
    const pid_t child = ::fork();
    if (child == 0) {
      c.close();
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    auto send = [&]() -> task<> {
      co_await turns();
      peer.send("x");
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(send);
      EXPECT_EQ(co_await read_next(c, 10), "x");
    });
  });
}

// A read stops before urgent data, although bytes come after it: it is no sign of an empty queue.
TEST(socket, urgent_data_does_not_hide_the_bytes_behind_it) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await register_it(c);
    for (int i = 0; i < 3; ++i) {
      peer.send("abc");
      EXPECT_EQ(::send(peer.number(), "!", 1, MSG_OOB), 1);
      peer.send("def");
      co_await turns();
      EXPECT_EQ(co_await read_next(c, 100), "abc");
      EXPECT_EQ(co_await read_next(c, 100), "def");
    }
  });
}

// An arm of a composite may have ended while the others wait.
TEST(socket, a_dump_does_not_ask_a_socket_that_is_gone) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::string one(1, '.');
      s.spawn([&]() -> task<> {
        (void)co_await weir::all(c.read_some(bytes_of(one)), weir::sleep(1h));
      });
      co_await turns();
      peer.send("x");
      co_await turns();
      c = io::socket();
      std::ostringstream out;
      weir::dump(out);
      EXPECT_TRUE(contains(out.str(), "read_some")) << out.str();
      s.cancel();
    });
  });
}

TEST(socket, a_line_that_comes_byte_by_byte_is_found_whatever_was_read_before) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("x\ry");
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto line =
          s.spawn([&]() -> task<std::string> { co_return co_await c.read_until("\r\n", 99); });
      for (const char byte : std::string("\r\r\nrest")) {
        co_await turns();
        peer.send({&byte, 1});
      }
      EXPECT_EQ(co_await line, "x\ry\r\r\n");
      EXPECT_EQ(co_await read_n(c, 4), "rest");
      // One that is cancelled and begun again looks at everything.
      peer.send("a\r");
      auto other = [&]() -> task<std::string> { co_return co_await c.read_until("\r\n", 99); };
      auto lost = [&]() -> task<> { (void)co_await other(); };
      (void)co_await weir::race(lost, turns());
      peer.send("\nb");
      EXPECT_EQ(co_await other(), "a\r\n");
    });
  });
}

// The system picks even ports to connect from, one after the other, and all of them in turn.
TEST(connect, a_port_without_a_listener_is_never_connected_with_itself) {
  auto program = []() -> task<> {
    int port = 0;
    {
      auto l = co_await io::listen();
      port = l.port() & ~1;
    }
    for (int i = 0; i < (sanitized ? 3'000 : 30'000); ++i) {
      const auto error = co_await attempt([&] { return io::connect("127.0.0.1", port); });
      EXPECT_EQ(code_of(error), std::errc::connection_refused);
      if (code_of(error) != std::errc::connection_refused) break;
    }
  };
  weir::run(program);
}
