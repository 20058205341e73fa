// SPDX-License-Identifier: MIT
// The world's part of the simulated network: what its faults and names may be. The
// sockets on it are tested in tests/io.
#include <limits>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

template <class F>
void expect_refused(F&& call, std::string_view named) {
  const std::exception_ptr error = thrown_by(call);
  EXPECT_EQ(code_of(error), weir::errc::invalid_argument) << named;
  EXPECT_TRUE(contains(what_of(error), named)) << what_of(error);
}

}  // namespace

TEST(network, rates_and_durations_out_of_range_are_refused) {
  sim::world w;
  expect_refused([&] { w.network().set({.latency = -1ns}); }, ".latency");
  expect_refused([&] { w.network().set({.jitter = -1s}); }, ".jitter");
  expect_refused([&] { w.network().set({.loss = -0.1}); }, ".loss");
  expect_refused([&] { w.network().set({.loss = 1.1}); }, ".loss");
  expect_refused([&] { w.network().set({.duplicate = std::numeric_limits<double>::quiet_NaN()}); },
                 ".duplicate");
  w.network().set({.latency = 1s, .jitter = 1s, .loss = 1, .duplicate = 1});
  w.network().set({});
}

TEST(network, a_name_that_is_no_loop_of_the_world_is_refused) {
  sim::world w;
  w.loop("a");
  expect_refused([&] { w.network().partition("a", "b"); }, "'b'");
  expect_refused([&] { w.network().partition("b", "a"); }, "'b'");
  expect_refused([&] { w.network().partition("", "a"); }, "''");
  expect_refused([&] { w.network().reset("a", "b"); }, "'b'");
  expect_refused([&] { w.network().reset("b", "a"); }, "'b'");
  w.loop("b");
  w.network().partition("a", "b");
  w.network().partition("main", "a");
  w.network().reset("a", "b");
  w.network().heal();
  w.network().heal();
}

TEST(network, a_crashed_loop_keeps_its_name) {
  sim::world w;
  w.loop("a");
  w.crash("a");
  w.network().partition("a", "main");
  w.network().reset("a", "main");
}

TEST(network, a_loop_is_not_cut_off_from_itself) {
  sim::world w;
  w.loop("a");
  expect_refused([&] { w.network().partition("a", "a"); }, "'a'");
  w.network().reset("a", "a");
}

TEST(network, calls_from_a_crash_have_no_effect) {
  struct meddler {
    ~meddler() {
      w.network().set({.loss = -1});
      w.network().partition("nobody", "nobody");
      w.network().reset("nobody", "nobody");
      w.network().heal();
      w.pause("nobody", -1s);
    }
    sim::world& w;
  };
  sim::world w;
  w.run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto victim = [&]() -> task<> {
        const meddler m{w};
        co_await weir::sleep(1h);
      };
      auto hosted = [&]() -> task<> {
        EXPECT_EQ(co_await code_after([&] { return weir::on(w.loop("a"), victim()); }),
                  weir::errc::loop_gone);
      };
      s.spawn(hosted());
      co_await weir::sleep(1s);
      w.crash("a");
      co_await s.join();
    });
  });
}
