// SPDX-License-Identifier: MIT
// connect: numeric and named hosts, several addresses, errors.
#include "io/resolver.hpp"
#include "io_support.hpp"

using namespace weir_test;

namespace {

/// A port of this machine that nobody listens on.
task<int> unused_port() {
  auto l = co_await io::listen();
  co_return l.port();
}

task<std::exception_ptr> connect_error(std::string host, int port,
                                       io::connect_options options = {}) {
  co_return co_await attempt([&] { return io::connect(host, port, options); });
}

}  // namespace

TEST(connect, a_refused_one_is_an_error_with_the_systems_code_that_names_the_address) {
  auto program = []() -> task<> {
    const int port = co_await unused_port();
    const std::exception_ptr error = co_await connect_error("127.0.0.1", port);
    EXPECT_EQ(code_of(error), std::errc::connection_refused);
    EXPECT_TRUE(contains(what_of(error), "127.0.0.1:" + std::to_string(port))) << what_of(error);
  };
  weir::run(program);
}

TEST(connect, a_host_that_is_not_known_is_named) {
  auto program = []() -> task<> {
    const std::exception_ptr error = co_await connect_error("no-such-host.invalid", 80);
    EXPECT_EQ(code_of(error), errc::host_not_found);
    EXPECT_TRUE(contains(what_of(error), "no-such-host.invalid")) << what_of(error);
  };
  weir::run(program);
}

TEST(connect, bad_arguments_are_refused_when_awaited) {
  auto program = []() -> task<> {
    EXPECT_EQ(code_of(co_await connect_error("127.0.0.1", -1)), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await connect_error("127.0.0.1", 65536)), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await connect_error("", 80)), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await connect_error(std::string(300, 'x'), 80)), errc::invalid_argument);
    const std::string cut("127.0.0.1\0.example.org", 22);
    EXPECT_EQ(code_of(co_await connect_error(cut, 80)), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await connect_error("127.0.0.1", 80, {.attempt_delay = -1ms})),
              errc::invalid_argument);
    const auto how = co_await weir::settle(io::connect("127.0.0.1", -1));
    EXPECT_TRUE(how.is_error());
  };
  weir::run(program);
}

TEST(connect, a_name_is_resolved_and_the_address_that_answers_wins) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();  // 127.0.0.1 only: ::1, if localhost has it, is refused
    auto a = co_await io::connect("localhost", l.port());
    auto b = co_await l.accept();
    EXPECT_EQ(a.local(), b.peer());
  };
  weir::run(program);
}

TEST(connect, if_all_addresses_fail_each_is_in_the_text) {
  auto program = []() -> task<> {
    const int port = co_await unused_port();
    const auto addresses = co_await weir::detail::resolve("localhost", port);
    const std::exception_ptr error = co_await connect_error("localhost", port);
    EXPECT_EQ(code_of(error), std::errc::connection_refused);
    for (const io::endpoint& at : addresses)
      EXPECT_TRUE(contains(what_of(error), at.str())) << what_of(error);
  };
  weir::run(program);
}

TEST(connect, brackets_around_an_ip6_address_are_allowed) {
  auto program = []() -> task<> {
    auto l = co_await io::listen({.address = "::1"});
    auto a = co_await io::connect("[::1]", l.port());
    EXPECT_EQ(a.peer().address(), "::1");
  };
  weir::run(program);
}

TEST(connect, a_timeout_ends_one_that_nobody_answers_and_leaves_no_descriptor) {
  auto program = []() -> task<> {
    // A full backlog: the system drops further connects silently.
    auto l = co_await io::listen({.backlog = 1});
    std::vector<io::socket> waiting;
    for (;;) {
      auto c = co_await weir::settle(weir::with_timeout(50ms, io::connect("127.0.0.1", l.port())));
      if (!c.is_value()) break;
      waiting.push_back(c.take());
    }
    const std::size_t before = open_descriptors();
    const auto again =
        co_await weir::settle(weir::with_timeout(5ms, io::connect("127.0.0.1", l.port())));
    EXPECT_TRUE(again.is_error());
    EXPECT_EQ(open_descriptors(), before);
  };
  weir::run(program);
}

TEST(connect, cancelling_while_a_name_is_resolved_does_not_wait_for_the_resolver) {
  auto program = []() -> task<> {
    co_await weir::settle(weir::with_scope([](weir::scope& s) -> task<> {
      s.spawn(connect_error("localhost", 1));
      co_await weir::yield();
      s.cancel();
    }));
  };
  weir::run(program);
}

TEST(connect, a_unix_socket_that_is_not_there_is_named) {
  scratch_folder folder;
  const std::string path = folder / "nobody";
  auto program = [&]() -> task<> {
    const std::exception_ptr error = co_await attempt([&] { return io::connect_unix(path); });
    EXPECT_EQ(code_of(error), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(contains(what_of(error), path));
  };
  weir::run(program);
}

TEST(connect, a_full_backlog_of_a_unix_socket_is_waited_for) {
  scratch_folder folder;
  const std::string path = folder / "s";
  auto program = [&]() -> task<> {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::strncpy(at.sun_path, path.c_str(), sizeof at.sun_path - 1);
    EXPECT_EQ(::bind(number, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(number, 0), 0);
    auto l = io::adopt_listener(number);
    auto first = co_await io::connect_unix(path);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto connect = [&]() -> task<io::socket> { co_return co_await io::connect_unix(path); };
      auto second = s.spawn(connect);
      co_await weir::sleep(5ms);
      EXPECT_FALSE(second.done());
      auto a = co_await l.accept();
      auto c = co_await std::move(second);
      auto b = co_await l.accept();
      co_await c.write_all("x");
      EXPECT_EQ(co_await read_next(b, 4), "x");
    });
  };
  weir::run(program);
}
