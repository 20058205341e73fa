// SPDX-License-Identifier: MIT
// A flood of datagrams from another thread.
#include <atomic>
#include <thread>

#include "io_support.hpp"

using namespace weir_test;

TEST(udp_threads, a_flood_starves_no_other_fiber_and_no_timer) {
  auto program = []() -> task<> {
    auto u = co_await io::udp::bind();
    std::atomic<bool> stop{false};
    const int port = u.port();
    std::thread flood([&stop, port] {
      const int number = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_port = htons(static_cast<std::uint16_t>(port));
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      while (!stop) ::sendto(number, "f", 1, 0, reinterpret_cast<sockaddr*>(&at), sizeof at);
      ::close(number);
    });
    int ticks = 0;
    std::size_t received = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto drain = [&]() -> task<> {
        std::array<std::byte, 8> room;
        for (;;) {
          co_await u.receive_from(room);
          ++received;
        }
      };
      s.background(drain);
      co_await wait_until([&] { return received > 100; });
      for (; ticks < 50; ++ticks) co_await weir::sleep(1ms);
    });
    stop = true;
    flood.join();
    EXPECT_EQ(ticks, 50);
    EXPECT_GT(received, 100U);
  };
  weir::run(program);
}

TEST(udp_threads, two_loops_exchange_datagrams) {
  auto program = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::loop_thread other(s);
      auto here = co_await io::udp::bind();
      const io::endpoint to = here.local();
      auto sends = [to]() -> task<std::string> {
        auto u = co_await io::udp::bind();
        co_await u.send_to("ping", to);
        std::string text(10, '\0');
        const io::received r = co_await u.receive_from(bytes_of(text));
        co_return text.substr(0, r.size);
      };
      auto answer = s.spawn_on(other, sends);
      std::array<std::byte, 8> room;
      const io::received r = co_await here.receive_from(room);
      co_await here.send_to(std::span(room).first(r.size), r.from);
      EXPECT_EQ(co_await answer, "ping");
    });
  };
  weir::run(program);
}
