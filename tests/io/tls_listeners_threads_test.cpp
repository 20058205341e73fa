// SPDX-License-Identifier: MIT
// TLS on the loops of a runtime.
#include "io/tls_support.hpp"

namespace {

using namespace weir_test;

}  // namespace

TEST(tls_listeners_threads, every_loop_shakes_hands_with_the_same_certificate) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 2});
      io::listeners l = co_await io::listen(rt, {.tls = &context});
      auto serve = [&]() -> task<> { co_await io::serve(l, tls_echo, {.drain = 0ms}); };
      auto served = s.spawn(serve);
      for (int i = 0; i < 20; ++i) {
        io::socket c = co_await io::tls_connect("localhost", l.port(), {.ca_file = ca.root});
        co_await c.write_all("over both loops");
        EXPECT_EQ(co_await read_n(c, 15), "over both loops");
      }
      served.cancel();
      co_await weir::settle(served);
    });
  };
  weir::run(program);
}
