// SPDX-License-Identifier: MIT
// Datagrams on a simulated network, with and without faults.
#include <map>
#include <set>

#include "network_support.hpp"

using namespace weir_test;

namespace {

io::endpoint server_port() { return io::endpoint::of_loop("server", service); }

task<> answer_datagrams() {
  auto u = co_await io::udp::bind({.port = service});
  std::string text(100, '\0');
  for (;;) {
    const io::received r = co_await u.receive_from(bytes_of(text));
    co_await u.send_to(std::string_view(text).substr(0, r.size), r.from);
  }
}

task<std::string> next_letter(io::udp& u) {
  std::string text(100, '\0');
  const io::received r = co_await u.receive_from(bytes_of(text));
  text.resize(r.size);
  co_return text;
}

/// Sends the numbers below `n` to itself and says which came, and how often, within a second.
task<std::map<std::string, int>> arrivals(int n) {
  auto u = co_await io::udp::bind();
  for (int i = 0; i < n; ++i) {
    co_await u.send_to(std::to_string(i), u.local());
    co_await weir::yield();
  }
  std::map<std::string, int> seen;
  for (;;) {
    auto next = co_await weir::settle(weir::with_timeout(1s, next_letter(u)));
    if (!next.is_value()) co_return seen;
    seen[next.value()] += 1;
  }
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(sim_udp, a_datagram_reaches_another_loop_and_its_answer_comes_back) {
  co_await against(
      w, [] { return answer_datagrams(); },
      [&]() -> task<> {
        auto u = co_await io::udp::bind();
        EXPECT_EQ(u.native_handle(), -1);
        EXPECT_EQ(u.local().address(), "main");
        co_await u.send_to("ping", server_port());
        std::string text(3, '\0');
        const io::received r = co_await u.receive_from(bytes_of(text));
        EXPECT_EQ(text, "pin");
        EXPECT_TRUE(r.truncated);
        EXPECT_EQ(r.from.str(), "server:80");
        co_await u.send_to("", server_port());
        EXPECT_EQ(co_await next_letter(u), "");
        co_await u.send_to("to itself", io::endpoint("127.0.0.1", u.port()));
        EXPECT_EQ(co_await next_letter(u), "to itself");
      });
}

FIBER_TEST(sim_udp, what_cannot_be_bound_or_sent_is_refused) {
  auto u = co_await io::udp::bind({.port = service});
  EXPECT_EQ(co_await code_after([] { return io::udp::bind({.port = service}); }),
            std::errc::address_in_use);
  io::listener l = co_await io::listen({.port = service});  // not the same ports
  EXPECT_EQ(co_await code_after([&] { return u.send_to("x", io::endpoint("1.2.3.4", 9)); }),
            errc::invalid_argument);
  EXPECT_EQ(co_await code_after([&] { return u.send_to("x", io::endpoint::of_loop("no", 9)); }),
            errc::invalid_argument);
  EXPECT_EQ(co_await code_after([&] { return u.send_to("x", io::endpoint::of_loop("main", 0)); }),
            errc::invalid_argument);
  EXPECT_EQ(co_await code_after([&] { return u.send_to(std::string(65'508, 'x'), u.local()); }),
            std::errc::message_size);
  co_await u.send_to("x", io::endpoint::of_loop("main", 9));  // nobody is there: lost
  u.close();
  auto again = co_await io::udp::bind({.port = service});
  EXPECT_EQ(again.port(), service);
}

FIBER_TEST(sim_udp, latency_delays_each_datagram) {
  w.network().set({.latency = 20ms});
  auto u = co_await io::udp::bind();
  const weir::time_point start = weir::now();
  co_await u.send_to("x", u.local());
  EXPECT_EQ(ms_since(start), 0);
  EXPECT_EQ(co_await next_letter(u), "x");
  EXPECT_EQ(ms_since(start), 20);
}

FIBER_TEST(sim_udp, without_faults_all_come_once_and_in_order) {
  auto u = co_await io::udp::bind();
  for (int i = 0; i < 50; ++i) co_await u.send_to(std::to_string(i), u.local());
  for (int i = 0; i < 50; ++i) EXPECT_EQ(co_await next_letter(u), std::to_string(i));
}

TEST(sim_udp, loss_loses_duplicate_doubles_and_jitter_reorders) {
  int lost = 0;
  int doubled = 0;
  bool reordered = false;
  for_each_order([&](sim::world& w) {
    w.run([&]() -> task<> {
      w.network().set({.loss = 0.5});
      const auto some = co_await arrivals(40);
      for (const auto& [text, times] : some) EXPECT_EQ(times, 1);
      lost += 40 - static_cast<int>(some.size());
      w.network().set({.duplicate = 0.5});
      const auto all = co_await arrivals(40);
      EXPECT_EQ(all.size(), 40U);
      for (const auto& [text, times] : all) {
        EXPECT_TRUE(times == 1 || times == 2);
        doubled += times - 1;
      }
      w.network().set({.latency = 1ms, .jitter = 50ms});
      auto u = co_await io::udp::bind();
      for (int i = 0; i < 10; ++i) co_await u.send_to(std::to_string(i), u.local());
      std::string order;
      for (int i = 0; i < 10; ++i) order += co_await next_letter(u);
      reordered = reordered || order != "0123456789";
    });
  });
  EXPECT_GT(lost, 0);
  EXPECT_GT(doubled, 0);
  EXPECT_TRUE(reordered);
}

FIBER_TEST(sim_udp, a_partition_loses_what_is_sent_and_what_is_under_way) {
  w.network().set({.latency = 10ms});
  co_await against(
      w, [] { return answer_datagrams(); },
      [&]() -> task<> {
        auto u = co_await io::udp::bind();
        co_await u.send_to("under way", server_port());
        w.network().partition("main", "server");
        co_await u.send_to("sent", server_port());
        co_await weir::sleep(1s);
        w.network().heal();
        co_await u.send_to("after", server_port());
        EXPECT_EQ(co_await next_letter(u), "after");
      });
}

FIBER_TEST(sim_udp, one_that_does_not_receive_loses_what_is_beyond_its_buffer) {
  auto u = co_await io::udp::bind();
  const std::string big(1024, 'x');
  for (int i = 0; i < 100; ++i) co_await u.send_to(big, u.local());
  int kept = 0;
  std::string room(1024, '\0');
  while (co_await ends_within(1s, [&] { return u.receive_from(bytes_of(room)); })) ++kept;
  EXPECT_EQ(kept, 64);
}

FIBER_TEST(sim_udp, a_crash_frees_the_port_and_nobody_is_told) {
  auto u = co_await io::udp::bind();
  weir::loop_ref server = w.loop("server");
  co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
    auto first = s.spawn_on(server, [] { return answer_datagrams(); });
    co_await weir::sleep(1s);
    co_await u.send_to("one", server_port());
    EXPECT_EQ(co_await next_letter(u), "one");
    w.crash("server");
    co_await u.send_to("lost", server_port());
    EXPECT_EQ(code_of(co_await error_of(std::move(first))), errc::loop_gone);
  });
  EXPECT_FALSE(co_await ends_within(1s, [&] { return next_letter(u); }));
}

FIBER_TEST_IN_EVERY_ORDER(sim_udp, a_receive_that_loses_a_race_takes_nothing) {
  w.network().set({.jitter = 2ms});
  auto u = co_await io::udp::bind();
  co_await u.send_to("kept", u.local());
  std::string room(10, '\0');
  int rounds = 0;
  for (; rounds < 10; ++rounds) {
    auto won = co_await weir::race(weir::sleep(1ms), u.receive_from(bytes_of(room)));
    if (won.index() == 1) break;
  }
  EXPECT_LT(rounds, 10);
  EXPECT_EQ(room.substr(0, 4), "kept");
}
