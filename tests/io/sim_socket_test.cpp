// SPDX-License-Identifier: MIT
// Sockets on a simulated network without faults: names, connections, their ends, back-pressure.
#include <optional>
#include <vector>

#include "network_support.hpp"

using namespace weir_test;

namespace {

task<io::socket> accepted_once(int port = service) {
  io::listener l = co_await io::listen({.port = port});
  co_return co_await l.accept();
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(sim_socket, what_is_written_comes_back_from_another_loop) {
  co_await against(
      w, [] { return echo_server(); },
      [&]() -> task<> {
        io::socket c = co_await io::connect("server", service);
        co_await c.write_all("ping");
        EXPECT_EQ(co_await read_n(c, 4), "ping");
        co_await c.write_all("pong");
        c.shutdown_write();
        EXPECT_EQ(co_await read_all(c), "pong");
      });
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, a_loop_reaches_its_own_listener_by_name_and_by_loopback) {
  io::listener l = co_await io::listen();
  EXPECT_GT(l.port(), 0);
  for (const std::string host : {"main", "127.0.0.1"}) {
    io::socket c = co_await io::connect(host, l.port());
    io::socket s = co_await l.accept();
    co_await c.write_all(host);
    c.close();
    EXPECT_EQ(co_await read_all(s), host);
  }
}

FIBER_TEST(sim_socket, sockets_know_the_loops_and_ports_of_both_ends) {
  io::endpoint seen;
  co_await against(
      w,
      [&]() -> task<> {
        io::socket s = co_await accepted_once();
        seen = s.peer();
        EXPECT_EQ(s.local().str(), "server:80");
        co_await s.write_all("x");
      },
      [&]() -> task<> {
        io::socket c = co_await io::connect("server", service);
        EXPECT_EQ(co_await read_next(c, 4096), "x");
        EXPECT_EQ(c.peer().str(), "server:80");
        EXPECT_EQ(c.peer().address(), "server");
        EXPECT_EQ(c.local().address(), "main");
        EXPECT_EQ(c.local(), seen);
        EXPECT_EQ(c.native_handle(), -1);
        EXPECT_FALSE(c.peer_credentials().has_value());
      });
}

FIBER_TEST(sim_socket, nobody_listens_is_connection_refused) {
  EXPECT_EQ(co_await code_after([] { return io::connect("main", service); }),
            std::errc::connection_refused);
  w.loop("idle");
  const std::exception_ptr error = co_await attempt([] { return io::connect("idle", service); });
  EXPECT_EQ(code_of(error), std::errc::connection_refused);
  EXPECT_TRUE(contains(what_of(error), "idle:80")) << what_of(error);
}

FIBER_TEST(sim_socket, a_name_that_is_no_loop_is_host_not_found) {
  const std::exception_ptr error = co_await attempt([] { return io::connect("nobody", service); });
  EXPECT_EQ(code_of(error), weir::errc::host_not_found);
  EXPECT_TRUE(contains(what_of(error), "'nobody'")) << what_of(error);
  for (const char* host : {"localhost", "10.0.0.1", "::1", ""})
    EXPECT_EQ(co_await code_after([&] { return io::connect(host, service); }),
              weir::errc::host_not_found)
        << host;
}

FIBER_TEST(sim_socket, a_port_is_taken_once_per_loop) {
  io::listener first = co_await io::listen({.port = service});
  EXPECT_EQ(co_await code_after([] { return io::listen({.port = service}); }),
            std::errc::address_in_use);
  co_await weir::on(w.loop("other"), []() -> task<> {
    io::listener also = co_await io::listen({.port = service});
    EXPECT_EQ(also.port(), service);
  });
  first.close();
  io::listener again = co_await io::listen({.address = "::", .port = service});
  EXPECT_EQ(again.local().str(), "main:80");
}

FIBER_TEST(sim_socket, an_address_that_is_no_number_is_refused) {
  EXPECT_EQ(co_await code_after([] { return io::listen({.address = "server"}); }),
            weir::errc::invalid_argument);
}

FIBER_TEST(sim_socket, picked_ports_differ) {
  io::listener a = co_await io::listen();
  io::listener b = co_await io::listen();
  EXPECT_NE(a.port(), b.port());
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, the_end_comes_after_what_was_written) {
  co_await against(
      w,
      [&]() -> task<> {
        io::socket s = co_await accepted_once();
        EXPECT_EQ(co_await read_all(s), "question");
        co_await s.write_all("answer");
      },
      [&]() -> task<> {
        io::socket c = co_await io::connect("server", service);
        co_await c.write_all("question");
        c.shutdown_write();
        EXPECT_EQ(co_await code_after([&] { return c.write_all("more"); }), std::errc::broken_pipe);
        EXPECT_EQ(co_await read_all(c), "answer");
        EXPECT_EQ(co_await read_next(c, 4096), "");
      });
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, closing_with_unread_input_resets_the_other_end) {
  auto [c, s] = co_await connected_pair();
  co_await c.write_all("unread");
  s.close();
  EXPECT_EQ(co_await code_after([&] { return read_next(c, 4096); }), std::errc::connection_reset);
  EXPECT_EQ(co_await code_after([&] { return c.write_all("x"); }), std::errc::connection_reset);
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, writing_to_a_closed_end_is_answered_by_a_reset) {
  io::listener l = co_await io::listen();
  io::socket c = co_await io::connect("main", l.port());
  (co_await l.accept()).close();
  EXPECT_EQ(co_await read_all(c), "");
  co_await c.write_all("into the void");
  EXPECT_EQ(co_await code_after([&] { return c.write_all("x"); }), std::errc::connection_reset);
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, a_slow_reader_stops_its_writer_at_64_kib) {
  constexpr std::size_t window = 64 * 1024;
  auto [c, s] = co_await connected_pair();
  const std::string text = pattern(3 * window);
  bool written = false;
  std::string got;
  auto write = [&]() -> task<> {
    co_await c.write_all(text);
    written = true;
    c.close();
  };
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    scope.spawn(write());
    co_await weir::sleep(1s);
    EXPECT_EQ(c.written(), window);
    got = co_await read_n(s, 1000);
    co_await weir::sleep(1s);
    EXPECT_EQ(c.written(), window + 1000);
    EXPECT_FALSE(written);
    got += co_await read_all(s);
  });
  EXPECT_TRUE(written);
  EXPECT_TRUE(got == text);
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, a_cancelled_read_has_taken_nothing) {
  auto [c, s] = co_await connected_pair();
  std::array<std::byte, 8> buffer{};
  EXPECT_FALSE(co_await ends_within(1s, [&] { return s.read_some(buffer); }));
  co_await c.write_all("later");
  EXPECT_EQ(co_await read_n(s, 5), "later");
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, a_connect_that_was_given_up_leaves_nothing_behind) {
  w.network().set({.latency = 100ms});
  io::listener l = co_await io::listen();
  for (const weir::duration patience : {50ms, 150ms}) {  // before and after it arrives
    EXPECT_FALSE(co_await ends_within(patience, [&] { return io::connect("main", l.port()); }));
    co_await weir::sleep(1s);
  }
  io::socket given_up = co_await l.accept();
  EXPECT_EQ(co_await code_after([&] { return read_next(given_up, 4096); }),
            std::errc::connection_reset);
  EXPECT_FALSE(co_await ends_within(1s, [&] { return l.accept(); }));
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, connections_beyond_the_backlog_wait) {
  io::listener l = co_await io::listen({.backlog = 2});
  int connected = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto client = [&]() -> task<> {
      io::socket c = co_await io::connect("main", l.port());
      ++connected;
      EXPECT_EQ(co_await read_all(c), "");
    };
    for (int i = 0; i < 5; ++i) s.spawn(client());
    co_await weir::sleep(1s);
    EXPECT_EQ(connected, 2);
    for (int i = 0; i < 5; ++i) io::socket taken = co_await l.accept();
    co_await s.join();
  });
  EXPECT_EQ(connected, 5);
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, closing_a_listener_ends_who_waits_for_it) {
  std::vector<std::error_code> ends;
  io::listener l = co_await io::listen({.backlog = 1});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto client = [&]() -> task<> {
      ends.push_back(co_await code_after([&]() -> task<> {
        io::socket c = co_await io::connect("main", l.port());
        (void)co_await read_next(c, 4096);
      }));
    };
    for (int i = 0; i < 2; ++i) s.spawn(client());
    co_await weir::sleep(1s);
    l.close();
    co_await s.join();
    EXPECT_EQ(co_await code_after([&] { return l.accept(); }), weir::errc::closed);
  });
  // One was in the queue, and was reset; the other never got there.
  EXPECT_EQ(ends.size(), 2u);
  for (const std::error_code& e : ends)
    EXPECT_TRUE(e == std::errc::connection_reset || e == std::errc::connection_refused)
        << e.message();
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, a_cancelled_accept_takes_no_connection) {
  io::listener l = co_await io::listen();
  EXPECT_FALSE(co_await ends_within(1s, [&] { return l.accept(); }));
  io::socket c = co_await io::connect("main", l.port());
  io::socket s = co_await l.accept();
  co_await c.write_all("x");
  EXPECT_EQ(co_await read_next(s, 4096), "x");
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, a_hangup_is_seen_by_those_who_do_not_read) {
  auto [c, s] = co_await connected_pair();
  co_await c.write_all("unread");
  EXPECT_FALSE(co_await ends_within(1s, [&] { return s.hangup(); }));
  c.close();
  co_await s.hangup();
  EXPECT_EQ(co_await read_all(s), "unread");
}

FIBER_TEST_IN_EVERY_ORDER(sim_socket, paths_are_shared_by_the_loops_of_a_world) {
  EXPECT_EQ(co_await code_after([] { return io::connect_unix("/run/x"); }),
            std::errc::no_such_file_or_directory);
  co_await against(
      w,
      []() -> task<> {
        io::listener l = co_await io::listen_unix("/run/x");
        EXPECT_EQ(l.local().str(), "/run/x");
        EXPECT_EQ(co_await code_after([] { return io::listen_unix("/run/x"); }),
                  std::errc::address_in_use);
        io::socket s = co_await l.accept();
        EXPECT_EQ(s.peer().str(), "unix");
        co_await s.write_all(co_await read_all(s));
      },
      []() -> task<> {
        io::socket c = co_await io::connect_unix("/run/x");
        EXPECT_EQ(c.peer().str(), "/run/x");
        co_await c.write_all("by path");
        c.shutdown_write();
        EXPECT_EQ(co_await read_all(c), "by path");
      });
  EXPECT_EQ(co_await code_after([] { return io::connect_unix("/run/x"); }),
            std::errc::no_such_file_or_directory);
}

TEST(sim_socket, a_read_that_nothing_can_answer_is_a_deadlock) {
  const auto error = thrown_by([] {
    sim::run({}, []() -> task<> {
      io::listener l = co_await io::listen({.port = service});
      io::socket c = co_await io::connect("main", service);
      io::socket s = co_await l.accept();
      (void)co_await read_next(s, 4096);
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "read_some on socket main:")) << what_of(error);
}

TEST(sim_socket, a_socket_outlives_its_loop_and_belongs_to_the_next) {
  io::listener l;
  io::socket c, s;
  sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    l = co_await io::listen({.port = service});
    c = co_await io::connect("main", service);
    s = co_await l.accept();
    co_await c.write_all("first");
  });
  w.run([&]() -> task<> {
    EXPECT_EQ(co_await read_n(s, 5), "first");
    auto write = [&]() -> task<> {
      co_await weir::sleep(1s);
      co_await c.write_all("second");
      c = co_await io::connect("127.0.0.1", service);
    };
    co_await weir::with_scope([&](weir::scope& scope) -> task<> {
      scope.spawn(write());
      EXPECT_EQ(co_await read_n(s, 6), "second");
      s = co_await l.accept();
    });
  });
  c.close();  // outside of all loops
  w.run([&]() -> task<> { EXPECT_EQ(co_await read_all(s), ""); });
}

TEST(sim_socket, a_socket_outlives_its_world_and_is_closed) {
  io::listener l;
  io::socket c, s;
  {
    sim::world w({.seed = 1});
    w.run([&]() -> task<> {
      l = co_await io::listen({.port = service});
      c = co_await io::connect("main", service);
      s = co_await l.accept();
      co_await c.write_all("unread");
    });
  }
  weir::run([&]() -> task<> {
    EXPECT_EQ(co_await code_after([&] { return read_next(s, 10); }), weir::errc::closed);
    EXPECT_EQ(co_await code_after([&] { return c.write_all("x"); }), weir::errc::closed);
    EXPECT_EQ(co_await code_after([&] { return l.accept(); }), weir::errc::closed);
  });
}

TEST(sim_socket, a_socket_outside_of_a_loop_that_crashes_is_closed) {
  io::listener l;
  io::socket c, s;
  sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    co_await weir::on(w.loop("server"),
                      [&]() -> task<> { l = co_await io::listen({.port = service}); });
    c = co_await io::connect("server", service);
    co_await weir::on(w.loop("server"), [&]() -> task<> { s = co_await l.accept(); });
    w.crash("server");
    EXPECT_EQ(co_await code_after([&] { return read_next(c, 10); }), std::errc::connection_reset);
    EXPECT_EQ(co_await code_after([&] { return read_next(s, 10); }), weir::errc::closed);
    EXPECT_EQ(co_await code_after([&] { return l.accept(); }), weir::errc::closed);
  });
}

TEST(sim_socket, a_named_loop_keeps_its_connections_from_one_run_to_the_next) {
  sim::world w({.seed = 1});
  std::optional<io::socket> s;
  w.run([&]() -> task<> {
    co_await weir::on(w.loop("server"), [&]() -> task<> {
      io::listener l = co_await io::listen({.port = service});
      io::socket c = co_await io::connect("server", service);
      co_await c.write_all("kept");
      s = co_await l.accept();
      c.shutdown_write();
      EXPECT_EQ(co_await read_n(*s, 2), "ke");
      co_await s->write_all("unread");
    });
  });
  w.run([&]() -> task<> {
    co_await weir::on(w.loop("server"), [&]() -> task<> {
      EXPECT_EQ(co_await read_n(*s, 2), "pt");
      s.reset();
      co_return;
    });
  });
}
