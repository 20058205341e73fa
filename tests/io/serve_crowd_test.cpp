// SPDX-License-Identifier: MIT
// Many connections: at once, where most are idle, and one after the other. The clients are a
// process of their own, so that each side has all descriptors that the system allows.
#include <weir/http/serve.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <functional>
#include <iostream>

#include "io_support.hpp"

using namespace weir_test;
namespace http = weir::http;

namespace {

/// Raises the limit of descriptors as far as the system allows; returns it.
std::size_t raised_descriptor_limit() {
  rlimit limits{};
  ::getrlimit(RLIMIT_NOFILE, &limits);
  limits.rlim_cur = limits.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limits);
  ::getrlimit(RLIMIT_NOFILE, &limits);
  return static_cast<std::size_t>(limits.rlim_cur);
}

std::size_t resident_bytes() {
  std::size_t total = 0;
  std::size_t resident = 0;
  FILE* statm = std::fopen("/proc/self/statm", "r");
  if (statm == nullptr || std::fscanf(statm, "%zu %zu", &total, &resident) != 2) resident = 0;
  if (statm != nullptr) std::fclose(statm);
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// A child process that runs `clients(port)` once it was told the port, answers whether that went
/// well, and keeps what the clients hold until it is ended. It makes system calls only.
class client_process {
 public:
  explicit client_process(const std::function<bool(int)>& clients) {
    if (::pipe2(orders_.data(), O_CLOEXEC) != 0 || ::pipe2(answers_.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) run(clients);
    ::close(std::exchange(orders_[0], -1));
    ::close(std::exchange(answers_[1], -1));
  }
  client_process(const client_process&) = delete;
  client_process& operator=(const client_process&) = delete;
  ~client_process() { end(); }

  void begin(int port) const { EXPECT_EQ(::write(orders_[1], &port, sizeof port), sizeof port); }
  task<bool> went_well() {
    co_await weir::readable(answers_[0]);
    char good = 0;
    co_return ::read(answers_[0], &good, 1) == 1 && good == 1;
  }
  void end() {
    for (int* number : {&orders_[0], &orders_[1], &answers_[0], &answers_[1]})
      if (*number >= 0) ::close(std::exchange(*number, -1));
    if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  [[noreturn]] void run(const std::function<bool(int)>& clients) const {
    ::close(orders_[1]);
    int port = 0;
    if (::read(orders_[0], &port, sizeof port) != sizeof port) ::_exit(1);
    const char good = clients(port) ? 1 : 0;
    if (::write(answers_[1], &good, 1) != 1) ::_exit(1);
    char none = 0;
    while (::read(orders_[0], &none, 1) > 0) continue;
    ::_exit(0);
  }

  std::array<int, 2> orders_{-1, -1};
  std::array<int, 2> answers_{-1, -1};
  pid_t pid_ = -1;
};

/// A connection to 127.0.0.`host`; -1 if it was refused.
int dial_host(int host, int port) {
  const int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  at.sin_addr.s_addr = htonl((127U << 24) + static_cast<unsigned>(host));
  if (::connect(number, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) return number;
  ::close(number);
  return -1;
}

bool send_text(int number, std::string_view text) {
  return ::send(number, text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

bool receives(int number, std::string_view wanted) {
  char got[512];
  const ssize_t n = ::recv(number, got, sizeof got, 0);
  return n >= 0 && std::string_view(got, static_cast<std::size_t>(n)).starts_with(wanted);
}

/// Idle connections: each was answered once before.
bool hold_connections(int port, std::size_t count) {
  constexpr std::string_view ask = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  static std::array<int, 10'000> all;
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = dial_host(1 + static_cast<int>(i % 4), port);
    if (all[i] < 0 || !send_text(all[i], ask) || !receives(all[i], "HTTP/1.1 200")) return false;
  }
  // They are still served, the oldest and the newest.
  for (const std::size_t i : {std::size_t{0}, count / 2, count - 1})
    if (!send_text(all[i], ask) || !receives(all[i], "HTTP/1.1 200")) return false;
  return true;
}

/// Short connections, ended in turn by the client, by a reset and by the server.
bool connect_and_leave(int port, int count) {
  for (int i = 0; i < count; ++i) {
    const int c = dial_host(1 + i % 16, port);
    if (c < 0 || !send_text(c, i % 3 == 2 ? "end" : "hello")) return false;
    if (i % 3 != 1 && !receives(c, i % 3 == 2 ? "" : "hello")) return false;
    if (i % 3 == 1) {
      const linger now{1, 0};
      ::setsockopt(c, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    ::close(c);
  }
  return true;
}

}  // namespace

TEST(crowd, ten_thousand_idle_connections_on_one_loop) {
  const std::size_t limit = raised_descriptor_limit();
  constexpr std::size_t wanted = sanitized ? 1'000 : 10'000;
  if (limit < wanted + 100)
    GTEST_SKIP() << "the system allows " << limit << " descriptors, not " << wanted + 100;
  client_process clients([](int port) { return hold_connections(port, wanted); });
  const std::size_t before = open_descriptors();
  auto handler = [](http::request&) -> task<http::response> {
    co_return http::response(200, "ok");
  };
  weir::run([&]() -> task<> {
    auto l = co_await io::listen({.address = "0.0.0.0"});
    auto inside = [&](weir::scope& s) -> task<> {
      s.background(http::serve(l, handler, {.drain = 10s}));
      for (int i = 0; i < 10; ++i) co_await weir::yield();  // it accepts
      const std::int64_t fibers = weir::live().fibers;
      const std::size_t memory = resident_bytes();
      clients.begin(l.port());
      const bool well = co_await clients.went_well();
      EXPECT_TRUE(well);
      EXPECT_GE(open_descriptors(), before + wanted);
      EXPECT_EQ(weir::live().fibers, fibers + static_cast<std::int64_t>(wanted));
      const std::size_t each = (resident_bytes() - memory) / wanted;
      ::testing::Test::RecordProperty("bytes_per_connection", static_cast<int>(each));
      std::cout << wanted << " idle connections, " << each << " bytes each\n";
#if defined(__OPTIMIZE__)
      if (!sanitized) {
        EXPECT_LT(each, 3'000U);
      }
#endif
    };
    co_await weir::with_scope(inside);  // its end drains: idle connections are closed at once
    clients.end();
  });
  EXPECT_LE(open_descriptors(), before);
}

TEST(crowd, fifty_thousand_short_connections_leave_no_descriptor_and_no_fiber) {
  constexpr int count = sanitized ? 3'000 : 50'000;
  client_process clients([](int port) { return connect_and_leave(port, count); });
  auto handler = [](io::socket& c) -> task<> {
    std::array<std::byte, 64> buffer;
    for (;;) {
      const std::size_t n = co_await c.read_some(buffer);
      if (n == 0 || buffer[0] == std::byte{'e'}) co_return;
      co_await c.write_all(std::span(buffer).first(n));
    }
  };
  const std::size_t before = open_descriptors();
  weir::run([&]() -> task<> {
    auto l = co_await io::listen({.address = "0.0.0.0"});
    auto inside = [&](weir::scope& s) -> task<> {
      s.background(io::serve(l, handler));
      for (int i = 0; i < 10; ++i) co_await weir::yield();  // it accepts
      const auto idle = weir::live();
      clients.begin(l.port());
      const bool well = co_await clients.went_well();
      EXPECT_TRUE(well);
      // The last ones end when the loop has seen the ends of their clients.
      while (weir::live().fibers > idle.fibers) co_await weir::yield();
      EXPECT_EQ(weir::live().scopes, idle.scopes);
      EXPECT_EQ(weir::live().timers, idle.timers);
      clients.end();
      EXPECT_LE(open_descriptors(), before + 4);  // the listener, the loop's two, and /proc
    };
    co_await weir::with_scope(inside);
  });
  EXPECT_LE(open_descriptors(), before);
}
