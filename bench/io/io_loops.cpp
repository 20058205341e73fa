// SPDX-License-Identifier: MIT
//
// The echo server of io_echo on several loops, each with a listener of its own at one port.
// Compiled for one loop and for two; both may use all cores.
#include <weir/io.hpp>
#include <weir/run.hpp>

#include <vector>

#include "support/server.hpp"

namespace {

weir::task<> serve(bench::server_arguments arguments) {
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    weir::runtime rt(s, {.threads = WEIR_BENCH_LOOPS});
    weir::io::listeners l =
        co_await weir::io::listen(rt, {.port = arguments.port, .backlog = bench::backlog});
    bench::announce(l.port());
    auto echo = [&](weir::io::socket& c) -> weir::task<> {
      std::vector<std::byte> buffer(arguments.buffer);
      while (const std::size_t n = co_await c.read_some(buffer))
        co_await c.write_all(std::span(buffer).first(n));
    };
    co_await weir::io::serve(l, echo, {.max_connections = bench::most_connections});
  });
}

}  // namespace

int main(int argc, char** argv) { weir::run(serve(bench::server_arguments(argc, argv))); }
