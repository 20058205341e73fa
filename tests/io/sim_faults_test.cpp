// SPDX-License-Identifier: MIT
// Sockets on a simulated network with faults: whatever the network does, what is written arrives,
// in order and once, or both sides are told.
#include <vector>

#include "network_support.hpp"

using namespace weir_test;

namespace {

/// Sends `text` in pieces of random lengths, and the end after it.
task<> send_in_pieces(io::socket& to, std::string text) {
  std::string_view left = text;
  while (!left.empty()) {
    const std::size_t n = std::min<std::size_t>(left.size(), 1 + weir::random() % 2000);
    co_await to.write_all(left.substr(0, n));
    left.remove_prefix(n);
    if (weir::random() % 4 == 0) co_await weir::sleep(1ms);
  }
  to.shutdown_write();
}

/// Both ends send, and get what the other has sent.
task<> exchange(io::socket& s, std::string out, std::string in) {
  co_await weir::with_scope([&](weir::scope& both) -> task<> {
    both.spawn(send_in_pieces(s, std::move(out)), {.name = "sends"});
    const std::string got = co_await read_all(s);
    EXPECT_EQ(got.size(), in.size());
    EXPECT_TRUE(got == in);
  });
}

/// `clients` connections at once, each with a text of its own in both directions.
task<> conversation(sim::world& w, unsigned clients, std::size_t size) {
  auto serve_one = [size](io::socket& s) -> task<> {
    const std::string who = co_await read_n(s, 1);
    const auto number = static_cast<unsigned>(who[0] - '0');
    co_await exchange(s, pattern(size, 10 + number), pattern(size, number));
  };
  auto server = [&]() -> task<> {
    io::listener l = co_await io::listen({.port = service});
    co_await io::serve(l, serve_one, {.drain = 0ms});
  };
  auto client = [size](unsigned number) -> task<> {
    io::socket c = co_await io::connect("server", service);
    const char who = static_cast<char>('0' + number);
    co_await c.write_all(std::string_view(&who, 1));
    co_await exchange(c, pattern(size, number), pattern(size, 10 + number));
  };
  auto all = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (unsigned i = 0; i < clients; ++i) s.spawn(client(i));
      co_await s.join();
    });
  };
  co_await against(w, server, all);
}

task<weir::duration> round_trip(sim::world& w) {
  weir::duration took{};
  co_await against(
      w, [] { return echo_server(); },
      [&]() -> task<> {
        io::socket c = co_await io::connect("server", service);
        const weir::time_point start = weir::now();
        co_await c.write_all("ping");
        EXPECT_EQ(co_await read_n(c, 4), "ping");
        took = weir::now() - start;
      });
  co_return took;
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(sim_faults, what_is_written_arrives_in_order_and_once) {
  co_await conversation(w, 2, 5000);
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, delays_and_losses_lose_and_reorder_nothing) {
  w.network().set({.latency = 20ms, .jitter = 30ms, .loss = 0.1});
  co_await conversation(w, 2, 5000);
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_partition_delays_and_resets_nothing) {
  w.network().set({.latency = 2ms, .jitter = 2ms});
  auto trouble = [&]() -> task<> {
    w.loop("server");
    for (;;) {
      co_await weir::sleep(std::chrono::milliseconds(weir::random() % 20));
      w.network().partition("main", "server");
      co_await weir::sleep(1s);
      w.network().heal();
    }
  };
  co_await weir::race(conversation(w, 2, 3000), trouble());
}

TEST(sim_faults, a_run_depends_on_its_seed_only) {
  auto trace_of = [](std::uint64_t seed, sim::strategy strategy) {
    std::string log;
    sim::run({.seed = seed, .strategy = strategy}, [&](sim::world& w) -> task<> {
      w.network().set({.latency = 5ms, .jitter = 50ms, .loss = 0.2});
      const weir::time_point start = weir::now();
      co_await conversation(w, 3, 3000);
      log = std::to_string((weir::now() - start).count());
    });
    return log;
  };
  for (const sim::strategy strategy : {sim::fifo, sim::random, sim::pct(3)})
    for (std::uint64_t seed = 1; seed < 4; ++seed)
      EXPECT_EQ(trace_of(seed, strategy), trace_of(seed, strategy));
  EXPECT_NE(trace_of(1, sim::fifo), trace_of(2, sim::fifo));
}

TEST(sim_faults, two_runs_of_one_seed_make_the_same_choices) {
  // Every run is made twice, and their traces are compared.
  const auto report = sim::explore({.runs = 30, .strategy = sim::random, .check_every = 1},
                                   [](sim::world& w) -> task<> {
                                     w.network().set({.latency = 5ms, .jitter = 50ms, .loss = 0.2});
                                     co_await conversation(w, 2, 2000);
                                   });
  EXPECT_TRUE(report.ok()) << report;
}

FIBER_TEST(sim_faults, latency_is_virtual_time_for_each_piece) {
  EXPECT_EQ(co_await round_trip(w), 0ms);
  w.network().set({.latency = 50ms});
  EXPECT_EQ(co_await round_trip(w), 100ms);
  const weir::time_point start = weir::now();
  io::listener l = co_await io::listen();
  io::socket c = co_await io::connect("main", l.port());
  EXPECT_EQ(weir::now() - start, 100ms);
  EXPECT_EQ(co_await code_after([] { return io::connect("main", 1); }),
            std::errc::connection_refused);
  EXPECT_EQ(weir::now() - start, 200ms);
}

TEST(sim_faults, jitter_delays_by_up_to_its_length) {
  weir::duration least = 1h;
  weir::duration most{};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    sim::run({.seed = seed}, [&](sim::world& w) -> task<> {
      w.network().set({.latency = 10ms, .jitter = 10ms});
      const weir::duration took = co_await round_trip(w);
      least = std::min(least, took);
      most = std::max(most, took);
    });
  }
  EXPECT_GE(least, 20ms);
  EXPECT_LT(least, 27ms);
  EXPECT_GT(most, 33ms);
  EXPECT_LE(most, 40ms);
}

FIBER_TEST(sim_faults, a_lost_piece_comes_200_ms_later_and_what_follows_waits_for_it) {
  auto [c, s] = co_await connected_pair();
  const weir::time_point start = weir::now();
  w.network().set({.latency = 10ms, .loss = 1});
  co_await c.write_all("a");
  w.network().set({.latency = 10ms});
  co_await c.write_all("b");
  EXPECT_EQ(co_await read_n(s, 1), "a");
  EXPECT_EQ(weir::now() - start, 210ms);
  EXPECT_EQ(co_await read_n(s, 1), "b");
  EXPECT_EQ(weir::now() - start, 210ms);
}

FIBER_TEST(sim_faults, room_to_write_comes_back_with_latency) {
  constexpr std::size_t window = 64 * 1024;
  auto [c, s] = co_await connected_pair();
  w.network().set({.latency = 50ms});
  co_await c.write_all(pattern(window));
  const weir::time_point start = weir::now();
  (void)co_await read_n(s, 1000);
  EXPECT_EQ(weir::now() - start, 50ms);
  co_await c.write_all("more");
  EXPECT_EQ(weir::now() - start, 100ms);
}

TEST(sim_faults, reads_are_short_at_random) {
  int shorter = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    sim::run({.seed = seed}, [&]() -> task<> {
      auto [c, s] = co_await connected_pair();
      co_await c.write_all("0123456789");
      const std::string got = co_await read_next(s, 4096);
      EXPECT_GE(got.size(), 1u);
      shorter += got.size() < 10 ? 1 : 0;
    });
  }
  EXPECT_GT(shorter, 5);
  EXPECT_LT(shorter, 95);
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_partition_holds_connects_and_bytes_until_it_heals) {
  w.loop("server");
  w.network().partition("server", "main");
  const weir::time_point start = weir::now();
  std::string got;
  auto heal = [&]() -> task<> {
    co_await weir::sleep(1h);
    w.network().heal();
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("server"), [] { return echo_server(); });
    s.spawn(heal());
    io::socket c = co_await io::connect("server", service);
    EXPECT_EQ(weir::now() - start, 1h);
    co_await c.write_all("a");
    EXPECT_EQ(co_await read_n(c, 1), "a");
    w.network().partition("main", "server");
    co_await c.write_all("b");
    EXPECT_FALSE(co_await ends_within(24h, [&] { return read_n(c, 1); }));
    w.network().heal();
    EXPECT_EQ(co_await read_n(c, 1), "b");
    s.cancel();
  });
}

FIBER_TEST(sim_faults, what_was_held_is_sent_on_its_way_again_in_order) {
  std::string seen;
  auto server = [&]() -> task<> {
    io::listener l = co_await io::listen({.port = service});
    io::socket s = co_await l.accept();
    for (;;) seen += co_await read_next(s, 1);
  };
  co_await against(w, server, [&]() -> task<> {
    io::socket c = co_await io::connect("server", service);
    w.network().set({.latency = 100ms});
    co_await c.write_all("1");  // under way when the partition begins
    co_await weir::sleep(50ms);
    w.network().partition("main", "server");
    co_await c.write_all("2");
    co_await weir::sleep(1s);
    co_await c.write_all("3");
    co_await weir::sleep(90ms);
    EXPECT_EQ(seen, "");
    w.network().heal();
    co_await weir::sleep(50ms);
    EXPECT_EQ(seen, "") << "3 has waited for 1 and 2";
    co_await weir::sleep(51ms);
    EXPECT_EQ(seen, "123");
  });
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_partition_does_not_concern_others) {
  w.loop("far");
  w.loop("server");
  w.network().partition("main", "far");
  EXPECT_EQ(co_await round_trip(w), 0ms);
}

TEST(sim_faults, waiting_for_a_partition_that_nobody_heals_is_a_deadlock) {
  const auto error = thrown_by([] {
    sim::run({}, [](sim::world& w) -> task<> {
      w.loop("server");
      w.network().set({.latency = 10ms});
      w.network().partition("main", "server");
      co_await io::connect("server", service);
    });
  });
  EXPECT_EQ(code_of(error), weir::errc::deadlock);
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_reset_is_seen_at_both_ends_at_once) {
  w.network().set({.latency = 1h});
  std::error_code there;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("server"), [&]() -> task<> {
      io::listener l = co_await io::listen({.port = service});
      io::socket c = co_await l.accept();
      there = co_await code_after([&] { return read_next(c, 4096); });
    });
    co_await weir::sleep(1s);
    io::socket c = co_await io::connect("server", service);
    co_await c.write_all("lost");
    const weir::time_point start = weir::now();
    w.network().reset("server", "main");
    EXPECT_EQ(co_await code_after([&] { return read_next(c, 4096); }), std::errc::connection_reset);
    EXPECT_EQ(co_await code_after([&] { return c.write_all("x"); }), std::errc::connection_reset);
    co_await s.join();
    EXPECT_EQ(weir::now(), start);
  });
  EXPECT_EQ(there, std::errc::connection_reset);
}

FIBER_TEST(sim_faults, a_reset_ends_a_connect_that_is_under_way) {
  w.loop("server");
  w.network().set({.latency = 1s});
  auto reset = [&]() -> task<> {
    co_await weir::sleep(500ms);
    w.network().reset("main", "server");
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(reset());
    EXPECT_EQ(co_await code_after([] { return io::connect("server", service); }),
              std::errc::connection_reset);
  });
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_crash_resets_the_connections_of_its_loop) {
  w.network().set({.latency = 10ms});
  std::error_code read_error, after, again;
  auto server = [&]() -> task<> {
    (void)co_await code_after([&] { return weir::on(w.loop("server"), echo_server()); });
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(server());
    co_await weir::sleep(1s);
    io::socket c = co_await io::connect("server", service);
    co_await c.write_all("x");
    EXPECT_EQ(co_await read_n(c, 1), "x");
    w.crash("server");
    const weir::time_point start = weir::now();
    EXPECT_EQ(co_await code_after([&] { return read_next(c, 4096); }), std::errc::connection_reset);
    EXPECT_EQ(weir::now() - start, 10ms);
    EXPECT_EQ(co_await code_after([] { return io::connect("server", service); }),
              std::errc::connection_refused);
    s.spawn(server());
    co_await weir::sleep(1s);
    io::socket fresh = co_await io::connect("server", service);
    co_await fresh.write_all("y");
    EXPECT_EQ(co_await read_n(fresh, 1), "y");
    s.cancel();
  });
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_crash_of_the_client_resets_what_the_server_has_or_gets) {
  w.network().set({.latency = 10ms});
  std::vector<std::error_code> ends;
  auto server = [&]() -> task<> {
    io::listener l = co_await io::listen({.port = service});
    for (int i = 0; i < 2; ++i) {
      io::socket s = co_await l.accept();
      ends.push_back(co_await code_after([&] { return read_all(s); }));
    }
  };
  auto client = []() -> task<> {
    io::socket first = co_await io::connect("server", service);
    io::socket second = co_await io::connect("server", service);  // stays in the backlog
    co_await first.write_all("x");
    co_await io::connect("main", service);  // behind a partition
  };
  auto hosted = [&]() -> task<> {
    EXPECT_EQ(co_await code_after([&] { return weir::on(w.loop("client"), client()); }),
              weir::errc::loop_gone);
  };
  co_await against(w, server, [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      w.loop("client");
      w.network().partition("client", "main");
      s.spawn(hosted());
      co_await weir::sleep(1s);
      w.crash("client");
      co_await s.join();
    });
    co_await weir::sleep(1s);
  });
  EXPECT_EQ(ends.size(), 2u);
  for (const std::error_code& e : ends) EXPECT_EQ(e, std::errc::connection_reset);
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_crash_may_come_at_any_moment) {
  w.network().set({.latency = 3ms, .jitter = 3ms});
  auto server = [&]() -> task<> {
    for (;;) {
      (void)co_await code_after([&] { return weir::on(w.loop("server"), echo_server()); });
    }
  };
  auto crashes = [&]() -> task<> {
    for (int i = 0; i < 3; ++i) {
      co_await weir::sleep(std::chrono::milliseconds(5 + weir::random() % 20));
      w.crash("server");
    }
  };
  int done = 0;
  auto client = [&]() -> task<> {
    const std::string text = pattern(2000);
    while (done < 3) {
      const std::exception_ptr error = co_await attempt([&]() -> task<> {
        io::socket c = co_await io::connect("server", service);
        co_await c.write_all(text);
        EXPECT_EQ(co_await read_n(c, text.size()), text);
        ++done;
      });
      if (error == nullptr) continue;
      const std::error_code code = code_of(error);
      EXPECT_TRUE(code == std::errc::connection_reset || code == std::errc::connection_refused ||
                  code == weir::errc::end_of_stream)
          << what_of(error);
      co_await weir::sleep(10ms);
    }
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(server());
    s.spawn(crashes());
    co_await weir::sleep(1ms);
    co_await client();
    s.cancel();
  });
  EXPECT_EQ(done, 3);
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, the_path_of_a_crashed_listener_refuses_and_can_be_taken) {
  auto server = [&]() -> task<> {
    io::listener l = co_await io::listen_unix("/run/y");
    (void)co_await l.accept();
  };
  auto hosted = [&]() -> task<> {
    (void)co_await code_after([&] { return weir::on(w.loop("server"), server()); });
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(hosted());
    co_await weir::sleep(1s);
    w.crash("server");
    EXPECT_EQ(co_await code_after([] { return io::connect_unix("/run/y"); }),
              std::errc::connection_refused);
    s.spawn(hosted());
    co_await weir::sleep(1s);
    io::socket c = co_await io::connect_unix("/run/y");
    EXPECT_EQ(co_await read_all(c), "");
    s.cancel();
  });
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, a_paused_loop_answers_when_it_goes_on) {
  co_await against(
      w, [] { return echo_server(); },
      [&]() -> task<> {
        io::socket c = co_await io::connect("server", service);
        const weir::time_point start = weir::now();
        w.pause("server", 10s);
        co_await c.write_all("x");
        EXPECT_FALSE(co_await ends_within(9s, [&] { return read_n(c, 1); }));
        EXPECT_EQ(co_await read_n(c, 1), "x");
        EXPECT_EQ(weir::now() - start, 10s);
      });
}

FIBER_TEST_IN_EVERY_ORDER(sim_faults, bytes_that_come_with_a_timeout_win) {
  w.network().set({.latency = 50ms});
  auto [c, s] = co_await connected_pair();
  co_await c.write_all("x");
  EXPECT_TRUE(co_await ends_within(50ms, [&] { return read_n(s, 1); }));
}
