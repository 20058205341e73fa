// SPDX-License-Identifier: MIT
// A run that reaches its limit of steps ends like a crash. Here that happens to small programs at
// every step that they have, one after the other, and nothing of them may be left.
#include <cstdint>
#include <memory>
#include <utility>

#include "sim_support.hpp"

using namespace weir_test;

namespace {

/// Counts how many of it live. It owns memory, so that a sanitizer sees a second destruction.
class object {
 public:
  object() { ++alive; }
  object(const object& other) : number_(std::make_unique<int>(*other.number_)) { ++alive; }
  object& operator=(const object&) = delete;
  ~object() { --alive; }
  static inline int alive = 0;

 private:
  std::unique_ptr<int> number_ = std::make_unique<int>(7);
};

task<object> leaf(int turns) {
  const object mine;
  for (int i = 0; i < turns; ++i) co_await weir::yield();
  co_await weir::sleep(1ms);
  co_return mine;
}

task<object> failing(int turns) {
  const object mine;
  for (int i = 0; i < turns; ++i) co_await weir::yield();
  throw boom(turns);
}

/// If it is destroyed by a cancellation it calls what it can reach.
class noisy {
 public:
  explicit noisy(weir::scope& s) : scope_(&s) {}
  explicit noisy(weir::counting_governor& g) : governor_(&g) {}
  noisy(const noisy&) = delete;
  noisy& operator=(const noisy&) = delete;
  ~noisy() {
    if (weir::unwinding() == nullptr) return;
    // In a world that is not dead the scope may be closed by now.
    (void)thrown_by([&] { call_everything(); });
  }

 private:
  void call_everything() {
    (void)weir::now();
    (void)weir::random();
    if (governor_ != nullptr) (void)governor_->try_acquire();
    if (scope_ == nullptr) return;
    (void)scope_->spawn(leaf(0));
    scope_->cancel();
  }
  weir::scope* scope_ = nullptr;
  weir::counting_governor* governor_ = nullptr;
  object mine_;
};

task<> service_with_a_defer(weir::context& c) {
  const object mine;
  c.defer([kept = mine]() -> task<> {
    const object own;
    (void)co_await leaf(3);
  });
  co_await weir::sleep(1h);
}

task<> shielded_service() {
  const object mine;
  (void)co_await weir::shield(leaf(4));
  co_await weir::sleep(1h);
}

task<> services() {
  const object mine;
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    const noisy body(s);
    s.background(service_with_a_defer);
    s.background(shielded_service);
    s.defer([kept = object()]() -> task<> { (void)co_await leaf(2); });
    for (int i = 0; i < 3; ++i) s.spawn(leaf(i));
    co_await s.join();
  });
}

task<> permits() {
  weir::counting_governor gate(2, {.name = "gate"});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 5; ++i) {
      s.spawn([&gate, i]() -> task<> {
        const noisy body(gate);
        const auto permit = co_await gate.acquire(1 + i % 2);
        (void)co_await leaf(1);
      });
    }
    co_await s.join();
  });
}

task<> scope_that_fails() {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    s.defer([]() -> task<> { (void)co_await leaf(3); });
    s.spawn(failing(2));
    s.spawn([]() -> task<> {
      const object mine;
      (void)co_await weir::shield(leaf(5));
    });
    co_await weir::sleep(1h);
  });
}

task<> failures() {
  const auto how = co_await weir::settle(scope_that_fails());
  EXPECT_EQ(boom_of(how.error()), 2);
}

task<> arms() {
  (void)co_await weir::race(leaf(3), leaf(1), leaf(2));
  (void)co_await weir::all(leaf(1), leaf(2));
  const auto both = [] { return weir::all(leaf(4), failing(1)); };
  const auto error = co_await attempt(both);
  EXPECT_EQ(boom_of(error), 1);
}

/// Waits for an answer that its canceller makes impossible.
auto never_answered() {
  auto kept = std::make_shared<weir::resumer<object>>();
  return weir::suspend<object>([kept](weir::resumer<object> r) {
    *kept = std::move(r);
    return [kept] {
      const auto dropped = std::move(*kept);
      return weir::cancel_result::done;
    };
  });
}

task<> answers() {
  weir::resumer<object> answer;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      const object got = co_await weir::suspend<object>([&](weir::resumer<object> r) {
        answer = std::move(r);
        return [] { return weir::cancel_result::no; };
      });
    });
    s.spawn([&]() -> task<> {
      co_await weir::sleep(3ms);
      answer.complete(object());
    });
    s.spawn([]() -> task<> { (void)co_await weir::race(never_answered(), leaf(2)); });
    co_await s.join();
  });
}

task<> scope_that_never_ends() {
  const object mine;
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    s.defer([]() -> task<> { co_await weir::sleep(1ms); });
    s.spawn(leaf(9));
    co_await weir::sleep(1h);
  });
}

task<> time_limits() {
  const auto how = co_await weir::settle(weir::with_timeout(2ms, scope_that_never_ends()));
  EXPECT_TRUE(holds<weir::timeout_error>(how.error()));
}

task<> waits_for(weir::future<object> other) { (void)co_await other; }

task<> tokens_and_futures() {
  weir::cancel_source stop;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(
        [&]() -> task<> { (void)co_await weir::settle(weir::with_token(stop.token(), leaf(20))); });
    s.spawn([&]() -> task<> {
      co_await weir::sleep(1ms);
      stop.cancel("enough");
    });
    const weir::future<object> shared = s.spawn(leaf(3));
    s.spawn(waits_for(shared));
    s.spawn([shared]() -> task<> {
      (void)co_await weir::settle(weir::with_timeout(1ms, waits_for(shared)));
    });
    co_await s.join();
  });
}

task<> says_when_it_is_up(weir::started<object>& up) {
  const object mine;
  co_await weir::yield();
  (void)co_await leaf(1);
  up(object());
  (void)co_await leaf(2);
}

task<> starts() {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    const auto child = co_await s.start(says_when_it_is_up);
    co_await s.join();
  });
}

task<object> value_with_a_defer(weir::context& c) {
  c.defer([]() -> task<> {
    co_await weir::yield();
    (void)co_await leaf(1);
  });
  co_return object();
}

task<> isolated() {
  const auto scope = [] {
    return weir::with_scope({.failure = weir::failure::isolate}, [](weir::scope& s) -> task<> {
      s.spawn(failing(1));
      s.spawn(failing(2));
      s.spawn(value_with_a_defer);
      co_await s.join();
    });
  };
  const auto error = co_await attempt(scope);
  EXPECT_NE(error, nullptr);
}

/// One run; true if it came to its end. Either way nothing of it is left.
template <class F>
bool ends_within_its_steps(const sim::options& options, F program) {
  const auto error = thrown_by([&] { sim::run(options, program); });
  const bool ended = error == nullptr;
  EXPECT_TRUE(ended || code_of(error) == weir::errc::livelock) << what_of(error);
  EXPECT_EQ(object::alive, 0);
  const auto left = weir::live();
  EXPECT_EQ(left.loops + left.scopes + left.fibers + left.timers, 0);
  return ended;
}

/// Ends the program after its first step, after its second, and so on until it ends by itself.
template <class F>
void evict_at_every_step(F program) {
  for (const auto strategy : {sim::fifo, sim::random, sim::pct(3)}) {
    const std::uint64_t last_seed = strategy == sim::fifo ? 1 : 12;
    for (std::uint64_t seed = 1; seed <= last_seed; ++seed) {
      sim::options options{.seed = seed, .strategy = strategy, .max_steps = 1};
      while (!ends_within_its_steps(options, program) && !testing::Test::HasFailure())
        ++options.max_steps;
      ASSERT_FALSE(testing::Test::HasFailure())
          << to_string(strategy) << ", seed " << seed << ", " << options.max_steps << " steps";
      EXPECT_GT(options.max_steps, 5);
    }
  }
}

}  // namespace

TEST(evict_everywhere, services_and_defers_leave_nothing) { evict_at_every_step(services); }
TEST(evict_everywhere, permits_and_their_waiters_leave_nothing) { evict_at_every_step(permits); }
TEST(evict_everywhere, a_failing_scope_leaves_nothing) { evict_at_every_step(failures); }
TEST(evict_everywhere, race_and_all_leave_nothing) { evict_at_every_step(arms); }
TEST(evict_everywhere, suspends_and_their_answers_leave_nothing) { evict_at_every_step(answers); }
TEST(evict_everywhere, a_time_limit_leaves_nothing) { evict_at_every_step(time_limits); }
TEST(evict_everywhere, tokens_and_futures_leave_nothing) {
  evict_at_every_step(tokens_and_futures);
}
TEST(evict_everywhere, a_child_that_is_starting_leaves_nothing) { evict_at_every_step(starts); }
TEST(evict_everywhere, isolated_children_leave_nothing) { evict_at_every_step(isolated); }
