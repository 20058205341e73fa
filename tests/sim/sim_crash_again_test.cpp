// SPDX-License-Identifier: MIT
// Crashes within crashes, and failures that hide each other.
#include <unistd.h>

#include <memory>

#include "sim_support.hpp"
#include "start_on.hpp"

using namespace weir_test;

namespace {

/// Crashes a loop when it dies.
class vengeful {
 public:
  vengeful(sim::world& w, const char* victim) : world_(w), victim_(victim) {}
  vengeful(const vengeful&) = delete;
  vengeful& operator=(const vengeful&) = delete;
  ~vengeful() {
    (void)thrown_by([&] { world_.crash(victim_); });
  }

 private:
  sim::world& world_;
  const char* victim_;
};

void post_a_vengeful_message(sim::world& w, const char* to, const char* victim) {
  EXPECT_TRUE(w.loop(to).post([kept = std::make_shared<vengeful>(w, victim)] {}));
}

task<> for_an_hour() { co_await weir::sleep(1h); }

}  // namespace

// Heap-use-after-free in simulation::evict -> remove.
TEST(crash, a_refused_message_that_crashes_the_same_loop_again_is_harmless) {
  sim::world w;
  w.run([&]() -> task<> {
    post_a_vengeful_message(w, "a", "a");
    w.crash("a");
    EXPECT_TRUE(w.loop("a").alive());
    co_return;
  });
}

// Heap-use-after-free in simulation::look_for_leaks.
TEST(crash, a_leaking_loop_whose_refused_message_crashes_another_leaking_loop_is_harmless) {
  sim::world w;
  const auto program = [&]() -> task<> {
    start_on(w.loop("a"), for_an_hour);
    start_on(w.loop("b"), for_an_hour);
    co_await weir::sleep(1s);
    post_a_vengeful_message(w, "a", "b");
  };
  EXPECT_EQ(code_of(thrown_by([&] { w.run(program); })), weir::errc::leak);
}

// The replay says "leak".
TEST(trace, a_run_that_ends_too_early_does_not_fit_even_if_it_leaks) {
  bool early = false;
  const auto op = [&](sim::world& w) -> task<> {
    start_on(w.loop("a"), [] { return weir::sleep(1ms); });
    co_await weir::sleep(500us);
    if (early) co_return;
    (void)co_await conversation(3, 3);
    co_await weir::sleep(1h);
    throw boom(1);
  };
  const auto trace = sim::explore({.runs = 1}, op).trace();
  early = true;
  EXPECT_EQ(code_of(thrown_by([&] { sim::replay(trace, op); })), weir::errc::trace_mismatch);
}

// The report has failed and says nothing.
TEST(jobs, a_failure_that_could_not_be_told_and_does_not_come_again_has_a_message) {
  const auto home = ::getpid();
  const auto report = sim::explore({.runs = 2, .jobs = 2}, [&]() -> task<> {
    if (::getpid() == home) co_return;
    for (int fd = 3; fd < 256; ++fd) ::close(fd);
    throw boom(1);
  });
  EXPECT_FALSE(report.ok());
  EXPECT_NE(report.message(), "");
}
