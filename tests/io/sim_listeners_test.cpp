// SPDX-License-Identifier: MIT
// One listener per loop of a runtime, in a simulation: each is reached by the name of its loop.
#include "network_support.hpp"

using namespace weir_test;

namespace {

task<std::string> asked(std::string host, int port) {
  io::socket c = co_await io::connect(host, port);
  co_await c.write_all("x");
  co_return co_await read_n(c, 1);
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(sim_listeners, each_loop_answers_under_its_own_name) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    weir::runtime rt(s, {.name = "rt", .threads = 2});
    io::listeners l = co_await io::listen(rt, {.port = service});
    EXPECT_EQ(l.port(), service);
    EXPECT_EQ(l.size(), 2U);
    auto served = s.spawn(io::serve(l, echo_back, {.max_connections = 1, .drain = 0ms}));
    for (const std::string host : {"rt-0", "rt-1", "rt-1", "rt-0"})
      EXPECT_EQ(co_await asked(host, service), "x");
    l.close();
    co_await served;
    EXPECT_EQ(co_await code_after([] { return io::connect("rt-0", service); }),
              std::errc::connection_refused);
  });
}

FIBER_TEST_IN_EVERY_ORDER(sim_listeners, cancelling_ends_all_of_them) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    weir::runtime rt(s, {.name = "rt", .threads = 2});
    io::listeners l = co_await io::listen(rt);
    auto served = s.spawn(io::serve(l, echo_back, {.drain = 10ms}));
    io::socket open = co_await io::connect("rt-1", l.port());
    co_await open.write_all("x");
    EXPECT_EQ(co_await read_n(open, 1), "x");
    served.cancel();
    EXPECT_TRUE((co_await weir::settle(served)).is_cancelled());
    EXPECT_EQ(co_await read_all(open), "");
  });
}
