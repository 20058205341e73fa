// SPDX-License-Identifier: MIT
// What a crash does to the fibers of a loop.
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "start_on.hpp"
#include "support/test_support.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace {

using namespace test_support;
using weir::task;
using weir_test::start_on;
namespace sim = weir::sim;

/// Says in the log that it died, and why.
class named_witness {
 public:
  named_witness(text_log& log, std::string name) : log_(log), name_(std::move(name)) {}
  named_witness(const named_witness&) = delete;
  named_witness& operator=(const named_witness&) = delete;
  ~named_witness() {
    const weir::cancel_reason* why = weir::unwinding();
    log_.push_back(name_ + (why == nullptr ? " at its end" : " " + to_string(why->kind)));
  }

 private:
  static std::string to_string(weir::cancel_kind kind) {
    return std::string(weir::to_string(kind));
  }
  text_log& log_;
  std::string name_;
};

task<> nested(text_log& log, int depth) {
  const named_witness here(log, "frame " + std::to_string(depth));
  if (depth == 0) {
    co_await weir::sleep(1h);
    log.push_back("NEVER");
  } else {
    co_await nested(log, depth - 1);
  }
}

/// Runs `victim` on loop "a", lets it begin, crashes the loop, and goes on for an hour.
template <class Victim>
void crash_under(Victim victim, sim::strategy strategy = sim::fifo, std::uint64_t seed = 1) {
  sim::world w({.seed = seed, .strategy = strategy});
  w.run([&]() -> task<> {
    start_on(w.loop("a"), victim);
    co_await weir::sleep(1min);
    w.crash("a");
    co_await weir::sleep(2h);
  });
}

task<> never_done() {
  for (;;) co_await weir::yield();
}

struct throws_when_it_dies {
  throws_when_it_dies() = default;
  throws_when_it_dies(const throws_when_it_dies&) = delete;
  throws_when_it_dies& operator=(const throws_when_it_dies&) = delete;
  ~throws_when_it_dies() noexcept(false) { throw boom(1); }
};

task<> throws_out_of_a_destructor() {
  const throws_when_it_dies mine;
  co_await weir::sleep(1h);
}

}  // namespace

TEST(evict, frames_are_destroyed_innermost_first_and_are_told_that_they_are_evicted) {
  text_log log;
  crash_under([&] { return nested(log, 2); });
  EXPECT_EQ(joined(log), "frame 0 evicted,frame 1 evicted,frame 2 evicted");
}

TEST(evict, children_go_before_the_frames_that_own_their_scope) {
  text_log log;
  crash_under([&]() -> task<> {
    const named_witness parent(log, "parent");
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&]() -> task<> { co_await nested(log, 0); });
      s.background([&]() -> task<> {
        const named_witness service(log, "service");
        co_await weir::sleep(1h);
      });
      co_await weir::sleep(1h);
    });
  });
  ASSERT_EQ(log.size(), 3U) << joined(log);
  EXPECT_EQ(counted(log, "frame 0 evicted"), 1);
  EXPECT_EQ(counted(log, "service evicted"), 1);
  EXPECT_EQ(log.back(), "parent evicted");
}

TEST(evict, no_defer_no_catch_and_no_catch_edge_runs) {
  text_log log;
  crash_under([&]() -> task<> {
    try {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.defer([&] { log.push_back("DEFER"); });
        auto inner = [&]() -> task<> { co_await weir::shield(nested(log, 0)); };
        (void)co_await weir::settle(inner | weir::finally([&] { log.push_back("FINALLY"); }));
        log.push_back("SETTLED");
      });
    } catch (...) {
      log.push_back("CAUGHT");
    }
    log.push_back("WENT ON");
  });
  EXPECT_EQ(joined(log), "frame 0 evicted");
}

TEST(evict, whatever_the_moment_every_frame_and_every_operation_is_destroyed_once) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    auto counted_here = std::make_shared<int>(0);
    sim::world w({.seed = seed, .strategy = seed % 2 == 0 ? sim::random : sim::pct(3)});
    w.run([&]() -> task<> {
      weir::counting_governor gate(1);
      for (int i = 0; i < 4; ++i) {
        start_on(w.loop("a"), [counted_here]() -> task<> {
          const auto local = counted_here;
          weir::counting_governor own(1);
          const auto both = [&]() -> task<> {
            auto permit = co_await own.acquire();
            co_await weir::sleep(3ms);
          };
          co_await weir::all(both(), both(), both());
        });
      }
      const auto steps = static_cast<int>(weir::random() % 20);
      for (int i = 0; i < steps; ++i) co_await weir::yield();
      if (seed % 3 == 0) co_await weir::sleep(4ms);
      w.crash("a");
      EXPECT_EQ(counted_here.use_count(), 1);
    });
    EXPECT_EQ(counted_here.use_count(), 1);
  }
}

TEST(evict, waits_of_every_kind_are_taken_back_without_their_owners_noticing) {
  text_log log;
  for (auto strategy : {sim::fifo, sim::random, sim::pct(2)}) {
    crash_under(
        [&]() -> task<> {
          weir::counting_governor gate(0);
          weir::cancel_source stop;
          co_await weir::with_scope([&](weir::scope& s) -> task<> {
            auto never = s.spawn([&]() -> task<> {
              co_await weir::suspend([&](weir::resumer<> r) {
                return [&, r] {
                  log.push_back("CANCELLER");
                  return weir::cancel_result::later;
                };
              });
            });
            s.spawn([&]() -> task<> { auto permit = co_await gate.acquire(); });
            s.spawn([&]() -> task<> { co_await weir::race(never, weir::sleep(1h)); });
            s.spawn([&]() -> task<> { co_await weir::with_token(stop.token(), nested(log, 0)); });
            s.spawn([&]() -> task<> { co_await weir::with_timeout(1h, nested(log, 0)); });
            s.spawn([&]() -> task<> { co_await never; });
            co_await s.join();
          });
        },
        strategy);
    EXPECT_EQ(joined(log), "frame 0 evicted,frame 0 evicted");
    log.clear();
  }
}

TEST(evict, nothing_that_a_dying_frame_does_gets_out) {
  text_log log;
  sim::world w({});
  weir::resumer<int> answer;
  weir::cancel_source stop;
  w.run([&]() -> task<> {
    auto home = weir::this_loop();
    struct last_words {
      text_log& log;
      weir::loop_ref home;
      weir::resumer<int>& answer;
      weir::cancel_source& stop;
      weir::disk& disk;
      last_words(text_log& l, weir::loop_ref h, weir::resumer<int>& a, weir::cancel_source& s,
                 weir::disk& d)
          : log(l), home(h), answer(a), stop(s), disk(d) {}
      last_words(const last_words&) = delete;
      last_words& operator=(const last_words&) = delete;
      ~last_words() {
        log.push_back(home.post([this] { log.push_back("POSTED"); }) ? "ACCEPTED" : "refused");
        answer.complete(13);
        stop.cancel("from the dead");
        sim::always("the dead assert nothing", false);
        disk.make_directory("/grave");
      }
    };
    start_on(w.loop("a"), [&, home]() -> task<> {
      const last_words words(log, home, answer, stop, w.disk());
      co_await weir::sleep(1h);
    });
    auto asked = weir::suspend<int>([&](weir::resumer<int> r) { answer = std::move(r); });
    auto waiting = weir::settle(weir::with_timeout(3h, std::move(asked)));
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto pending = s.spawn(std::move(waiting));
      co_await weir::sleep(1min);
      w.crash("a");
      const auto how = co_await pending;
      EXPECT_TRUE(how.is_error());  // the time limit, not the answer
    });
  });
  EXPECT_EQ(joined(log), "refused");
  EXPECT_FALSE(stop.cancel_requested());
  EXPECT_FALSE(w.disk().exists("/grave"));
}

TEST(evict, a_fiber_left_on_a_named_loop_at_the_end_of_the_run_is_a_leak) {
  text_log log;
  sim::world w({});
  auto program = [&]() -> task<> {
    start_on(w.loop("a"), [&] { return nested(log, 0); });
    co_await weir::sleep(1min);
  };
  const auto error = thrown_by([&] { w.run(program); });
  EXPECT_TRUE(holds<sim::failure>(error));
  EXPECT_EQ(code_of(error), weir::errc::leak);
  EXPECT_TRUE(contains(what_of(error), "loop 'a' still has 1 fiber, 0 scopes and 1 timer"))
      << what_of(error);
  EXPECT_EQ(joined(log), "frame 0 evicted");
}

TEST(evict, a_service_that_is_being_stopped_is_in_the_dump_and_goes_too) {
  text_log log;
  const auto kept = std::make_shared<int>(1);
  const auto service = [&, kept](weir::context& c) -> task<> {
    c.defer([&log]() -> task<> {
      const named_witness defer(log, "defer");
      co_await never_done();
    });
    const auto own = kept;
    co_await weir::sleep(1h);
  };
  const auto program = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.background(service, {.name = "stubborn"});
      co_await weir::sleep(1s);
    });
  };
  const long uses = kept.use_count();
  const auto error = thrown_by([&] { sim::run({.max_steps = 100}, program); });
  EXPECT_EQ(code_of(error), weir::errc::livelock);
  EXPECT_TRUE(contains(what_of(error), "service 'stubborn'")) << what_of(error);
  EXPECT_EQ(joined(log), "defer evicted");
  EXPECT_EQ(kept.use_count(), uses);
}

TEST(evict, the_value_of_a_fiber_that_runs_its_defers_is_destroyed) {
  const auto value = std::make_shared<int>(1);
  const auto program = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn([&value](weir::context& c) -> task<std::shared_ptr<int>> {
        c.defer(never_done);
        co_return value;
      });
      co_await s.join();
    });
  };
  const auto error = thrown_by([&] { sim::run({.max_steps = 100}, program); });
  EXPECT_EQ(code_of(error), weir::errc::livelock);
  EXPECT_EQ(value.use_count(), 1);
}

TEST(evict, a_destructor_that_throws_ends_the_process_with_its_place) {
  EXPECT_DEATH(crash_under(throws_out_of_a_destructor),
               "fatal: destructor threw while .*evict_test.cpp");
}
