// SPDX-License-Identifier: MIT
// Datagrams over real sockets, on one thread.
#include <optional>

#include "io_support.hpp"
#include "support/allocations.hpp"

using namespace weir_test;

namespace {

/// A socket for datagrams that weir knows nothing of.
class plain_udp {
 public:
  plain_udp() : number_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at = loopback(0);
    ::bind(number_, reinterpret_cast<sockaddr*>(&at), sizeof at);
  }
  plain_udp(const plain_udp&) = delete;
  plain_udp& operator=(const plain_udp&) = delete;
  ~plain_udp() { ::close(number_); }

  int port() const {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    ::getsockname(number_, reinterpret_cast<sockaddr*>(&at), &size);
    return ntohs(at.sin_port);
  }
  io::endpoint here() const { return io::endpoint("127.0.0.1", port()); }
  void send(std::string_view text, int to) const {
    sockaddr_in at = loopback(to);
    EXPECT_EQ(
        ::sendto(number_, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&at), sizeof at),
        static_cast<ssize_t>(text.size()));
  }
  /// What has arrived; empty: nothing.
  std::optional<std::string> arrived() const {
    std::string text(70'000, '\0');
    const ssize_t n = ::recv(number_, text.data(), text.size(), MSG_DONTWAIT);
    if (n < 0) return std::nullopt;
    text.resize(static_cast<std::size_t>(n));
    return text;
  }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
  }

  int number_;
};

task<std::string> next_datagram(io::udp& u, std::size_t room = 100) {
  std::string text(room, '\0');
  const io::received r = co_await u.receive_from(bytes_of(text));
  text.resize(r.size);
  co_return text;
}

}  // namespace

TEST(udp, a_datagram_comes_whole_with_its_sender_and_can_be_answered) {
  auto program = []() -> task<> {
    plain_udp foreign;
    auto u = co_await io::udp::bind();
    EXPECT_GT(u.port(), 0);
    EXPECT_EQ(u.local().address(), "127.0.0.1");
    EXPECT_GE(u.native_handle(), 0);
    foreign.send("hello", u.port());
    foreign.send("world", u.port());
    std::string text(8, '\0');
    const io::received r = co_await u.receive_from(bytes_of(text));
    EXPECT_EQ(r.size, 5U);
    EXPECT_FALSE(r.truncated);
    EXPECT_EQ(r.from, foreign.here());
    EXPECT_EQ(text.substr(0, 5), "hello");
    EXPECT_EQ(co_await next_datagram(u), "world");
    co_await u.send_to("reply", r.from);
    EXPECT_EQ(foreign.arrived(), "reply");
    const std::string bytes = "as bytes";
    co_await u.send_to(std::as_bytes(std::span(bytes)), r.from);
    EXPECT_EQ(foreign.arrived(), "as bytes");
  };
  weir::run(program);
}

TEST(udp, one_that_does_not_fit_is_cut_and_says_so) {
  auto program = []() -> task<> {
    plain_udp foreign;
    auto u = co_await io::udp::bind();
    foreign.send("much too long", u.port());
    foreign.send("12345678", u.port());
    std::string text(8, '\0');
    io::received r = co_await u.receive_from(bytes_of(text));
    EXPECT_TRUE(r.truncated);
    EXPECT_EQ(r.size, 8U);
    EXPECT_EQ(text, "much too");
    r = co_await u.receive_from(bytes_of(text));
    EXPECT_FALSE(r.truncated);
    EXPECT_EQ(text, "12345678");
  };
  weir::run(program);
}

TEST(udp, an_empty_datagram_is_one_and_an_empty_span_is_refused) {
  auto program = []() -> task<> {
    plain_udp foreign;
    auto u = co_await io::udp::bind();
    foreign.send("", u.port());
    EXPECT_EQ(co_await next_datagram(u), "");
    co_await u.send_to("", foreign.here());
    EXPECT_EQ(foreign.arrived(), "");
    EXPECT_EQ(foreign.arrived(), std::nullopt);
    foreign.send("kept", u.port());
    const std::error_code code =
        co_await code_after([&] { return u.receive_from(std::span<std::byte>()); });
    EXPECT_EQ(code, errc::invalid_argument);
    EXPECT_EQ(co_await next_datagram(u), "kept");
  };
  weir::run(program);
}

TEST(udp, a_receive_that_is_cancelled_or_loses_a_race_takes_nothing) {
  auto program = []() -> task<> {
    plain_udp foreign;
    auto u = co_await io::udp::bind();
    weir::event now;
    now.set();
    std::string text(8, '\0');
    for (int i = 0; i < 3; ++i) {
      co_await weir::race(now.wait(), u.receive_from(bytes_of(text)));
      auto late = co_await weir::settle(weir::with_timeout(1ms, u.receive_from(bytes_of(text))));
      EXPECT_TRUE(late.is_error());
    }
    foreign.send("kept", u.port());
    co_await weir::race(now.wait(), u.receive_from(bytes_of(text)));
    EXPECT_EQ(co_await next_datagram(u), "kept");
  };
  weir::run(program);
}

TEST(udp, a_receiver_that_waits_gets_what_comes_later) {
  auto program = []() -> task<> {
    plain_udp foreign;
    auto u = co_await io::udp::bind();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto got = s.spawn(next_datagram(u));
      co_await weir::yield();
      EXPECT_EQ(co_await code_after([&] { return next_datagram(u); }), errc::busy);
      foreign.send("late", u.port());
      EXPECT_EQ(co_await got, "late");
    });
  };
  weir::run(program);
}

TEST(udp, that_nobody_listens_there_is_no_error_and_does_not_break_the_socket) {
  auto program = []() -> task<> {
    io::endpoint nobody;
    {
      plain_udp gone;
      nobody = gone.here();
    }
    plain_udp foreign;
    auto u = co_await io::udp::bind();
    for (int i = 0; i < 10; ++i) co_await u.send_to("x", nobody);
    foreign.send("still here", u.port());
    EXPECT_EQ(co_await next_datagram(u), "still here");
    co_await u.send_to("y", foreign.here());
    EXPECT_EQ(foreign.arrived(), "y");
  };
  weir::run(program);
}

TEST(udp, close_ends_pending_operations_and_refuses_later_ones) {
  auto program = []() -> task<> {
    auto u = co_await io::udp::bind();
    const io::endpoint here = u.local();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto waits = s.spawn(code_after([&] { return next_datagram(u); }));
      co_await weir::yield();
      u.close();
      EXPECT_EQ(co_await waits, errc::closed);
    });
    EXPECT_EQ(co_await code_after([&] { return next_datagram(u); }), errc::closed);
    EXPECT_EQ(co_await code_after([&] { return u.send_to("x", here); }), errc::closed);
    EXPECT_EQ(u.native_handle(), -1);
    u.close();
    auto again = co_await io::udp::bind({.port = here.port()});
    io::udp moved = std::move(again);
    EXPECT_EQ(moved.port(), here.port());
    EXPECT_EQ(co_await code_after([&] { return next_datagram(again); }), errc::closed);  // NOLINT
  };
  weir::run(program);
}

TEST(udp, what_it_cannot_bind_or_send_is_refused_with_a_name) {
  auto program = []() -> task<> {
    auto u = co_await io::udp::bind();
    const std::exception_ptr taken =
        co_await attempt([&] { return io::udp::bind({.port = u.port()}); });
    EXPECT_EQ(code_of(taken), std::errc::address_in_use);
    EXPECT_TRUE(contains(what_of(taken), u.local().str())) << what_of(taken);
    auto shared = co_await io::udp::bind({.reuse_port = true});
    auto second = co_await io::udp::bind({.port = shared.port(), .reuse_port = true});
    EXPECT_EQ(second.port(), shared.port());
    EXPECT_EQ(co_await code_after([] { return io::udp::bind({.address = "nowhere"}); }),
              errc::invalid_argument);
    EXPECT_EQ(co_await code_after([] { return io::udp::bind({.port = 70'000}); }),
              errc::invalid_argument);

    const std::string long_text(70'000, 'x');
    EXPECT_EQ(co_await code_after([&] { return u.send_to(long_text, u.local()); }),
              std::errc::message_size);
    for (const io::endpoint& bad :
         {io::endpoint(), io::endpoint::of_path("/tmp/x"), io::endpoint("127.0.0.1", 0),
          io::endpoint("::1", 9), io::endpoint::of_loop("main", 9)})
      EXPECT_EQ(co_await code_after([&] { return u.send_to("x", bad); }), errc::invalid_argument)
          << bad.str();
  };
  weir::run(program);
}

TEST(udp, the_address_of_both_families_reaches_both) {
  auto program = []() -> task<> {
    plain_udp foreign;
    auto u = co_await io::udp::bind({.address = "::"});
    co_await u.send_to("four", foreign.here());
    EXPECT_EQ(foreign.arrived(), "four");
    foreign.send("back", u.port());
    std::string text(8, '\0');
    const io::received r = co_await u.receive_from(bytes_of(text));
    co_await u.send_to("again", r.from);
    EXPECT_EQ(foreign.arrived(), "again");
  };
  weir::run(program);
}

TEST(udp, a_warm_socket_allocates_nothing) {
  auto program = []() -> task<> {
    auto a = co_await io::udp::bind();
    auto b = co_await io::udp::bind();
    std::array<std::byte, 16> room;
    const io::endpoint to = b.local();
    co_await weir::settle(weir::with_timeout(1ms, b.receive_from(room)));  // makes the reactor
    co_await a.send_to("x", to);
    co_await b.receive_from(room);
    begin_to_count();
    for (int i = 0; i < 100; ++i) {
      co_await a.send_to("x", to);
      co_await b.receive_from(room);
    }
    EXPECT_EQ(end_count(), 0);
  };
  weir::run(program);
}

TEST(udp, destroying_one_while_a_receive_waits_aborts_with_its_name) {
  auto program = []() -> task<> {
    auto u = std::make_unique<io::udp>(co_await io::udp::bind());
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto waits = s.spawn(next_datagram(*u));
      co_await weir::yield();
      u.reset();
    });
  };
  EXPECT_DEATH(weir::run(program), "udp 127.0.0.1:[0-9]+ was destroyed while receive_from waits");
}
