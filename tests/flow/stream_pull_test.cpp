// SPDX-License-Identifier: MIT
// However a stream is pulled (by itself, as an arm of a composite, behind a used-up budget), it
// gives the same items, and a pull that has ended is forgotten by everything below it. Keeps of the
// page: "No value is lost, the stream is still usable, and destroying it is synchronous."
#include "stream_support.hpp"

using namespace weir_test;

namespace {

weir::stream<int> steps(int first, int count, weir::duration pause) {
  for (int i = 0; i < count; ++i) {
    co_await weir::sleep(pause);
    co_yield first + i;
  }
}

/// Ways to await one pull.
enum class way { plain, raced, limited, in_any, in_all, in_turn };
constexpr way ways[] = {way::plain,  way::raced,  way::limited,
                        way::in_any, way::in_all, way::in_turn};

template <class S>
task<std::optional<int>> pull_by(way how, S& from) {
  switch (how) {
    case way::plain:
      co_return co_await from.next();
    case way::raced: {
      auto first = co_await weir::race(from.next(), weir::sleep(1h));
      co_return std::get<0>(std::move(first));
    }
    case way::limited:
      co_return co_await weir::with_timeout(1h, from.next());
    case way::in_any: {
      auto first = co_await weir::any(from.next(), weir::sleep(1h));
      co_return std::get<0>(std::move(first));
    }
    case way::in_all: {
      auto both = co_await weir::all(from.next(), weir::sleep(100us));
      co_return std::get<0>(std::move(both));
    }
    case way::in_turn:
      for (int i = 0; i < 256; ++i) co_await ready(i);  // the budget is used up
      co_return co_await from.next();
  }
  co_return std::nullopt;
}

/// Pulls everything, each time in another way, with a pause now and then.
template <class S>
task<numbers> pull_all_ways(S& from, std::size_t first) {
  numbers all;
  for (std::size_t i = first;; ++i) {
    auto item = co_await pull_by(ways[i % std::size(ways)], from);
    if (!item) break;
    all.push_back(*item);
    if (i % 3 == 0) co_await weir::sleep(1500us);
  }
  co_return all;
}

template <class Make>
void is_pulled_in_all_ways(Make make, const numbers& expected) {
  for (std::size_t first = 0; first < std::size(ways); ++first) {
    SCOPED_TRACE(first);
    in_every_order([&]() -> task<> {
      auto s = make();
      const numbers all = co_await pull_all_ways(s, first);
      EXPECT_EQ(sorted(all), expected);
    });
  }
}

}  // namespace

TEST(stream_pull, merge_gives_every_item_however_it_is_pulled) {
  is_pulled_in_all_ways([] { return weir::merge(steps(0, 3, 5ms), steps(10, 6, 1ms)); },
                        {0, 1, 2, 10, 11, 12, 13, 14, 15});
}

TEST(stream_pull, race_streams_gives_every_item_of_the_winner_however_it_is_pulled) {
  is_pulled_in_all_ways([] { return weir::race_streams(steps(0, 3, 5ms), steps(10, 3, 1ms)); },
                        {10, 11, 12});
}

TEST(stream_pull, take_until_gives_every_item_however_it_is_pulled) {
  is_pulled_in_all_ways([] { return steps(0, 4, 1ms) | weir::take_until(weir::sleep(1h)); },
                        {0, 1, 2, 3});
}

TEST(stream_pull, switch_map_gives_every_item_however_it_is_pulled) {
  is_pulled_in_all_ways(
      [] {
        return steps(0, 2, 20ms) | weir::switch_map([](int n) { return steps(10 * n, 2, 1ms); });
      },
      {0, 1, 10, 11});
}

TEST(stream_pull, a_limit_and_a_timeout_give_every_item_however_they_are_pulled) {
  is_pulled_in_all_ways([] { return steps(0, 4, 1ms) | weir::limit(1) | weir::timeout_each(1h); },
                        {0, 1, 2, 3});
}

TEST(stream_pull, concurrent_stages_give_every_item_however_they_are_pulled) {
  is_pulled_in_all_ways(
      [] {
        return weir::merge(
            steps(0, 3, 2ms) | weir::map_async(2, [](int n) { return after(1ms, n); }),
            steps(10, 3, 1ms) | weir::buffer(2));
      },
      {0, 1, 2, 10, 11, 12});
}

// A push wakes the pull that is pending, not one that ended long ago.
FIBER_TEST_IN_EVERY_ORDER(stream_pull,
                          a_source_that_was_pulled_through_a_composite_wakes_the_next_plain_pull) {
  weir::queue<int> a(1), b(1);
  auto both = weir::merge(a.stream(), b.stream());
  co_await b.push(1);
  auto first = co_await weir::with_timeout(1s, both.next());
  EXPECT_EQ(first, 1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto second = s.spawn(pull_one(both));
    co_await weir::sleep(1ms);
    co_await a.push(2);
    int got = co_await second;
    EXPECT_EQ(got, 2);
  });
}

FIBER_TEST_IN_EVERY_ORDER(stream_pull,
                          a_pull_that_lost_a_race_leaves_nothing_behind_that_refers_to_it) {
  auto both = weir::merge(steps(0, 3, 5ms), steps(10, 6, 1ms));
  numbers all;
  for (;;) {
    auto first = co_await weir::race(both.next(), weir::sleep(700us));
    if (first.index() == 1) continue;
    if (!std::get<0>(first)) break;
    all.push_back(*std::get<0>(first));
  }
  EXPECT_EQ(sorted(all), (numbers{0, 1, 2, 10, 11, 12, 13, 14, 15}));
}

// A generator that ends its own consumer, on the very turn on which the pull polls it.
FIBER_TEST_IN_EVERY_ORDER(stream_pull, a_consumer_that_its_own_generator_cancels_loses_no_item) {
  std::optional<weir::child<int>> consumer;
  bool cancels = true;
  auto make = [&]() -> weir::stream<int> {
    if (std::exchange(cancels, false)) consumer->cancel();
    co_yield 1;
    co_await weir::sleep(1ms);
    co_yield 2;
  };
  auto s = weir::merge(make(), weir::never<int>());
  co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& scope) -> task<> {
    consumer = scope.spawn([&]() -> task<int> {
      auto first = co_await weir::race(s.next(), weir::sleep(1h));
      co_return *std::get<0>(first);
    });
    co_await scope.idle();
  });
  numbers all;
  if (consumer->peek()->is_value()) all.push_back(consumer->peek()->value());
  for (int left = 2 - static_cast<int>(all.size()); left > 0; --left) {
    int next = co_await pull_one(s);
    all.push_back(next);
  }
  EXPECT_EQ(all, (numbers{1, 2}));
}

// A usual way to stop a callback interface: the resumer is dropped, and that is it.
FIBER_TEST_IN_EVERY_ORDER(stream_pull, a_callback_that_was_called_off_is_asked_for_again) {
  std::optional<weir::resumer<int>> asked;
  int starts = 0;
  auto make = [&]() -> weir::stream<int> {
    int v = co_await weir::suspend<int>([&](weir::resumer<int> r) {
      ++starts;
      asked = std::move(r);
      return [&] {
        asked.reset();
        return weir::cancel_result::done;
      };
    });
    co_yield v;
  };
  auto s = make();
  const auto error = co_await error_of(weir::with_timeout(1ms, s.next()));
  EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    auto got = scope.spawn(pull_one(s));
    co_await weir::sleep(1ms);
    asked->complete(4);
    EXPECT_EQ(co_await got, 4);
  });
  EXPECT_EQ(starts, 2);
}

// Nested pulls can be paused in every state, also when an item is just on its way.
FIBER_TEST_IN_EVERY_ORDER(stream_pull, a_generator_that_pulls_another_one_is_never_interrupted) {
  auto around = [](int levels, auto& self) -> weir::stream<int> {
    if (levels == 0) {
      for (int i = 0; i < 4; ++i) {
        co_await weir::sleep(1ms);
        co_yield i;
      }
      co_return;
    }
    auto below = self(levels - 1, self);
    for (;;) {
      auto first = co_await weir::race(below.next(), weir::sleep(1h));
      if (!std::get<0>(first)) co_return;
      co_yield *std::get<0>(first);
    }
  };
  auto s = weir::merge(around(2, around), weir::never<int>()) | weir::take(4);
  int given_up = 0;
  const numbers all = co_await pull_all_impatiently(s, 250us, given_up);
  EXPECT_EQ(all, (numbers{0, 1, 2, 3}));
}
