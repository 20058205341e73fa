// SPDX-License-Identifier: MIT
// connect to a host with two addresses: the resolver is replaced in this program.
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>

#include <atomic>

#include "io_support.hpp"

using namespace weir_test;

namespace {

constexpr const char* host_of_two = "two.test";      // ::1, then 127.0.0.1
constexpr const char* host_of_later = "later.test";  // the resolver cannot be asked now

std::atomic<int> lookups{0};

/// The addresses of `host_of_two`.
struct two_addresses {
  two_addresses() {
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_loopback;
    four.sin_family = AF_INET;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    first.ai_family = AF_INET6;
    first.ai_addrlen = sizeof six;
    first.ai_addr = reinterpret_cast<sockaddr*>(&six);
    first.ai_next = &second;
    second.ai_family = AF_INET;
    second.ai_addrlen = sizeof four;
    second.ai_addr = reinterpret_cast<sockaddr*>(&four);
  }
  sockaddr_in6 six{};
  sockaddr_in four{};
  addrinfo first{};
  addrinfo second{};
};
two_addresses both;

}  // namespace

extern "C" {

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  ++lookups;
  if (std::string_view(host) == host_of_later) return EAI_AGAIN;
  if (std::string_view(host) != host_of_two) return real(host, service, hints, found);
  *found = &both.first;
  return 0;
}

void freeaddrinfo(addrinfo* list) noexcept {
  using function = void (*)(addrinfo*);
  static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "freeaddrinfo"));
  if (list != &both.first) real(list);
}

}  // extern "C"

namespace {

/// Listens on ::1 with a full queue, so that connects are dropped silently.
struct silent_listener {
  io::listener l;
  std::vector<plain_socket> waiting;

  void fill() {
    for (bool full = false; !full && waiting.size() < 100;) {
      waiting.emplace_back(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      sockaddr_in6 at = both.six;
      at.sin6_port = htons(static_cast<std::uint16_t>(l.port()));
      const int number = waiting.back().number();
      ::connect(number, reinterpret_cast<sockaddr*>(&at), sizeof at);
      pollfd asked{number, POLLOUT, 0};
      full = ::poll(&asked, 1, 0) == 0;  // a connection within a machine is made at once
    }
  }
};

}  // namespace

TEST(connect, the_next_address_is_tried_after_a_delay_if_the_first_is_silent) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    silent_listener silent;
    silent.l = co_await io::listen({.address = "::1", .port = l.port(), .backlog = 1});
    silent.fill();
    auto first = co_await io::connect(host_of_two, l.port(), {.attempt_delay = 1ms});
    EXPECT_EQ(first.peer().address(), "127.0.0.1");
    const std::size_t before = open_descriptors();  // the loop has its reactor now
    auto c = co_await io::connect(host_of_two, l.port(), {.attempt_delay = 1ms});
    EXPECT_EQ(open_descriptors(), before + 1) << "the attempt that lost is closed";
  };
  weir::run(program);
}

TEST(connect, the_next_address_is_tried_at_once_if_the_first_refuses) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    auto c = co_await io::connect(host_of_two, l.port(), {.attempt_delay = 24h});
    EXPECT_EQ(c.peer().address(), "127.0.0.1");
    const int port = l.port();
    l.close();
    const std::exception_ptr error =
        co_await attempt([&] { return io::connect(host_of_two, port); });
    EXPECT_EQ(code_of(error), std::errc::connection_refused);
    EXPECT_TRUE(contains(what_of(error), "[::1]:")) << what_of(error);
    EXPECT_TRUE(contains(what_of(error), "127.0.0.1:")) << what_of(error);
  };
  weir::run(program);
}

TEST(connect, the_first_address_that_answers_wins_and_the_others_are_not_tried) {
  auto program = []() -> task<> {
    auto l = co_await io::listen({.address = "::1"});
    auto c = co_await io::connect(host_of_two, l.port(), {.attempt_delay = 24h});
    EXPECT_EQ(c.peer().address(), "::1");
  };
  weir::run(program);
}

TEST(connect, a_numeric_host_does_not_reach_the_resolver) {
  auto program = []() -> task<> {
    auto l = co_await io::listen({.address = "::"});
    const int before = lookups;
    auto four = co_await io::connect("127.0.0.1", l.port());
    auto six = co_await io::connect("::1", l.port());
    auto brackets = co_await io::connect("[::1]", l.port());
    EXPECT_EQ(lookups, before);
  };
  weir::run(program);
}

TEST(connect, a_host_that_is_not_found_for_now_is_transient) {
  auto program = []() -> task<> {
    const auto later = co_await attempt([] { return io::connect(host_of_later, 1); });
    EXPECT_EQ(code_of(later), errc::host_not_found);
    EXPECT_TRUE(weir::http::is_transient(later));
  };
  weir::run(program);
}
