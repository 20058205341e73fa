// SPDX-License-Identifier: MIT
// load_governor: a limit that follows the CPU pressure of the machine.
#include <vector>

#include "core/environment.hpp"
#include "governor_support.hpp"

using namespace flow_test;
using weir::load_governor;

FIBER_TEST(load_governor, without_pressure_information_the_limit_is_always_max) {
  load_governor g({.max = 8});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(g.limit(), 8);
    co_await weir::sleep(1s);
  }
}

TEST(load_governor, it_is_halved_above_the_pressure_and_grows_by_one_below_it_once_a_second) {
  weir::sim::world w;
  w.run([&]() -> task<> {
    load_governor g({.max = 8, .max_pressure = 20});
    std::vector<long> limits;
    auto watch = [&](int seconds) -> task<> {
      for (int i = 0; i < seconds; ++i) {
        limits.push_back(static_cast<long>(g.limit()));
        limits.push_back(static_cast<long>(g.limit()));  // read once a second: nothing changes
        co_await weir::sleep(500ms);
        EXPECT_EQ(static_cast<long>(g.limit()), limits.back());
        co_await weir::sleep(500ms);
      }
    };
    w.set_cpu_pressure(20);  // not above
    co_await watch(1);
    w.set_cpu_pressure(20.5);
    co_await watch(5);
    w.set_cpu_pressure(3);
    co_await watch(3);
    w.set_cpu_pressure(std::nullopt);
    co_await watch(1);
    EXPECT_EQ(limits,
              (std::vector<long>{8, 8, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 8, 8}));
  });
}

TEST(load_governor, a_limit_that_falls_revokes_nothing_and_one_that_rises_lets_waiters_in) {
  weir::sim::world w;
  w.run([&]() -> task<> {
    load_governor g({.max = 4, .max_pressure = 20});
    std::vector<weir::permit> held;
    for (int i = 0; i < 4; ++i) held.push_back(co_await g.acquire());
    w.set_cpu_pressure(90);
    co_await weir::sleep(1s);
    EXPECT_EQ(g.limit(), 2);
    EXPECT_EQ(g.active(), 4);
    held.resize(2);
    text_log log;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(user(g, log, "a", 1h));
      co_await weir::sleep(1ms);
      s.spawn(user(g, log, "b", 1h));
      w.set_cpu_pressure(0);
      co_await weir::sleep(999ms);  // nobody gives anything back: time alone lets them in
      EXPECT_EQ(joined(log), "a");
      co_await weir::sleep(1s);
      EXPECT_EQ(joined(log), "a,b");
      EXPECT_EQ(g.limit(), 4);
      s.cancel();
    });
    EXPECT_EQ(live_timers(), 0);
  });
}

TEST(load_governor, under_a_load_step_the_number_at_work_follows) {
  weir::sim::world w;
  w.run([&]() -> task<> {
    load_governor g({.max = 16, .max_pressure = 20});
    int inside = 0;
    auto worker = [&]() -> task<> {
      for (;;) {
        auto permit = co_await g.acquire();
        ++inside;
        const auto leave = weir::scope_exit([&] { --inside; });
        co_await weir::sleep(100ms);
      }
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 40; ++i) s.background(worker());
      co_await weir::sleep(2s);
      EXPECT_EQ(inside, 16);
      w.set_cpu_pressure(60);
      co_await weir::sleep(10s);
      EXPECT_EQ(inside, 1);
      w.set_cpu_pressure(5);
      co_await weir::sleep(8500ms);
      EXPECT_EQ(inside, 9);
      co_await weir::sleep(20s);
      EXPECT_EQ(inside, 16);
    });
    EXPECT_EQ(g.active(), 0);
  });
}

TEST(load_governor, options_that_make_no_sense_are_refused_with_their_name) {
  auto error = thrown_by([] { load_governor g({.name = "cpu", .max = 0}); });
  EXPECT_EQ(code_of(error), errc::invalid_argument);
  EXPECT_TRUE(contains(what_of(error), "load_governor 'cpu': max")) << what_of(error);
  for (double bad : {-1.0, 100.5})
    EXPECT_EQ(refused([&] { load_governor g({.max = 1, .max_pressure = bad}); }),
              errc::invalid_argument);
  static_assert(std::is_trivially_destructible_v<weir::load_options>);
}

TEST(load_governor, the_pressure_is_read_from_the_text_of_the_kernel) {
  using weir::detail::pressure_in;
  EXPECT_EQ(pressure_in("some avg10=12.34 avg60=1.00 avg300=0.50 total=99\n"
                        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
            12.34);
  EXPECT_EQ(pressure_in("some avg10=0.00 avg60=0.00"), 0.0);
  EXPECT_EQ(pressure_in(""), std::nullopt);
  EXPECT_EQ(pressure_in("some avg10="), std::nullopt);
}

// Whether this machine has PSI or not, the real loop must cope.
TEST(load_governor, it_works_on_a_real_loop) {
  weir::run([]() -> task<> {
    load_governor g({.max = 2, .max_pressure = 100});
    auto permit = co_await g.acquire();
    EXPECT_EQ(g.limit(), 2);
  });
}
