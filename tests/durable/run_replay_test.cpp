// SPDX-License-Identifier: MIT
// Random programs on a simulated disk, crashed at random moments and replayed, again and again.
// WEIR_REPLAYS is how many programs there are (100,000 in a torture run), WEIR_REPLAY_SEED the seed
// of the first one.
#include <cstdlib>
#include <optional>

#include "durable/support/random_program.hpp"

using namespace durable_test;

namespace {

std::uint64_t replays(std::uint64_t usual) {
  const char* given = std::getenv("WEIR_REPLAYS");
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

std::uint64_t first_seed() {
  const char* given = std::getenv("WEIR_REPLAY_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

/// When the process dies: after a while, or when the body of a step has begun.
struct death {
  weir::duration after = 0ns;
  int at_body = 0;  // 0: not so
};

struct trial {
  std::uint64_t seed = 0;
  flavour kind = flavour::repeatable;
  sim::strategy strategy = sim::fifo;
  sim::disk_faults faults{};
  std::vector<weir::duration> cancels{};  // when the run is cancelled, counted from day0
  std::vector<death> deaths{};
  int runs = 1;  // at once
  std::int64_t max_live = 100;
};

struct result {
  std::string end;
  weir::duration took = 0ns;
  int bodies = 0;
  lines complaints;
};

/// One world with one run in it, and the processes that work on it, one after another.
class theatre {
 public:
  explicit theatre(const trial& what)
      : what_(what), world_({.seed = what.seed, .strategy = what.strategy, .start_time = day0}) {
    world_.disk().set(what.faults);
  }

  result play() {
    try {
      world_.run([this] { return all_lives(); });
    } catch (const std::exception& e) {
      end_ = std::string("engine: ") + e.what();
    }
    return {end_.value_or("no end"), took_, outside_.bodies, outside_.complaints};
  }

 private:
  task<> all_lives() {
    const auto begun = weir::wall_now();
    for (const death& d : what_.deaths) {
      if (!end_) co_await one_life(&d);
    }
    if (!end_) co_await one_life(nullptr);
    took_ = weir::wall_now() - begun;
  }

  task<> one_life(const death* end) {
    outside_.next_life();
    auto [tx, rx] = weir::channel<int>(1);
    if (end != nullptr && end->at_body > 0) {
      const int last = outside_.bodies + end->at_body;
      outside_.on_body = [this, last, out = tx]() mutable {
        if (outside_.bodies == last) (void)out.try_send(1);
      };
    }
    auto lives = [this] { return weir::on(world_.loop("process"), process()); };
    auto body = [&](weir::scope& s) -> task<> {
      auto alive = s.spawn(weir::settle(lives));
      if (end != nullptr) {
        auto dies = [&]() -> task<> {
          if (end->at_body > 0) {
            (void)co_await rx.next();
          } else {
            co_await weir::sleep(end->after);
          }
        };
        auto killer = s.spawn(dies);
        const auto first = co_await weir::select(alive, killer);
        if (first == 1) world_.crash("process");
        killer.cancel();
      }
      const weir::outcome<void> how = co_await alive;
      if (how.is_error() && test_support::code_of(how.error()) != errc::loop_gone) {
        end_ = "engine: " + test_support::what_of(how.error());
      }
    };
    co_await weir::with_scope({.failure = weir::failure::isolate}, body);
  }

  task<> process() {
    durable::engine_options options;
    options.path = "/journal";
    options.segment_bytes = smallest_segment;
    options.disk = &world_.disk();
    options.max_live = what_.max_live;
    auto setup = [this](durable::engine& e) {
      e.add("h", [this](std::uint64_t seed) { return handler(seed); });
      e.add("child", [this](std::uint64_t seed) { return child(seed); });
    };
    co_await with_open_engine(options, setup, [this](durable::engine& e) { return use(e); });
  }

  task<std::string> handler(std::uint64_t seed) {
    random_program p(outside_, what_.kind);
    std::string end;
    try {
      end = std::to_string(co_await p.node(seed, 3));
    } catch (const weir::error_group&) {
      end = "several errors";
    } catch (const weir::terminal_error& e) {
      end = e.what();
    }
    co_return end;
  }

  task<int> child(std::uint64_t seed) {
    random_program p(outside_, what_.kind);
    // Which of two runs goes first in one instant is not for the journal to say.
    co_await weir::sleep(random_program::pause(seed));
    co_return co_await p.one_step(seed ^ 1);
  }

  task<> use(durable::engine& e) {
    auto body = [&](weir::scope& s) -> task<> {
      auto answers = [&](outside::question q) -> task<> {
        const auto left = q.due - weir::wall_now();
        if (left > 0ns) co_await weir::sleep(left);
        (void)co_await e.resolve(q.id, q.value);
      };
      outside_.on_question = [&](const outside::question& q) { s.spawn(answers(q)); };
      for (const auto& [id, q] : outside_.questions) s.spawn(answers(q));
      auto cancels = [&](weir::wall_time when) -> task<> {
        const auto left = when - weir::wall_now();
        if (left <= 0ns) co_return;
        co_await weir::sleep(left);
        e.cancel("r0");
      };
      for (const auto after : what_.cancels) s.spawn(cancels(day0 + after));
      auto watches = [&]() -> task<> {
        auto events = e.events();
        while (auto event = co_await events.next()) {
          if (event->state != durable::run_state::blocked) continue;
          end_ = "engine: " + event->id + " is blocked: " + event->message;
          s.cancel();
        }
      };
      s.spawn(watches);
      std::vector<durable::run_handle<std::string>> runs;
      for (int i = 0; i < what_.runs; ++i) {
        const std::string id = "r" + std::to_string(i);
        const std::uint64_t seed = what_.seed + static_cast<std::uint64_t>(i) * 1'000'003;
        runs.push_back(co_await e.start<std::string>("h", {.id = id}, seed));
      }
      std::string all;
      for (const auto& run : runs) all += co_await ending_of(run) + ";";
      end_ = all;
      s.cancel();
    };
    (void)co_await weir::settle(weir::with_scope(body));
  }

  trial what_;
  sim::world world_;
  outside outside_;
  std::optional<std::string> end_;
  weir::duration took_ = 0ns;
};

/// One to four deaths, somewhere in what a straight run has taken.
std::vector<death> random_deaths(disk_support::generator& random, const result& straight) {
  std::vector<death> all(1 + random.below(4));
  for (death& d : all) {
    if (straight.bodies > 0 && random.chance(0.6)) {
      d.at_body = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(straight.bodies)));
    } else {
      const auto most = static_cast<std::uint64_t>(straight.took / 1ns) + 2;
      d.after = weir::duration(static_cast<std::int64_t>(1 + random.below(most)));
    }
  }
  return all;
}

}  // namespace

TEST(durable_replay, random_programs_have_the_same_result_with_and_without_crashes) {
  const std::uint64_t end = first_seed() + replays(1500);
  for (std::uint64_t seed = first_seed(); seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    disk_support::generator random(seed);
    trial t{.seed = seed};
    const result straight = theatre(t).play();
    EXPECT_TRUE(straight.complaints.empty()) << test_support::joined(straight.complaints);
    EXPECT_FALSE(test_support::contains(straight.end, "failed: ")) << straight.end;
    t.deaths = random_deaths(random, straight);
    const result crashed_one = theatre(t).play();
    EXPECT_EQ(crashed_one.end, straight.end);
    EXPECT_TRUE(crashed_one.complaints.empty()) << test_support::joined(crashed_one.complaints);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(durable_replay, random_programs_in_random_orders_on_torn_disks_use_every_result_once) {
  const std::uint64_t end = first_seed() + replays(1500);
  for (std::uint64_t seed = first_seed(); seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    disk_support::generator random(seed);
    trial t{.seed = seed, .kind = flavour::wild, .strategy = sim::random};
    const result straight = theatre(t).play();
    EXPECT_TRUE(straight.complaints.empty()) << test_support::joined(straight.complaints);
    t.deaths = random_deaths(random, straight);
    t.faults = {.torn = 0.5, .reorder = 0.3, .short_write = 0.1};
    const result crashed_one = theatre(t).play();
    EXPECT_FALSE(crashed_one.end.starts_with("engine: ")) << crashed_one.end;
    EXPECT_FALSE(test_support::contains(crashed_one.end, "failed: ")) << crashed_one.end;
    EXPECT_NE(crashed_one.end, "no end");
    EXPECT_TRUE(crashed_one.complaints.empty()) << test_support::joined(crashed_one.complaints);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(durable_replay, runs_that_are_suspended_again_and_again_have_the_same_result) {
  const std::uint64_t end = first_seed() + replays(500);
  for (std::uint64_t seed = first_seed(); seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    disk_support::generator random(seed);
    trial t{.seed = seed, .runs = 4};
    const result straight = theatre(t).play();
    t.max_live = 1;
    const result suspended = theatre(t).play();
    EXPECT_EQ(suspended.end, straight.end);
    EXPECT_TRUE(suspended.complaints.empty()) << test_support::joined(suspended.complaints);
    t.deaths = random_deaths(random, straight);
    const result crashed_one = theatre(t).play();
    EXPECT_EQ(crashed_one.end, straight.end);
    EXPECT_TRUE(crashed_one.complaints.empty()) << test_support::joined(crashed_one.complaints);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(durable_replay, random_programs_that_are_cancelled_and_crashed_end) {
  const std::uint64_t end = first_seed() + replays(1500);
  for (std::uint64_t seed = first_seed(); seed < end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    disk_support::generator random(seed);
    trial t{.seed = seed, .kind = flavour::wild, .strategy = sim::random};
    const result straight = theatre(t).play();
    for (auto n = 1 + random.below(2); n > 0; --n) {
      const auto most = static_cast<std::uint64_t>(straight.took / 1ns) + 2;
      t.cancels.push_back(weir::duration(static_cast<std::int64_t>(1 + random.below(most))));
    }
    const result cancelled_one = theatre(t).play();
    EXPECT_TRUE(cancelled_one.complaints.empty()) << test_support::joined(cancelled_one.complaints);
    EXPECT_FALSE(test_support::contains(cancelled_one.end, "failed: ")) << cancelled_one.end;
    t.deaths = random_deaths(random, cancelled_one);
    const result crashed_one = theatre(t).play();
    EXPECT_FALSE(crashed_one.end.starts_with("engine: ")) << crashed_one.end;
    EXPECT_FALSE(test_support::contains(crashed_one.end, "failed: ")) << crashed_one.end;
    EXPECT_NE(crashed_one.end, "no end");
    EXPECT_TRUE(crashed_one.complaints.empty()) << test_support::joined(crashed_one.complaints);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(durable_replay, a_crash_at_every_body_of_one_program) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    trial t{.seed = seed};
    const result straight = theatre(t).play();
    for (int k = 1; k <= straight.bodies; ++k) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", body " + std::to_string(k));
      t.deaths = {{.at_body = k}};
      const result crashed_one = theatre(t).play();
      EXPECT_EQ(crashed_one.end, straight.end);
      EXPECT_TRUE(crashed_one.complaints.empty()) << test_support::joined(crashed_one.complaints);
      if (testing::Test::HasFailure()) return;
    }
  }
}
