// SPDX-License-Identifier: MIT
// stats: counts of events in the process.
#include <string>
#include <thread>

#include "core/counters.hpp"
#include "policy_support.hpp"

using namespace policy_test;
using weir::cancel_kind;

namespace {

std::uint64_t counter(std::string_view object, std::string_view what) {
  return weir::stats().counter(object, what);
}

task<> fails_without_result() {
  throw boom(1);
  co_return;
}

}  // namespace

TEST(stats, events_are_counted_by_object_and_name_also_after_their_loop_has_ended) {
  weir::circuit_breaker cb({.name = "counted breaker", .failure_ratio = 1, .minimum_calls = 2});
  simulate([&]() -> task<> {
    auto o = weir::op(fails_without_result) | weir::breaker(cb);
    for (int i = 0; i < 5; ++i) (void)co_await error_of(o());
  });
  EXPECT_EQ(counter("counted breaker", "opened"), 1u);
  EXPECT_EQ(counter("counted breaker", "rejected"), 3u);
  EXPECT_EQ(counter("counted breaker", "closed"), 0u);
  EXPECT_EQ(counter("nobody", "opened"), 0u);
}

TEST(stats, counts_go_on_from_one_loop_to_the_next) {
  const std::uint64_t before = counter("retry", "attempt");
  for (int i = 0; i < 3; ++i) {
    simulate([]() -> task<> {
      auto o = weir::op([] { return ready(1); }) | weir::retry();
      (void)co_await o();
    });
  }
  EXPECT_EQ(counter("retry", "attempt"), before + 3);
}

TEST(stats, events_of_every_layer_are_counted) {
  const std::uint64_t before = counter("counted scope", "cancel");
  simulate([]() -> task<> {
    (void)co_await error_of(
        weir::with_scope({.name = "counted scope"}, [](weir::scope& s) -> task<> {
          s.cancel();
          co_await weir::sleep(1h);
        }));
  });
  EXPECT_EQ(counter("counted scope", "cancel"), before + 1);
}

TEST(stats, cancellations_are_counted_by_kind) {
  const std::uint64_t user = weir::stats().cancels(cancel_kind::user);
  const std::uint64_t timeout = weir::stats().cancels(cancel_kind::timeout);
  const std::uint64_t hedged = weir::stats().cancels(cancel_kind::hedge_lost);
  const std::uint64_t signal = weir::stats().cancels(cancel_kind::signal);
  simulate([]() -> task<> {
    auto slow = [] { return after(1h, 1); };
    for (int i = 0; i < 3; ++i) (void)co_await error_of(weir::with_timeout(1ms, slow));
    int started = 0;
    auto second = [&] {
      ++started;
      return after(started == 2 ? weir::duration(1ms) : 1h, started);
    };
    auto o = weir::op(second) | weir::hedge({.after = 1ms});
    (void)co_await o();
    (void)co_await error_of(weir::with_scope([](weir::scope& s) -> task<> {
      s.cancel();
      co_await weir::sleep(1h);
    }));
  });
  EXPECT_EQ(weir::stats().cancels(cancel_kind::timeout), timeout + 3);
  EXPECT_EQ(weir::stats().cancels(cancel_kind::hedge_lost), hedged + 1);
  EXPECT_EQ(weir::stats().cancels(cancel_kind::user), user + 1);
  EXPECT_EQ(weir::stats().cancels(cancel_kind::signal), signal);
}

TEST(stats, objects_and_names_of_any_length_are_told_apart) {
  using weir::detail::counters;
  const std::string a(150, 'a');
  std::string b(150, 'a');
  b[70] = 'b';
  for (const std::string& object : {std::string(), std::string("x"), std::string("xy"),
                                    std::string("xyz"), std::string("yxz"), a, b}) {
    const auto before = counter(object, "what");
    counters::count(object, "what");
    counters::count(object, "something much longer than that");
    EXPECT_EQ(counter(object, "what"), before + 1) << object;
  }
  EXPECT_EQ(counter(a, "what"), 1u);
  EXPECT_EQ(counter(b, "what"), 1u);
  EXPECT_EQ(counter("xyz", "what"), 1u);
}

TEST(stats, too_many_objects_are_counted_as_one_number_and_nothing_is_lost) {
  using weir::detail::counters;
  const std::uint64_t before = weir::stats().uncounted();
  constexpr std::uint64_t many = 5000;
  std::thread([] {  // whose table is full afterwards
    for (std::uint64_t i = 0; i < many; ++i) counters::count("object " + std::to_string(i), "seen");
  })
      .join();
  std::uint64_t known = 0;
  for (std::uint64_t i = 0; i < many; ++i) known += counter("object " + std::to_string(i), "seen");
  EXPECT_LE(known, counters::pairs_max);
  EXPECT_GT(known, counters::pairs_max / 2);
  EXPECT_EQ(known + weir::stats().uncounted() - before, many);
}

TEST(stats, it_may_be_asked_without_a_loop) {
  EXPECT_EQ(weir::stats().counter("nothing", "at all"), 0u);
  EXPECT_EQ(weir::stats().cancels(static_cast<cancel_kind>(99)), 0u);
}
