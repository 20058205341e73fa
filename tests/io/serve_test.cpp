// SPDX-License-Identifier: MIT
// serve: a scope per connection, the limit, errors, draining.
#include <csignal>
#include <set>
#include <sstream>

#include <sys/resource.h>

#include "io_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;

namespace {

task<> echo(io::socket& c) {
  std::array<std::byte, 1024> buffer;
  while (auto n = co_await c.read_some(buffer)) co_await c.write_all(std::span(buffer).first(n));
}

/// Serves in the background while `body(port)` runs.
template <class Handler, class Body>
void while_serving(Handler handler, io::serve_options options, Body body) {
  auto program = [&]() -> task<> {
    auto l = co_await io::listen();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await io::serve(l, handler, options); };
      s.background(serve);
      co_await body(l.port());
    });
  };
  weir::run(program);
}

task<std::string> ask(int port, std::string text) {
  auto c = co_await io::connect("127.0.0.1", port);
  co_await c.write_all(text);
  c.shutdown_write();
  co_return co_await read_all(c);
}

}  // namespace

TEST(serve, every_connection_is_handled_and_closed_when_its_handler_ends) {
  while_serving(echo, {}, [](int port) -> task<> {
    for (int i = 0; i < 5; ++i) {
      const std::string text(static_cast<std::size_t>(i) * 1000 + 1, static_cast<char>('a' + i));
      EXPECT_EQ(co_await ask(port, text), text);
    }
  });
}

TEST(serve, each_connection_is_a_scope_named_by_its_peer) {
  std::string scope_name;
  std::string peer_name;
  auto handler = [&](io::socket& c) -> task<> {
    scope_name = weir::this_scope().name();
    peer_name = c.peer().str();
    co_return;
  };
  while_serving(handler, {.name = "door"}, [](int port) -> task<> {
    EXPECT_EQ(co_await ask(port, ""), "");
    std::ostringstream out;
    weir::dump(out);
    EXPECT_TRUE(contains(out.str(), "scope 'door'")) << out.str();
  });
  EXPECT_EQ(scope_name, peer_name);
  EXPECT_FALSE(peer_name.empty());
}

TEST(serve, an_error_of_a_handler_ends_its_connection_only_and_is_an_event) {
  text_log failed;
  auto handler = [](io::socket& c) -> task<> {
    const std::string what = co_await read_next(c, 10);
    if (what == "bad") throw boom(7);
    co_await c.write_all("fine");
  };
  auto seen = [&](const weir::event_info& e) {
    if (e.name == "connection_failed")
      failed.push_back(std::to_string(boom_of(e.error)) +
                       (contains(e.object, "127.0.0.1:") ? " peer" : ""));
  };
  while_serving(handler, {}, [&](int port) -> task<> {
    auto sub = weir::on_event(seen);
    EXPECT_EQ(co_await ask(port, "bad"), "");
    EXPECT_EQ(co_await ask(port, "good"), "fine");
  });
  EXPECT_EQ(failed, text_log{"7 peer"});
}

TEST(serve, at_the_limit_it_stops_accepting_and_goes_on_when_one_ends) {
  int now = 0;
  int most = 0;
  auto handler = [&](io::socket& c) -> task<> {
    most = std::max(most, ++now);
    auto end = weir::scope_exit([&] { --now; });
    (void)co_await read_next(c, 1);
    co_await c.write_all("ok");
  };
  while_serving(handler, {.max_connections = 2}, [&](int port) -> task<> {
    std::vector<io::socket> all;
    for (int i = 0; i < 6; ++i) all.push_back(co_await io::connect("127.0.0.1", port));
    co_await wait_until([&] { return now == 2; });
    for (io::socket& c : all) co_await c.write_all("x");
    for (io::socket& c : all) EXPECT_EQ(co_await read_all(c), "ok");
  });
  EXPECT_EQ(most, 2);
}

TEST(serve, closing_the_listener_drains_and_returns) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await io::serve(l, echo); };
      auto served = s.spawn(serve);
      auto c = co_await io::connect("127.0.0.1", l.port());
      co_await c.write_all("x");
      EXPECT_EQ(co_await read_next(c, 4), "x");
      l.close();
      co_await weir::yield();
      co_await c.write_all("y");
      EXPECT_EQ(co_await read_next(c, 4), "y");  // still served
      EXPECT_FALSE(served.done());
      c.close();
      co_await served;
    });
  };
  weir::run(program);
}

TEST(serve, a_closed_listener_is_served_at_once) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    l.close();
    co_await io::serve(l, echo);
    io::listener none;
    co_await io::serve(none, echo);
  };
  weir::run(program);
}

TEST(serve, cancelled_it_gives_connections_the_time_to_drain_and_then_cancels_them) {
  text_log log;
  weir::test_clock clock;
  auto handler = [&](io::socket& c) -> task<> {
    const std::string what = co_await read_next(c, 1);
    auto cut = weir::scope_failure([&] { log.push_back(what + " cut"); });
    co_await weir::sleep(what == "q" ? 5s : 60s);
    log.push_back(what + " done");
  };
  auto program = [&]() -> task<> {
    auto l = co_await io::listen();
    auto quick = co_await io::connect("127.0.0.1", l.port());
    auto slow = co_await io::connect("127.0.0.1", l.port());
    weir::time_point start;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await io::serve(l, handler, {.drain = 10s}); };
      s.background(serve);
      co_await quick.write_all("q");
      co_await slow.write_all("s");
      while (weir::live().timers < 2) co_await weir::yield();
      clock.auto_advance(true);
      start = weir::now();
    });
    EXPECT_EQ(weir::now() - start, 10s);
    EXPECT_EQ(log, (text_log{"q done", "s cut"}));
  };
  weir::run({.clock = &clock}, program);
}

TEST(serve, a_drain_of_0_cancels_at_once) {
  int cut = 0;
  auto handler = [&](io::socket& c) -> task<> {
    auto g = weir::scope_failure([&] { ++cut; });
    (void)co_await read_next(c, 1);
    (void)co_await read_next(c, 1);
  };
  while_serving(handler, {.drain = 0s}, [](int port) -> task<> {
    auto c = co_await io::connect("127.0.0.1", port);
    co_await c.write_all("x");
    while (c.native_handle() >= 0 && weir::live().scopes < 5) co_await weir::yield();
  });
  EXPECT_EQ(cut, 1);
}

TEST(serve, without_descriptors_accepting_pauses_with_an_event_and_goes_on) {
#if WEIR_TEST_ASAN
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors to look at an object's type";
#endif
  int paused = 0;
  auto seen = [&](const weir::event_info& e) {
    if (e.name == "accept_paused") ++paused;
  };
  while_serving(echo, {}, [&](int port) -> task<> {
    auto sub = weir::on_event(seen);
    EXPECT_EQ(co_await ask(port, "before"), "before");
    plain_socket client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit limits{};
    ::getrlimit(RLIMIT_NOFILE, &limits);
    const rlimit none{static_cast<rlim_t>(client.number()) + 1, limits.rlim_max};
    std::vector<plain_socket> fill;
    ::setrlimit(RLIMIT_NOFILE, &none);
    for (;;) {
      const int number = ::dup(client.number());
      if (number < 0) break;
      fill.emplace_back(number);
    }
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(client.number(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    co_await wait_until([&] { return paused > 0; });
    ::setrlimit(RLIMIT_NOFILE, &limits);
    fill.clear();
    client.send("late");
    std::string got;
    co_await wait_until([&] {
      got = client.arrived();
      return !got.empty();
    });
    EXPECT_EQ(got, "late");
  });
  EXPECT_GT(paused, 0);
}

TEST(serve, bad_options_are_refused) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    const auto code = [&](io::serve_options options) {
      return code_after([&l, options] { return io::serve(l, echo, options); });
    };
    EXPECT_EQ(co_await code({.max_connections = 0}), errc::invalid_argument);
    EXPECT_EQ(co_await code({.drain = -1s}), errc::invalid_argument);
    EXPECT_EQ(co_await code({.handshake_timeout = -1s}), errc::invalid_argument);
  };
  weir::run(program);
}

TEST(serve, many_short_connections_leave_nothing_behind) {
  const std::size_t before = open_descriptors();
  while_serving(echo, {}, [](int port) -> task<> {
    std::vector<int> all(2000);
    co_await weir::parallel_map(
        all,
        [port](int) -> task<int> { co_return static_cast<int>((co_await ask(port, "x")).size()); },
        32);
  });
  EXPECT_EQ(open_descriptors(), before);
}
