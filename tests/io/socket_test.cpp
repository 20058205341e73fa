// SPDX-License-Identifier: MIT
// socket: reading and writing, what cancelled and failed operations leave, closing, misuse.
#include <csignal>
#include <memory>
#include <vector>

#include "io_support.hpp"
#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;

TEST(socket, read_some_gives_what_is_there_and_0_at_the_end) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("hello");
    EXPECT_EQ(co_await read_next(c, 100), "hello");
    peer.send("abc");
    EXPECT_EQ(co_await read_next(c, 2), "ab");
    EXPECT_EQ(co_await read_next(c, 2), "c");
    peer.end_writing();
    EXPECT_EQ(co_await read_next(c, 2), "");
    EXPECT_EQ(co_await read_next(c, 2), "");
  });
}

TEST(socket, a_read_waits_until_bytes_come) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto read = s.spawn(read_next(c, 10));
      co_await weir::yield();
      EXPECT_FALSE(read.done());
      peer.send("late");
      EXPECT_EQ(co_await read, "late");
    });
  });
}

TEST(socket, an_empty_span_is_refused) {
  with_connection([](io::socket& c, plain_socket&) -> task<> {
    EXPECT_EQ(code_of(co_await error_of(c.read_some({}))), errc::invalid_argument);
    co_await c.read_exactly({});  // nothing is wanted, and nothing is waited for
    EXPECT_EQ(code_of(co_await error_of(c.read_until("", 10))), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await error_of(c.read_until("\n", 0))), errc::invalid_argument);
  });
}

TEST(socket, read_exactly_collects_pieces) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto read = s.spawn(read_n(c, 6));
      for (const char* piece : {"ab", "cd", "ef"}) {
        EXPECT_FALSE(read.done());
        peer.send(piece);
        co_await weir::sleep(1ms);
      }
      EXPECT_EQ(co_await read, "abcdef");
    });
  });
}

TEST(socket, read_exactly_that_ends_early_says_how_much_came_and_leaves_it_readable) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("12345");
    peer.end_writing();
    std::string into(10, '.');
    const std::exception_ptr error = co_await error_of(c.read_exactly(bytes_of(into)));
    EXPECT_EQ(code_of(error), errc::end_of_stream);
    EXPECT_TRUE(contains(what_of(error), "5 of 10")) << what_of(error);
    EXPECT_EQ(into, "12345.....");
    EXPECT_EQ(co_await read_n(c, 5), "12345");
    EXPECT_EQ(co_await read_next(c, 5), "");
  });
}

TEST(socket, bytes_of_a_cancelled_read_exactly_are_read_again) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("12345");
    std::string into(10, '.');
    EXPECT_TRUE(holds<weir::timeout_error>(
        co_await error_of(weir::with_timeout(5ms, c.read_exactly(bytes_of(into))))));
    peer.send("67890");
    EXPECT_EQ(co_await read_n(c, 10), "1234567890");
  });
}

TEST(socket, a_read_exactly_that_loses_a_race_gives_its_bytes_back) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("123");
    std::string into(10, '.');
    co_await weir::race(c.read_exactly(bytes_of(into)), weir::sleep(1ms));
    EXPECT_EQ(co_await read_n(c, 3), "123");
  });
}

TEST(socket, read_until_returns_the_delimiter_and_keeps_the_rest) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("one\r\ntwo\r\nthree");
    EXPECT_EQ(co_await c.read_until("\r\n", 100), "one\r\n");
    EXPECT_EQ(co_await c.read_until("\r\n", 5), "two\r\n");
    EXPECT_EQ(co_await read_next(c, 2), "th");
    EXPECT_EQ(co_await read_next(c, 100), "ree");
  });
}

TEST(socket, a_delimiter_may_come_in_pieces) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto line = [&]() -> task<std::string> { co_return co_await c.read_until("--end--", 100); };
      auto read = s.spawn(line);
      for (const char* piece : {"x--e", "nd-", "-rest"}) {
        co_await weir::sleep(1ms);
        EXPECT_FALSE(read.done());
        peer.send(piece);
      }
      EXPECT_EQ(co_await read, "x--end--");
      EXPECT_EQ(co_await read_next(c, 100), "rest");
    });
  });
}

TEST(socket, read_until_that_is_too_long_or_ended_early_consumes_nothing) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("no line end here");
    EXPECT_EQ(code_of(co_await error_of(c.read_until("\n", 5))), errc::too_long);
    EXPECT_TRUE(holds<weir::timeout_error>(
        co_await error_of(weir::with_timeout(5ms, c.read_until("\n", 100)))));
    peer.end_writing();
    EXPECT_EQ(code_of(co_await error_of(c.read_until("\n", 100))), errc::end_of_stream);
    EXPECT_EQ(co_await read_all(c), "no line end here");
  });
}

TEST(socket, read_until_finds_a_delimiter_that_ends_exactly_at_the_limit) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("1234\n1234\n");
    EXPECT_EQ(co_await c.read_until("\n", 5), "1234\n");
    EXPECT_EQ(code_of(co_await error_of(c.read_until("\n", 4))), errc::too_long);
    EXPECT_EQ(co_await c.read_until("\n", 5), "1234\n");
  });
}

TEST(socket, write_all_sends_more_than_the_system_takes_at_once) {
  auto program = []() -> task<> {
    socket_pair p = co_await connected_pair();
    std::string big(8 << 20, '\0');
    for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>('a' + i % 23);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto write = [&]() -> task<> {
        co_await p.a.write_all(big);
        p.a.shutdown_write();
      };
      s.spawn(write);
      const std::string got = co_await read_all(p.b);
      EXPECT_TRUE(got == big);
    });
    EXPECT_EQ(p.a.written(), big.size());
  };
  weir::run(program);
}

TEST(socket, a_cancelled_write_all_says_how_much_was_written) {
  auto program = []() -> task<> {
    socket_pair p = co_await connected_pair();
    const std::string big(16 << 20, 'x');
    EXPECT_TRUE(holds<weir::timeout_error>(
        co_await error_of(weir::with_timeout(20ms, p.a.write_all(big)))));
    const std::size_t written = p.a.written();
    EXPECT_GT(written, 0U);
    EXPECT_LT(written, big.size());
    p.a.shutdown_write();
    EXPECT_EQ((co_await read_all(p.b)).size(), written);
  };
  weir::run(program);
}

TEST(socket, write_all_of_nothing_is_a_checkpoint) {
  with_connection([](io::socket& c, plain_socket&) -> task<> {
    co_await c.write_all("");
    EXPECT_EQ(c.written(), 0U);
    const auto how = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
      s.cancel();
      co_await c.write_all("");
      ADD_FAILURE() << "a cancelled fiber went on";
    }));
    EXPECT_TRUE(how.is_cancelled());
  });
}

TEST(socket, a_write_to_a_closed_peer_fails_with_what_was_written_and_without_a_signal) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.reset();
    std::exception_ptr error;
    while (error == nullptr) error = co_await error_of(c.write_all("some text"));
    EXPECT_TRUE(holds<io::partial_write>(error));
    EXPECT_TRUE(code_of(error) == std::errc::connection_reset ||
                code_of(error) == std::errc::broken_pipe);
    try {
      std::rethrow_exception(error);
    } catch (const io::partial_write& e) {
      EXPECT_LE(e.written(), 9U);
    }
  });
}

TEST(socket, a_reset_is_an_error_with_the_systems_code_that_names_the_peer) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    const std::string name = c.peer().str();
    peer.reset();
    std::string into(10, '.');
    const std::exception_ptr error = co_await error_of(c.read_some(bytes_of(into)));
    EXPECT_EQ(code_of(error), std::errc::connection_reset);
    EXPECT_TRUE(contains(what_of(error), name)) << what_of(error);
  });
}

TEST(socket, after_shutdown_write_reading_goes_on) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await c.write_all("last");
    c.shutdown_write();
    EXPECT_EQ(peer.arrived(), "last");
    EXPECT_EQ(peer.arrived(), "(end)");
    peer.send("answer");
    EXPECT_EQ(co_await read_next(c, 100), "answer");
  });
}

TEST(socket, close_ends_pending_operations_and_refuses_later_ones) {
  with_connection([](io::socket& c, plain_socket&) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const std::string big(16 << 20, 'x');
      std::string into(10, '.');
      auto read = s.spawn(error_of(c.read_some(bytes_of(into))));
      auto write = s.spawn(error_of(c.write_all(big)));
      co_await weir::sleep(5ms);
      EXPECT_FALSE(read.done());
      EXPECT_FALSE(write.done());
      c.close();
      EXPECT_EQ(code_of(co_await read), errc::closed);
      EXPECT_EQ(code_of(co_await write), errc::closed);
    });
    std::string into(10, '.');
    EXPECT_EQ(code_of(co_await error_of(c.read_some(bytes_of(into)))), errc::closed);
    EXPECT_EQ(code_of(co_await error_of(c.read_exactly(bytes_of(into)))), errc::closed);
    EXPECT_EQ(code_of(co_await error_of(c.read_until("\n", 10))), errc::closed);
    EXPECT_EQ(code_of(co_await error_of(c.write_all("x"))), errc::closed);
    EXPECT_EQ(code_of(thrown_by([&] {
                c.shutdown_write();
                return 0;
              })),
              errc::closed);
    EXPECT_EQ(c.native_handle(), -1);
    c.close();
  });
}

TEST(socket, a_second_reader_and_a_second_writer_are_refused_before_they_take_anything) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto first = s.spawn(read_n(c, 4));
      co_await weir::yield();
      peer.send("1234");
      std::string into(4, '.');
      EXPECT_EQ(code_of(co_await error_of(c.read_some(bytes_of(into)))), errc::busy);
      EXPECT_EQ(into, "....");
      EXPECT_EQ(co_await first, "1234");
    });
  });
}

TEST(socket, two_reads_of_one_socket_in_a_race_are_refused_like_any_second_one) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    std::string one(4, '.');
    std::string two(4, '.');
    EXPECT_EQ(code_of(co_await error_of(
                  weir::race(c.read_some(bytes_of(one)), c.read_some(bytes_of(two))))),
              errc::busy);
    peer.send("abcd");
    EXPECT_EQ(co_await read_n(c, 4), "abcd");
  });
}

TEST(socket, a_read_that_loses_a_race_leaves_the_bytes_to_the_next) {
  auto program = []() -> task<> {
    socket_pair p = co_await connected_pair();
    socket_pair q = co_await connected_pair();
    std::string one(4, '.');
    std::string two(4, '.');
    co_await p.b.write_all("1");
    co_await q.b.write_all("2");
    co_await weir::sleep(1ms);
    const std::size_t got =
        co_await weir::race(p.a.read_some(bytes_of(one)), q.a.read_some(bytes_of(two)));
    EXPECT_EQ(got, 1U);
    EXPECT_EQ(one[0], '1');
    EXPECT_EQ(two[0], '.');
    EXPECT_EQ(co_await read_next(q.a, 4), "2");
  };
  weir::run(program);
}

TEST(socket, a_timeout_ends_a_read_at_once_and_the_socket_goes_on) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    std::string into(4, '.');
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(holds<weir::timeout_error>(
          co_await error_of(weir::with_timeout(2ms, c.read_some(bytes_of(into))))));
    }
    peer.send("x");
    EXPECT_EQ(co_await read_next(c, 4), "x");
  });
}

TEST(socket, a_moved_from_socket_is_closed_and_the_new_one_goes_on) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    io::socket other = std::move(c);
    std::string into(4, '.');
    EXPECT_EQ(code_of(co_await error_of(c.read_some(bytes_of(into)))), errc::closed);  // NOLINT
    EXPECT_EQ(c.native_handle(), -1);
    EXPECT_EQ(c.peer().str(), "nowhere");
    peer.send("x");
    EXPECT_EQ(co_await read_next(other, 4), "x");
    c = std::move(other);
    peer.send("y");
    EXPECT_EQ(co_await read_next(c, 4), "y");
  });
}

TEST(socket, lines_come_without_their_ends_and_the_last_may_lack_it) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("a\r\nbb\n\n\r\nlast");
    peer.end_writing();
    std::vector<std::string> all;
    auto lines = c.lines(4);
    while (auto line = co_await lines.next()) all.push_back(*line);
    EXPECT_EQ(all, (std::vector<std::string>{"a", "bb", "", "", "last"}));
  });
}

TEST(socket, a_line_longer_than_allowed_is_an_error) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("1234\n12345\n");
    auto lines = c.lines(4);
    EXPECT_EQ(*co_await lines.next(), "1234");
    EXPECT_EQ(code_of(co_await error_of(lines.next())), errc::too_long);
  });
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send("12345");
    peer.end_writing();
    auto lines = c.lines(4);
    EXPECT_EQ(code_of(co_await error_of(lines.next())), errc::too_long);
  });
}

TEST(socket, chunks_are_never_empty_and_never_larger_than_asked_for) {
  with_connection([](io::socket& c, plain_socket& peer) -> task<> {
    peer.send(std::string(1000, 'q'));
    peer.end_writing();
    std::size_t all = 0;
    auto chunks = c.chunks(64);
    while (auto piece = co_await chunks.next()) {
      EXPECT_GT(piece->size(), 0U);
      EXPECT_LE(piece->size(), 64U);
      all += piece->size();
    }
    EXPECT_EQ(all, 1000U);
    EXPECT_EQ(code_of(thrown_by([&] { return c.chunks(0); })), errc::invalid_argument);
  });
}

TEST(socket, endpoints_name_both_ends) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    auto a = co_await io::connect("127.0.0.1", l.port());
    auto b = co_await l.accept();
    EXPECT_EQ(a.peer().str(), "127.0.0.1:" + std::to_string(l.port()));
    EXPECT_EQ(a.local(), b.peer());
    EXPECT_EQ(b.local().port(), l.port());
    EXPECT_EQ(b.peer().address(), "127.0.0.1");
    EXPECT_FALSE(b.peer_credentials().has_value());
  };
  weir::run(program);
}

TEST(socket, descriptors_are_close_on_exec_and_non_blocking_and_tcp_is_without_delay) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    auto a = co_await io::connect("127.0.0.1", l.port());
    auto b = co_await l.accept();
    for (const int number : {l.native_handle(), a.native_handle(), b.native_handle()}) {
      EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
      EXPECT_NE(::fcntl(number, F_GETFL) & O_NONBLOCK, 0);
    }
    for (const int number : {a.native_handle(), b.native_handle()}) {
      int on = 0;
      socklen_t size = sizeof on;
      ::getsockopt(number, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, &size);
      EXPECT_EQ(on, 1);
    }
  };
  weir::run(program);
}

TEST(socket, an_adopted_one_works_and_foreign_things_are_refused) {
  with_unix_connection([](io::socket& c, plain_socket& peer) -> task<> {
    EXPECT_NE(::fcntl(c.native_handle(), F_GETFL) & O_NONBLOCK, 0);
    peer.send("x");
    EXPECT_EQ(co_await read_next(c, 4), "x");
    EXPECT_TRUE(c.peer_credentials().has_value());
    const int udp = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(code_of(thrown_by([&] { return io::adopt_socket(udp); })), errc::invalid_argument);
    EXPECT_NE(::fcntl(udp, F_GETFD), -1);  // still the caller's
    ::close(udp);
    EXPECT_EQ(code_of(thrown_by([] { return io::adopt_socket(-1); })),
              std::errc::bad_file_descriptor);
  });
}

TEST(socket, a_unix_peer_that_sends_in_pieces_is_read_to_the_last_byte) {
  with_unix_connection([](io::socket& c, plain_socket& peer) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto read = s.spawn(read_all(c));
      co_await weir::yield();
      std::string all;
      for (int i = 0; i < 100; ++i) {
        const std::string piece(static_cast<std::size_t>(i) % 7 + 1,
                                static_cast<char>('a' + i % 26));
        peer.send(piece);
        all += piece;
        if (i % 3 == 0) co_await weir::yield();
      }
      peer.end_writing();
      EXPECT_EQ(co_await read, all);
    });
  });
}
