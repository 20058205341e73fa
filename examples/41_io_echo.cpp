// SPDX-License-Identifier: MIT
// An echo server and its clients: every connection is a scope, limited, and drained at the end.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <array>
#include <iostream>
#include <span>
#include <string>

using namespace std::chrono_literals;

weir::task<> echo(weir::io::socket& c) {
  std::array<std::byte, 4096> buffer;
  while (auto n = co_await c.read_some(buffer)) co_await c.write_all(std::span(buffer).first(n));
}

weir::task<std::string> ask(int port, std::string text) {
  auto c = co_await weir::io::connect("127.0.0.1", port);
  co_await c.write_all(text);
  co_return co_await c.read_until("\n", 1000);
}

weir::task<> program() {
  auto l = co_await weir::io::listen({.address = "127.0.0.1", .port = 0});
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto serve = [&]() -> weir::task<> {
      co_await weir::io::serve(l, echo, {.name = "echo", .max_connections = 100, .drain = 1s});
    };
    s.background(serve);
    auto [one, two] = co_await weir::all(ask(l.port(), "one\n"), ask(l.port(), "two\n"));
    std::cout << one << two;
    // No limit of its own: a client that may hang is given one.
    auto silent = co_await weir::io::connect("127.0.0.1", l.port());
    auto waited = co_await weir::settle(weir::with_timeout(10ms, silent.read_until("\n", 1000)));
    std::cout << (waited.is_error() ? "timed out\n" : "answered\n");
    co_await silent.write_all("three\n");  // the cancelled read has taken nothing
    std::cout << co_await silent.read_until("\n", 1000);
  });
  std::cout << "drained\n";
}

int main() { weir::run(program()); }
