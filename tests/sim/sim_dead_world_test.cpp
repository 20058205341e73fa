// SPDX-License-Identifier: MIT
// Calls from the destructors of a crashed loop have no effect; what they held goes to others.
// Calls from destructors and cancellers in a living world work, or are refused.
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>

#include "sim_support.hpp"
#include "start_on.hpp"

using namespace weir_test;

namespace {

/// Calls `last_words` in a destructor of loop "dying", which crashes, and gives its error.
template <class F>
std::exception_ptr thrown_by_the_dead(sim::world& w, F last_words) {
  std::exception_ptr error;
  int spoken = 0;
  w.run([&]() -> task<> {
    start_on(w.loop("dying"), [&]() -> task<> {
      const auto end = weir::scope_exit([&] {
        ++spoken;
        error = thrown_by(last_words);
      });
      co_await weir::sleep(1h);
    });
    co_await weir::sleep(1s);
    w.crash("dying");
  });
  EXPECT_EQ(spoken, 1);
  return error;
}

/// Calls `last_words` in a destructor of a fiber that is cancelled, and lives on for a while.
template <class F>
task<> cancelled_with(F last_words) {
  const auto body = [&]() -> task<> {
    const auto end = weir::scope_exit(last_words);
    co_await weir::sleep(1h);
  };
  const auto how = co_await weir::settle(weir::with_timeout(1s, body()));
  EXPECT_TRUE(holds<weir::timeout_error>(how.error()));
  co_await weir::sleep(1s);
}

}  // namespace

TEST(dead_world, a_crash_in_it_hits_nobody) {
  for (const char* victim : {"b", "dying", "main", "nobody"}) {
    SCOPED_TRACE(victim);
    sim::world w;
    const auto b = w.loop("b");
    const auto error = thrown_by_the_dead(w, [&] { w.crash(victim); });
    EXPECT_EQ(error, nullptr) << what_of(error);
    EXPECT_TRUE(b.alive());
  }
}

TEST(dead_world, a_loop_of_it_is_not_alive_and_is_not_made) {
  sim::world w;
  bool alive = true;
  const auto error = thrown_by_the_dead(w, [&] { alive = w.loop("zombie").alive(); });
  EXPECT_EQ(error, nullptr) << what_of(error);
  EXPECT_FALSE(alive);
  EXPECT_EQ(weir::live().loops, 0);
}

TEST(dead_world, a_crash_of_the_disk_in_it_loses_nothing) {
  sim::world w;
  const auto file = w.disk().open("/file", weir::open_mode::create);
  const std::byte content[3] = {};
  EXPECT_EQ(file->pwrite(content, 0), 3U);
  const auto error = thrown_by_the_dead(w, [&] { w.disk().crash(); });
  EXPECT_EQ(error, nullptr) << what_of(error);
  EXPECT_TRUE(w.disk().exists("/file"));
  EXPECT_EQ(file->size(), 3U);
}

TEST(dead_world, a_spawn_on_a_closed_scope_starts_nothing_and_throws_nothing) {
  sim::world w;
  std::exception_ptr error = std::make_exception_ptr(boom(1));
  bool ran = false;
  const auto started = std::make_shared<int>(1);
  w.run([&]() -> task<> {
    start_on(w.loop("dying"), [&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        const auto child = [&, started]() -> task<> {
          ran = true;
          co_return;
        };
        const auto spawn = [&] { (void)s.spawn(child); };
        const auto end = weir::scope_exit([&] { error = thrown_by(spawn); });
        co_await s.join();
        co_await weir::sleep(1h);
      });
    });
    co_await weir::sleep(1s);
    w.crash("dying");
  });
  EXPECT_EQ(error, nullptr) << what_of(error);
  EXPECT_FALSE(ran);
  EXPECT_EQ(started.use_count(), 1);
}

TEST(dead_world, a_stop_source_that_is_stopped_in_it_cancels_nobody) {
  sim::world w;
  std::stop_source source;
  const auto token = weir::link(source.get_token());
  std::optional<weir::duration> slept;
  w.run([&]() -> task<> {
    start_on(w.loop("dying"), [&]() -> task<> {
      const auto end = weir::scope_exit([&] { source.request_stop(); });
      co_await weir::sleep(1h);
    });
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> {
        const auto begun = weir::now();
        (void)co_await weir::settle(weir::with_token(token, weir::sleep(2h)));
        slept = weir::now() - begun;
      });
      co_await weir::sleep(1s);
      w.crash("dying");
      co_await s.join();
    });
  });
  EXPECT_TRUE(source.stop_requested());
  EXPECT_FALSE(token.cancel_requested());
  EXPECT_EQ(slept, 2h);
}

TEST(dead_world, a_resumer_that_dies_in_it_tells_a_waiter_on_another_loop) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    std::exception_ptr error;
    w.run([&]() -> task<> {
      const auto a = w.loop("a");
      const auto ask = [&](weir::resumer<> r) {
        start_on(a, [r]() mutable -> task<> {
          co_await weir::sleep(1h);
          r.complete();
        });
      };
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> { error = co_await error_of(weir::suspend(ask)); });
        co_await weir::sleep(1s);
        w.crash("a");
        co_await s.join();
      });
    });
    EXPECT_EQ(code_of(error), weir::errc::loop_gone) << what_of(error);
  });
}

TEST(dead_world, a_resumer_in_a_message_that_a_crash_refuses_is_abandoned) {
  for (const auto strategy : {sim::fifo, sim::random}) {
    sim::world w({.seed = 1, .strategy = strategy});
    std::exception_ptr error;
    const auto a = w.loop("a");
    // The crash comes in the same step, so the message is still on its way.
    const auto ask = [&](weir::resumer<> r) {
      EXPECT_TRUE(a.post([r]() mutable { r.complete(); }));
      w.crash("a");
    };
    w.run([&]() -> task<> { error = co_await error_of(weir::suspend(ask)); });
    EXPECT_EQ(code_of(error), weir::errc::abandoned) << what_of(error);
  }
}

TEST(dead_world, a_permit_of_a_living_governor_comes_back_from_it) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    w.run([&]() -> task<> {
      weir::counting_governor gate(1, {.name = "gate"});
      auto lent = std::make_shared<weir::permit>(co_await gate.acquire());
      start_on(w.loop("a"), [lent]() -> task<> {
        const weir::permit mine = std::move(*lent);
        co_await weir::sleep(1h);
      });
      co_await weir::sleep(1s);
      EXPECT_EQ(gate.active(), 1);
      w.crash("a");
      const auto again = co_await gate.acquire();
      EXPECT_EQ(gate.active(), 1);
    });
  });
}

// ------------------------------------------------------------------ while the world lives

TEST(crash, a_canceller_cannot_crash_its_own_loop) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    const auto a = w.loop("a");
    std::exception_ptr refused, limit;
    const auto ask = [&](weir::resumer<> r) {
      return [&, r] {
        refused = thrown_by([&] { w.crash("a"); });
        return weir::cancel_result::done;
      };
    };
    w.run([&]() -> task<> {
      start_on(a, [&]() -> task<> {
        limit = co_await error_of(weir::with_timeout(1s, weir::suspend(ask)));
      });
      co_await weir::sleep(5s);
    });
    EXPECT_EQ(code_of(refused), weir::errc::invalid_argument) << what_of(refused);
    EXPECT_TRUE(holds<weir::timeout_error>(limit)) << what_of(limit);
    EXPECT_TRUE(a.alive());
  });
}

TEST(world, a_loop_made_in_a_destructor_of_a_cancelled_fiber_is_as_good_as_any) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    text_log log;
    const auto audit = [&] { w.loop("audit").post([&] { log.push_back("audited"); }); };
    w.run([&] { return cancelled_with(audit); });
    EXPECT_EQ(joined(log), "audited");
    const auto loop = w.loop("audit");
    EXPECT_TRUE(loop.alive());
    w.run([&]() -> task<> {
      start_on(loop, [&]() -> task<> {
        co_await weir::sleep(1s);
        log.push_back("slept");
      });
      co_await weir::sleep(2s);
    });
    EXPECT_EQ(joined(log), "audited,slept");
  });
}

TEST(world, a_loop_made_in_a_destructor_and_never_used_is_no_leak) {
  for_each_seed([](sim::options options) {
    sim::world w(options);
    const auto error =
        thrown_by([&] { w.run([&] { return cancelled_with([&] { w.loop("audit"); }); }); });
    EXPECT_EQ(error, nullptr) << what_of(error);
    EXPECT_TRUE(w.loop("audit").alive());
  });
}
