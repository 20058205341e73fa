// SPDX-License-Identifier: MIT
// What every governor of the library has in common. Each is made with room for one
// permit.
#include <memory>
#include <optional>

#include "governor_support.hpp"

using namespace flow_test;

namespace {

struct counting_one {
  weir::counting_governor g{1, {.name = "one", .max_waiting = 2}};
};
struct shared_one {
  weir::shared_governor g{1, {.name = "one", .max_waiting = 2}};
};
struct burst_one {
  weir::burst_governor g{
      {.name = "one", .steady = 1, .burst = 1, .burst_for = 1s, .max_waiting = 2}};
};
struct adaptive_one {
  weir::adaptive_governor g{{.name = "one", .initial = 1, .min = 1, .max = 1, .max_waiting = 2}};
};
struct load_one {
  weir::load_governor g{{.name = "one", .max = 1, .max_waiting = 2}};
};
struct part_one {
  weir::partitioned_governor whole{1, {{"one", 1}, {"other", 1}}, {.max_waiting = 2}};
  weir::governor_part& g = whole.part("one");
};
struct composed_one {
  weir::counting_governor first{5, {.max_waiting = 2}};
  weir::counting_governor second{1, {.name = "one", .max_waiting = 2}};
  weir::composed_governor<weir::counting_governor, weir::counting_governor> g =
      weir::compose(first, second);
};
struct erased_one {
  weir::counting_governor kept{1, {.name = "one", .max_waiting = 2}};
  weir::any_governor g{kept};
};

template <class One>
class governor : public ::testing::Test {};
using all_governors = ::testing::Types<counting_one, shared_one, burst_one, adaptive_one, load_one,
                                       part_one, composed_one, erased_one>;
TYPED_TEST_SUITE(governor, all_governors, );

template <class G>
concept closable = requires(G& g) { g.close(); };
template <class G>
concept notifies_idle = requires(G& g) { g.on_idle([] {}); };

template <class G>
bool has_room(G& g) {
  return g.try_acquire().has_value();
}

}  // namespace
TYPED_TEST(governor, it_grants_up_to_its_limit_and_takes_permits_back_once) {
  simulate([]() -> task<> {
    TypeParam one;
    static_assert(weir::governor<decltype(one.g)>);
    auto held = co_await one.g.acquire();
    EXPECT_FALSE(has_room(one.g));
    held.release();
    held.release();
    auto again = one.g.try_acquire();
    EXPECT_TRUE(again.has_value());
    EXPECT_FALSE(has_room(one.g));
  });
}
TYPED_TEST(governor, strictly_first_come_first_served) {
  for_each_order([](weir::sim::world& w) {
    text_log log;
    w.run([&]() -> task<> {
      TypeParam one;
      auto held = co_await one.g.acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn(user(one.g, log, "a", 1ms));
        co_await weir::sleep(1ms);
        s.spawn(user(one.g, log, "b", 1ms));
        co_await weir::sleep(1ms);
        held.release();
        EXPECT_FALSE(has_room(one.g));
        co_await weir::sleep(500us);  // a has it, b waits
        auto newcomer = co_await one.g.acquire();
        log.push_back("newcomer");
      });
      EXPECT_TRUE(has_room(one.g));
    });
    EXPECT_EQ(joined(log), "a,b,newcomer");
  });
}
TYPED_TEST(governor, a_grant_that_meets_a_cancellation_goes_to_the_next) {
  for_each_order([](weir::sim::world& w) {
    w.run([]() -> task<> {
      TypeParam one;
      text_log log;
      auto held = co_await one.g.acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto first = s.spawn(user(one.g, log, "first", 0ms));
        co_await weir::sleep(1ms);
        s.spawn(user(one.g, log, "second", 0ms));
        co_await weir::sleep(1ms);
        held.release();
        first.cancel();
      });
      EXPECT_EQ(counted(log, "second"), 1);
      EXPECT_TRUE(has_room(one.g));
    });
  });
}

TYPED_TEST(governor, a_lost_race_takes_nothing_and_may_be_run_again) {
  for_each_order([](weir::sim::world& w) {
    w.run([]() -> task<> {
      TypeParam one;
      auto held = co_await one.g.acquire();
      for (int i = 0; i < 3; ++i) {
        auto first = co_await weir::race(one.g.acquire(), weir::sleep(1ms));
        EXPECT_EQ(first.index(), 1U);
      }
      held.release();
      auto first = co_await weir::race(one.g.acquire(), weir::sleep(1ms));
      EXPECT_EQ(first.index(), 0U);
    });
  });
}

TYPED_TEST(governor, acquire_for_gives_up_after_its_time) {
  for_each_order([](weir::sim::world& w) {
    w.run([]() -> task<> {
      TypeParam one;
      auto held = co_await one.g.acquire();
      const auto start = weir::now();
      auto error = co_await error_of(one.g.acquire_for(10ms));
      EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
      EXPECT_EQ(weir::now() - start, 10ms);
      held.release();
      auto permit = co_await one.g.acquire_for(10ms);
      EXPECT_TRUE(static_cast<bool>(permit));
    });
  });
}
TYPED_TEST(governor, with_gives_the_permit_back_on_value_error_and_cancellation) {
  for_each_order([](weir::sim::world& w) {
    w.run([]() -> task<> {
      TypeParam one;
      auto op = [&]() -> task<int> {
        EXPECT_FALSE(has_room(one.g));
        co_return 5;
      };
      const int value = co_await one.g.with(op);
      EXPECT_EQ(value, 5);
      auto failed = co_await error_of(weir::with(one.g, fails_after(1ms, 2)));
      EXPECT_EQ(boom_of(failed), 2);
      auto timed = co_await error_of(weir::with_timeout(5ms, one.g.with(after(1h, 1))));
      EXPECT_TRUE(holds<weir::timeout_error>(timed));
      EXPECT_TRUE(has_room(one.g));
    });
  });
}
TYPED_TEST(governor, wrapped_functions_share_the_limit) {
  for_each_order([](weir::sim::world& w) {
    w.run([]() -> task<> {
      TypeParam one;
      int inside = 0, most = 0;
      auto add = one.g.wrap([&](int a, std::unique_ptr<int> b) -> task<int> {
        most = std::max(most, ++inside);
        co_await weir::sleep(1ms);
        --inside;
        co_return a + *b;
      });
      auto twice = weir::wrap(one.g, [&](int a) -> task<int> {
        most = std::max(most, ++inside);
        co_await weir::sleep(1ms);
        --inside;
        co_return 2 * a;
      });
      auto sums = co_await weir::all(add(1, std::make_unique<int>(2)), twice(4));
      EXPECT_EQ(std::get<0>(sums), 3);
      EXPECT_EQ(std::get<1>(sums), 8);
      EXPECT_EQ(most, 1);
    });
  });
}

TYPED_TEST(governor, closing_fails_every_waiter_and_every_later_request) {
  if constexpr (closable<decltype(TypeParam::g)>) {
    for_each_order([](weir::sim::world& w) {
      w.run([]() -> task<> {
        TypeParam one;
        auto held = co_await one.g.acquire();
        int refusals = 0;
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          for (int i = 0; i < 2; ++i) {
            s.spawn([&]() -> task<> {
              auto error = co_await error_of(one.g.acquire());
              if (code_of(error) == errc::governor_closed) ++refusals;
            });
          }
          co_await weir::sleep(1ms);
          one.g.close();
        });
        EXPECT_EQ(refusals, 2);
        held.release();
        EXPECT_FALSE(has_room(one.g));
        auto late = co_await attempt([&] { return one.g.acquire(); });
        EXPECT_EQ(code_of(late), errc::governor_closed);
        EXPECT_TRUE(contains(what_of(late), "one")) << what_of(late);
      });
    });
  }
}

TYPED_TEST(governor, beyond_max_waiting_it_refuses) {
  for_each_order([](weir::sim::world& w) {
    w.run([]() -> task<> {
      TypeParam one;
      text_log log;
      auto held = co_await one.g.acquire();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto first = s.spawn(user(one.g, log, "first", 1ms));
        co_await weir::sleep(1ms);
        s.spawn(user(one.g, log, "second", 1ms));
        co_await weir::sleep(1ms);
        auto full = co_await attempt([&] { return one.g.acquire(); });
        EXPECT_EQ(code_of(full), errc::governor_full);
        EXPECT_TRUE(contains(what_of(full), "one")) << what_of(full);
        first.cancel();  // which frees its place
        co_await weir::sleep(1ms);
        s.spawn(user(one.g, log, "third", 1ms));
        co_await weir::sleep(1ms);
        held.release();
      });
      EXPECT_EQ(joined(log), "second,third");
    });
  });
}
TYPED_TEST(governor, idle_listeners_are_called_when_nothing_is_active_and_nobody_waits) {
  if constexpr (notifies_idle<decltype(TypeParam::g)>) {
    for_each_order([](weir::sim::world& w) {
      w.run([]() -> task<> {
        TypeParam one;
        text_log log;
        int first = 0, last = 0;
        one.g.on_idle([&] { ++first; });
        one.g.on_idle([] { throw boom(1); });
        one.g.on_idle([&] { ++last; });
        auto held = co_await one.g.acquire();
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          s.spawn(user(one.g, log, "waiter", 1ms));
          co_await weir::sleep(1ms);
          held.release();
          EXPECT_EQ(first, 0);  // the waiter has it now
        });
        EXPECT_EQ(first, 1);
        EXPECT_EQ(last, 1);
      });
    });
  }
}

TYPED_TEST(governor, with_inside_with_is_a_deadlock_that_is_found_and_named) {
  auto error = thrown_by([] {
    simulate([]() -> task<> {
      TypeParam one;
      auto inner = [&]() -> task<> { co_await one.g.with(weir::sleep(1ms)); };
      co_await one.g.with(inner);
    });
  });
  EXPECT_EQ(code_of(error), errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "acquire of governor 'one' (1 of 1 out)")) << what_of(error);
}

// Lost, it would be a deadlock.
TYPED_TEST(governor, a_permit_may_be_released_on_another_loop) {
  for_each_order([](weir::sim::world& w) {
    w.run([&]() -> task<> {
      TypeParam one;
      auto held = co_await one.g.acquire();
      w.loop("peer").post([&] { held.release(); });
      auto next = co_await one.g.acquire();
      EXPECT_TRUE(static_cast<bool>(next));
      co_await weir::sleep(1ms);  // what was composed comes home in two messages
    });
  });
}

TYPED_TEST(governor, it_belongs_to_one_loop_unless_it_is_shared) {
  weir::sim::world w;
  w.run([&]() -> task<> {
    TypeParam one;
    auto held = co_await one.g.acquire();
    held.release();
    std::exception_ptr error;
    auto elsewhere = [&]() -> task<> { error = co_await attempt([&] { return one.g.acquire(); }); };
    co_await weir::on(w.loop("peer"), elsewhere);
    if (std::is_same_v<TypeParam, shared_one>) {
      EXPECT_EQ(error, nullptr) << what_of(error);
    } else {
      EXPECT_EQ(code_of(error), errc::wrong_loop) << what_of(error);
    }
  });
}

TYPED_TEST(governor, destroyed_with_a_permit_out_it_aborts_with_its_name) {
  EXPECT_DEATH(simulate([]() -> task<> {
                 weir::permit held;
                 TypeParam one;
                 held = co_await one.g.acquire();
                 auto moved = std::make_unique<weir::permit>(std::move(held));
                 (void)moved.release();
               }),
               "'one' destroyed while 1 units are out");
}
