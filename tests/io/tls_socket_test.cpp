// SPDX-License-Identifier: MIT
// A TLS connection has all operations of a socket, with the same promises.
#include <weir/http/client.hpp>

#include "network_support.hpp"
#include "tls_support.hpp"

using namespace weir_test;

namespace {

/// Runs `body(a, b)` with the two ends of a TLS connection.
template <class Body>
void with_tls_pair(Body body) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    socket_pair p = co_await tls_pair(ca);
    co_await body(p.a, p.b);
  };
  weir::run(program);
  EXPECT_EQ(ERR_peek_error(), 0U);
}

/// Writes until nothing more fits, and is cancelled there.
task<std::string> write_until_full(io::socket& to) {
  const std::string text = pattern(8'000'000);
  (void)co_await weir::settle(weir::with_timeout(50ms, to.write_all(text)));
  EXPECT_GT(to.written(), 0U);
  EXPECT_LT(to.written(), text.size());
  co_return text.substr(0, to.written());
}

}  // namespace

TEST(tls_socket, bytes_go_both_ways_at_once_without_a_deadlock) {
  const localhost_authority ca;
  while_serving_tls(ca.server("srv"), tls_echo, [&](int port) -> task<> {
    auto c = co_await io::tls_connect("localhost", port, {.ca_file = ca.root});
    const std::string big = pattern(2'000'000);
    std::string got(big.size(), '\0');
    co_await weir::all(c.write_all(big), c.read_exactly(bytes_of(got)));
    EXPECT_TRUE(got == big);
  });
}

TEST(tls_socket, both_ends_may_write_more_than_the_kernel_takes_before_either_reads) {
  with_tls_pair([](io::socket& a, io::socket& b) -> task<> {
    const std::string big = pattern(3'000'000);
    std::string from_a(big.size(), '\0');
    std::string from_b(big.size(), '\0');
    co_await weir::all(a.write_all(big), b.write_all(big), a.read_exactly(bytes_of(from_b)),
                       b.read_exactly(bytes_of(from_a)));
    EXPECT_TRUE(from_a == big && from_b == big);
  });
}

TEST(tls_socket, lines_chunks_and_read_until_work_as_on_tcp) {
  with_tls_pair([](io::socket& a, io::socket& b) -> task<> {
    co_await a.write_all("one\r\ntwo\nrest");
    EXPECT_EQ(co_await b.read_until("\n", 10), "one\r\n");
    const std::exception_ptr too_long = co_await attempt([&] { return b.read_until("\n", 2); });
    EXPECT_EQ(code_of(too_long), errc::too_long);
    co_await a.shutdown_write();
    auto lines = b.lines(10);
    EXPECT_EQ(co_await lines.next(), "two");
    EXPECT_EQ(co_await lines.next(), "rest");
    EXPECT_EQ(co_await lines.next(), std::nullopt);
    co_await b.write_all("answer");  // reading goes on after shutdown_write
    b.close();
    auto chunks = a.chunks(4);
    std::string all;
    while (auto piece = co_await chunks.next()) all += *piece;
    EXPECT_EQ(all, "answer");
  });
}

TEST(tls_socket, a_cancelled_or_failed_read_takes_nothing) {
  with_tls_pair([](io::socket& a, io::socket& b) -> task<> {
    co_await a.write_all("ab");
    std::string four(4, '\0');
    const auto late =
        co_await weir::settle(weir::with_timeout(20ms, b.read_exactly(bytes_of(four))));
    EXPECT_TRUE(late.is_error());
    co_await a.write_all("c");
    a.shutdown_write();
    const std::exception_ptr ended =
        co_await attempt([&] { return b.read_exactly(bytes_of(four)); });
    EXPECT_EQ(code_of(ended), errc::end_of_stream);
    EXPECT_EQ(co_await read_all(b), "abc");
  });
}

TEST(tls_socket, a_record_that_a_cancelled_write_began_is_finished_by_the_next_operation) {
  with_tls_pair([](io::socket& a, io::socket& b) -> task<> {
    std::string sent = co_await write_until_full(a);
    auto next_write = [&]() -> task<> {
      co_await a.write_all("next");
      a.shutdown_write();
    };
    std::string got;
    auto read = [&]() -> task<> { got = co_await read_all(b); };
    co_await weir::all(next_write, read);
    EXPECT_TRUE(got == sent + "next");
  });
}

TEST(tls_socket, a_read_finishes_the_record_of_a_cancelled_write_as_well) {
  with_tls_pair([](io::socket& a, io::socket& b) -> task<> {
    std::string sent = co_await write_until_full(a);
    auto read_there = [&]() -> task<> {
      EXPECT_TRUE(co_await read_n(b, sent.size()) == sent);
      co_await b.write_all("thanks");
    };
    std::string answer;
    auto read_here = [&]() -> task<> { answer = co_await read_n(a, 6); };
    co_await weir::all(read_there, read_here);
    EXPECT_EQ(answer, "thanks");
  });
}

TEST(tls_socket, shutdown_write_and_close_wait_for_nobody_even_if_nothing_more_fits) {
  with_tls_pair([](io::socket& a, io::socket& b) -> task<> {
    const std::string sent = co_await write_until_full(a);
    a.shutdown_write();
    const std::exception_ptr later = co_await attempt([&] { return a.write_all("x"); });
    EXPECT_EQ(code_of(later), std::errc::broken_pipe);
    std::string got;
    auto read_there = [&]() -> task<> { got = co_await read_all(b); };
    // The record, and close_notify behind it, go with the next operation: a read.
    auto read_here = [&]() -> task<> { EXPECT_EQ(co_await read_next(a, 8), ""); };
    auto both = [&]() -> task<> {
      co_await read_there();
      b.close();
    };
    co_await weir::all(both, read_here);
    EXPECT_TRUE(got == sent);
  });
}

TEST(tls_socket, a_second_reader_or_writer_is_refused_and_close_ends_those_that_wait) {
  with_tls_pair([](io::socket& a, io::socket&) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::error_code ended;
      auto waits = [&]() -> task<> {
        ended = code_of(co_await attempt([&] { return read_next(a, 4); }));
      };
      auto first = s.spawn(waits);
      co_await weir::yield();
      EXPECT_EQ(co_await code_after([&] { return read_next(a, 4); }), errc::busy);
      a.close();
      co_await first;
      EXPECT_EQ(ended, errc::closed);
      EXPECT_EQ(co_await code_after([&] { return a.write_all("x"); }), errc::closed);
      EXPECT_EQ(a.native_handle(), -1);
    });
  });
}

TEST(tls_socket, without_serve_the_first_read_or_write_shakes_hands) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    auto l = co_await io::listen({.tls = &context});
    for (const bool read_first : {true, false}) {
      auto serve = [&]() -> task<> {
        io::socket c = co_await l.accept();
        if (read_first) {
          EXPECT_EQ(co_await read_n(c, 4), "ping");
        }
        co_await c.write_all("pong");
        EXPECT_EQ(co_await read_all(c), read_first ? "" : "ping");
      };
      auto ask = [&]() -> task<> {
        auto c = co_await io::tls_connect("localhost", l.port(), {.ca_file = ca.root});
        co_await c.write_all("ping");
        EXPECT_EQ(co_await read_n(c, 4), "pong");
      };
      co_await weir::all(serve, ask);
    }
  };
  weir::run(program);
}

TEST(tls_socket, a_reader_and_a_writer_may_share_the_first_handshake) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    auto l = co_await io::listen({.tls = &context});
    for (int i = 0; i < 20; ++i) {
      auto serve = [&]() -> task<> {
        io::socket c = co_await l.accept();
        std::string got(4, '\0');
        co_await weir::all(c.write_all("pong"), c.read_exactly(bytes_of(got)));
        EXPECT_EQ(got, "ping");
      };
      auto ask = [&]() -> task<> {
        auto c = co_await io::tls_connect("localhost", l.port(), {.ca_file = ca.root});
        co_await c.write_all("ping");
        EXPECT_EQ(co_await read_n(c, 4), "pong");
        EXPECT_EQ(co_await read_all(c), "");
      };
      co_await weir::all(serve, ask);
    }
  };
  weir::run(program);
}

TEST(tls_socket, a_cancelled_handshake_leaves_nothing_behind) {
  const std::size_t before = open_descriptors();
  auto program = []() -> task<> {
    auto l = co_await io::listen();  // accepts nothing, so nobody answers
    for (int i = 0; i < 5; ++i) {
      auto connect = [&] { return io::tls_connect("localhost", l.port()); };
      const auto late = co_await weir::settle(weir::with_timeout(10ms, connect));
      EXPECT_TRUE(late.is_error());
    }
  };
  weir::run(program);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(tls_socket, a_thousand_handshakes_leave_nothing_behind) {
  const localhost_authority ca;
  const std::size_t before = open_descriptors();
  int served = 0;
  auto count = [&](io::socket& c) -> task<> {
    EXPECT_EQ(co_await read_all(c), "x");
    ++served;
  };
  while_serving_tls(ca.server("srv"), count, [&](int port) -> task<> {
    for (int i = 0; i < 1000; ++i) {
      auto c = co_await io::tls_connect("localhost", port, {.ca_file = ca.root});
      co_await c.write_all("x");
    }
    co_await wait_until([&] { return served == 1000; });
  });
  EXPECT_EQ(open_descriptors(), before);
}

TEST(tls_socket, it_has_the_peer_the_names_and_the_descriptor_of_its_connection) {
  with_tls_pair([](io::socket& a, io::socket& b) -> task<> {
    EXPECT_EQ(a.peer().str(), b.local().str());
    EXPECT_EQ(b.peer().str(), a.local().str());
    EXPECT_GE(a.native_handle(), 0);
    EXPECT_FALSE(a.peer_credentials());
    io::socket plain;
    EXPECT_EQ(plain.alpn(), "");
    co_return;
  });
}

TEST(tls_socket, a_simulation_has_no_tls) {
  const localhost_authority ca;
  sim::run({}, [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    EXPECT_EQ(co_await code_after([] { return io::tls_connect("main", 80); }),
              errc::invalid_argument);
    EXPECT_EQ(co_await code_after([&] { return io::listen({.tls = &context}); }),
              errc::invalid_argument);
    weir::http::client c;
    EXPECT_EQ(co_await code_after([&] { return c.get("https://main/"); }), errc::invalid_argument);
  });
}
