// SPDX-License-Identifier: MIT
// compose, any_governor, user-defined governors, and numbers where a governor is taken.
#include <memory>
#include <optional>
#include <vector>

#include "governor_support.hpp"

using namespace flow_test;

namespace {

/// A governor of one's own: it only counts, and its release fails if told so.
struct own_governor {
  int out = 0;
  int breaks = 0;

  weir::permit make() {
    ++out;
    return weir::permit([this] {
      --out;
      if (breaks != 0) throw boom(breaks);
    });
  }
  task<weir::permit> acquire() {
    co_await weir::sleep(1ms);
    co_return make();
  }
  std::optional<weir::permit> try_acquire() { return make(); }
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(compose, it_holds_the_first_while_it_waits_for_the_second) {
  weir::counting_governor a(2), b(1);
  auto both = weir::compose(a, b);
  auto first = co_await both.acquire();
  EXPECT_EQ(a.active(), 1);
  EXPECT_EQ(b.active(), 1);
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto waiter = s.spawn(user(both, log, "waiter", 1ms));
    co_await weir::sleep(1ms);
    EXPECT_EQ(a.active(), 2);
    EXPECT_EQ(b.waiting(), 1);
    EXPECT_FALSE(both.try_acquire().has_value());
    waiter.cancel();
    co_await weir::sleep(1ms);
    EXPECT_EQ(a.active(), 1);  // it comes back when the waiter is cancelled
    first.release();
    EXPECT_EQ(a.active(), 0);
    EXPECT_EQ(b.active(), 0);
    auto again = both.try_acquire();
    EXPECT_TRUE(again.has_value());
  });
}

FIBER_TEST(compose, try_acquire_takes_both_or_none) {
  weir::counting_governor a(1), b(0);
  auto both = weir::compose(a, b);
  EXPECT_FALSE(both.try_acquire().has_value());
  EXPECT_EQ(a.active(), 0);
  co_return;
}
FIBER_TEST(compose, errors_of_both_releases_come_out_together) {
  own_governor a, b;
  auto both = weir::compose(a, b);
  b.breaks = 2;
  auto permit = co_await both.acquire();
  auto one = thrown_by([&] { permit.release(); });
  EXPECT_EQ(boom_of(one), 2);
  EXPECT_EQ(a.out, 0);  // given back all the same
  a.breaks = 1;
  permit = co_await both.acquire();
  auto two = thrown_by([&] { permit.release(); });
  EXPECT_TRUE(holds<weir::error_group>(two)) << what_of(two);
  EXPECT_EQ(a.out + b.out, 0);
  auto three = co_await error_of(weir::with(both, fails_after(1ms, 3)));
  EXPECT_TRUE(holds<weir::error_group>(three));
}

FIBER_TEST(compose, compositions_can_be_composed_and_take_a_number) {
  weir::counting_governor a(5);
  weir::rate_governor rate({.per_second = 10, .burst = 3});
  auto inner = weir::compose(a, rate);
  auto all = weir::compose(inner, 2);
  auto one = co_await all.acquire();
  auto two = co_await all.acquire();
  EXPECT_FALSE(all.try_acquire().has_value());
  EXPECT_EQ(a.active(), 2);
  EXPECT_EQ(rate.active(), 2);
  EXPECT_EQ(refused([&] { (void)weir::compose(a, 0); }), errc::invalid_argument);
}

FIBER_TEST(any_governor, one_type_for_all_of_them) {
  weir::counting_governor counting(1, {.name = "counting"});
  weir::rate_governor rate({.per_second = 1, .burst = 1});
  weir::shared_governor shared(1);
  own_governor own;
  std::vector<weir::any_governor> all{counting, rate, shared, own};
  all.emplace_back(3);
  for (auto& g : all) {
    auto permit = co_await g.acquire();
    EXPECT_EQ(permit.weight(), 1);
  }
  EXPECT_EQ(all.at(0).name(), "counting");
  EXPECT_EQ(all.at(3).name(), "");
  EXPECT_EQ(own.out, 0);
  weir::any_governor copy = all.at(0);
  auto held = copy.try_acquire();
  EXPECT_EQ(counting.active(), 1);
  EXPECT_FALSE(all.at(0).try_acquire().has_value());
  EXPECT_EQ(refused([] { weir::any_governor none(0); }), errc::invalid_argument);
}

// A private one
FIBER_TEST(any_governor, a_number_is_a_counting_governor_that_copies_share) {
  weir::any_governor a(1);
  weir::any_governor b = a;
  auto held = co_await a.acquire();
  EXPECT_FALSE(b.try_acquire().has_value());
  held.release();
  EXPECT_TRUE(b.try_acquire().has_value());
}
FIBER_TEST(wrap, a_number_limits_the_calls_of_one_function_and_its_copies) {
  int inside = 0, most = 0;
  auto limited = weir::wrap(2, [&](int n) -> task<int> {
    most = std::max(most, ++inside);
    co_await weir::sleep(1ms);
    --inside;
    co_return n;
  });
  auto copy = limited;
  auto all = co_await weir::all(limited(1), copy(2), limited(3), copy(4));
  EXPECT_EQ(std::get<3>(all), 4);
  EXPECT_EQ(most, 2);
}
FIBER_TEST(governors_of_ones_own, with_works_and_an_error_of_the_release_comes_out) {
  own_governor own;
  own.breaks = 7;
  auto error = co_await error_of(weir::with(own, after(1ms, 1)));
  EXPECT_EQ(boom_of(error), 7);
  EXPECT_EQ(own.out, 0);
  auto fn = weir::wrap(own, [](int n) { return after(1ms, n); });
  own.breaks = 0;
  const int value = co_await fn(5);
  EXPECT_EQ(value, 5);
  EXPECT_EQ(own.out, 0);
}
