// SPDX-License-Identifier: MIT
// What the tests of sockets on a simulated network share: a client in `main` against a server on
// another loop.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "io_support.hpp"

namespace weir_test {

namespace sim = weir::sim;

constexpr int service = 80;

/// Bytes that are different from each other, so that a lost or repeated one is seen.
inline std::string pattern(std::size_t n, unsigned seed = 0) {
  std::string text(n, '\0');
  for (std::size_t i = 0; i < n; ++i)
    text[i] = static_cast<char>('a' + (i * 7 + i / 251 + seed) % 26);
  return text;
}

inline task<> echo_back(io::socket& c) {
  std::array<std::byte, 512> buffer;
  while (const std::size_t n = co_await c.read_some(buffer))
    co_await c.write_all(std::span(buffer).first(n));
}

inline task<> echo_server(int port = service) {
  io::listener l = co_await io::listen({.port = port});
  co_await io::serve(l, echo_back, {.drain = 0ms});
}

/// Whether the wait or task that `make()` makes ends within `d`.
template <class F>
task<bool> ends_within(weir::duration d, F make) {
  try {
    (void)co_await weir::with_timeout(d, make());
  } catch (const weir::timeout_error&) {
    co_return false;
  }
  co_return true;
}

/// Runs `server`, a task<> made by a call, on loop "server" while `client` runs here; ends it then.
template <class Server, class Client>
task<> against(sim::world& w, Server server, Client client) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("server"), server, {.name = "server"});
    co_await weir::sleep(1s);  // virtual: it listens then
    co_await client();
    s.cancel();
  });
}

}  // namespace weir_test
