// SPDX-License-Identifier: MIT
// listener: binding, accepting, closing, Unix sockets and their files.
#include <sys/stat.h>

#include "io_support.hpp"

using namespace weir_test;

namespace {

/// Binds a Unix socket and closes it: its file stays, and nobody listens on it.
void leave_dead_socket_file(const std::string& path) {
  const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
  EXPECT_EQ(::bind(number, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ::close(number);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

task<std::exception_ptr> listen_error(io::listen_options options) {
  co_return co_await attempt([&] { return io::listen(options); });
}

}  // namespace

TEST(listener, port_0_picks_one_and_the_address_is_loopback_by_default) {
  auto program = []() -> task<> {
    auto a = co_await io::listen();
    auto b = co_await io::listen();
    EXPECT_GT(a.port(), 0);
    EXPECT_NE(a.port(), b.port());
    EXPECT_EQ(a.local().address(), "127.0.0.1");
  };
  weir::run(program);
}

TEST(listener, a_port_in_use_is_an_error_with_the_systems_code_that_names_the_address) {
  auto program = []() -> task<> {
    auto a = co_await io::listen();
    const std::exception_ptr error = co_await listen_error({.port = a.port()});
    EXPECT_EQ(code_of(error), std::errc::address_in_use);
    EXPECT_TRUE(contains(what_of(error), "127.0.0.1:" + std::to_string(a.port())));
    const int port = a.port();
    plain_socket peer = plain_socket::dial(port);
    auto c = co_await a.accept();
    c.close();  // the side that closes first keeps the port in TIME_WAIT
    a.close();
    auto again = co_await io::listen({.port = port});
    EXPECT_EQ(again.port(), port);
  };
  weir::run(program);
}

TEST(listener, two_may_share_a_port_if_both_ask_for_it) {
  auto program = []() -> task<> {
    auto a = co_await io::listen({.reuse_port = true});
    auto b = co_await io::listen({.port = a.port(), .reuse_port = true});
    EXPECT_EQ(a.port(), b.port());
  };
  weir::run(program);
}

TEST(listener, bad_options_are_refused) {
  auto program = []() -> task<> {
    EXPECT_EQ(code_of(co_await listen_error({.port = -1})), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await listen_error({.port = 65536})), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await listen_error({.backlog = 0})), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await listen_error({.address = "localhost"})), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await listen_error({.address = "192.0.2.1"})),
              std::errc::address_not_available);
  };
  weir::run(program);
}

TEST(listener, the_unspecified_address_of_ip6_takes_both_families) {
  auto program = []() -> task<> {
    auto l = co_await io::listen({.address = "::"});
    auto four = co_await io::connect("127.0.0.1", l.port());
    auto six = co_await io::connect("::1", l.port());
    auto a = co_await l.accept();
    auto b = co_await l.accept();
    EXPECT_EQ(a.peer().address(), "::ffff:127.0.0.1");
    EXPECT_EQ(b.peer().address(), "::1");
  };
  weir::run(program);
}

TEST(listener, accept_waits_for_a_connection_and_takes_them_in_order) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto accept = [&]() -> task<io::socket> { co_return co_await l.accept(); };
      auto first = s.spawn(accept);
      co_await weir::yield();
      EXPECT_FALSE(first.done());
      plain_socket one = plain_socket::dial(l.port());
      plain_socket two = plain_socket::dial(l.port());
      io::socket a = co_await std::move(first);
      io::socket b = co_await l.accept();
      one.send("1");
      two.send("2");
      EXPECT_EQ(co_await read_next(a, 4), "1");
      EXPECT_EQ(co_await read_next(b, 4), "2");
    });
  };
  weir::run(program);
}

TEST(listener, a_cancelled_accept_leaves_the_connection_to_the_next) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    EXPECT_TRUE(holds<weir::timeout_error>(co_await error_of(weir::with_timeout(1ms, l.accept()))));
    plain_socket one = plain_socket::dial(l.port());
    auto c = co_await l.accept();
    one.send("1");
    EXPECT_EQ(co_await read_next(c, 4), "1");
  };
  weir::run(program);
}

TEST(listener, a_second_accept_is_refused) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(error_of(l.accept()));
      co_await weir::yield();
      EXPECT_EQ(code_of(co_await error_of(l.accept())), errc::busy);
      l.close();
    });
  };
  weir::run(program);
}

TEST(listener, close_and_destruction_end_a_pending_accept) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto pending = s.spawn(error_of(l.accept()));
      co_await weir::yield();
      l.close();
      EXPECT_EQ(code_of(co_await pending), errc::closed);
      EXPECT_EQ(code_of(co_await error_of(l.accept())), errc::closed);
      l.close();
      {
        auto second = co_await io::listen();
        pending = s.spawn(error_of(second.accept()));
        co_await weir::yield();
      }
      EXPECT_EQ(code_of(co_await pending), errc::closed);
    });
  };
  weir::run(program);
}

TEST(listener, an_accepted_socket_that_nobody_took_is_closed) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    plain_socket one = plain_socket::dial(l.port());
    const std::size_t before = open_descriptors();
    // The fiber is cancelled in the turn in which its accept completes.
    co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
      auto accept = [&]() -> task<> {
        auto c = co_await l.accept();
        co_await weir::sleep(1h);
      };
      s.spawn(accept);
      co_await weir::yield();
      s.cancel();
    }));
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_EQ(one.arrived(), "(end)");
  };
  weir::run(program);
}

TEST(listener, a_unix_socket_has_mode_0600_and_its_file_goes_with_it) {
  scratch_folder folder;
  const std::string path = folder / "s";
  auto program = [&]() -> task<> {
    auto l = co_await io::listen_unix(path);
    struct stat found{};
    EXPECT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600U);
    EXPECT_EQ(l.port(), 0);
    EXPECT_EQ(l.local().str(), path);
    auto a = co_await io::connect_unix(path);
    auto b = co_await l.accept();
    EXPECT_EQ(b.peer_credentials()->pid, ::getpid());
    EXPECT_EQ(b.peer_credentials()->uid, ::getuid());
    co_await a.write_all("x");
    EXPECT_EQ(co_await read_next(b, 4), "x");
    l.close();
    EXPECT_FALSE(exists(path));
  };
  weir::run(program);
}

TEST(listener, a_dead_socket_file_is_replaced_and_a_live_one_is_not) {
  scratch_folder folder;
  const std::string path = folder / "s";
  leave_dead_socket_file(path);
  auto program = [&]() -> task<> {
    auto l = co_await io::listen_unix(path);
    auto again = [&] { return io::listen_unix(path); };
    EXPECT_EQ(co_await code_after(again), std::errc::address_in_use);
    EXPECT_TRUE(exists(path));
    auto a = co_await io::connect_unix(path);
    EXPECT_GE(a.native_handle(), 0);
  };
  weir::run(program);
  EXPECT_FALSE(exists(path));
}

TEST(listener, a_file_that_is_no_socket_is_not_replaced) {
  scratch_folder folder;
  const std::string path = folder / "s";
  ::close(::open(path.c_str(), O_CREAT | O_CLOEXEC, 0600));
  auto program = [&]() -> task<> {
    auto listen = [&] { return io::listen_unix(path); };
    EXPECT_EQ(co_await code_after(listen), std::errc::address_in_use);
  };
  weir::run(program);
  EXPECT_TRUE(exists(path));
}

TEST(listener, the_file_of_a_successor_is_not_removed) {
  scratch_folder folder;
  const std::string path = folder / "s";
  auto program = [&]() -> task<> {
    auto l = co_await io::listen_unix(path);
    std::filesystem::rename(path, folder / "old");
    auto next = co_await io::listen_unix(path);
    l.close();
    EXPECT_TRUE(exists(path));
    auto a = co_await io::connect_unix(path);
  };
  weir::run(program);
}

TEST(listener, one_from_elsewhere_is_adopted_if_it_listens) {
  auto program = []() -> task<> {
    const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(code_of(thrown_by([&] { return io::adopt_listener(number); })),
              errc::invalid_argument);
    EXPECT_EQ(::listen(number, 5), 0);
    auto l = io::adopt_listener(number);
    plain_socket one = plain_socket::dial(l.port());
    auto c = co_await l.accept();
    one.send("1");
    EXPECT_EQ(co_await read_next(c, 4), "1");
  };
  weir::run(program);
}
