// SPDX-License-Identifier: MIT
// The serial sinks. They close their source on every path.
#include <memory>
#include <sstream>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

task<bool> is_later(int n, int wanted) {
  co_await weir::sleep(1ms);
  co_return n == wanted;
}

/// What has become of the source of a sink that ended with an error.
task<> expect_closed_with(int number, std::exception_ptr error, const probe& p) {
  EXPECT_EQ(boom_of(error), number) << what_of(error);
  EXPECT_EQ(p.entered, 1);
  EXPECT_EQ(p.left, 1);
  co_return;
}

}  // namespace

TEST(stream_sink, each_sink_gives_its_answer_over_some_items) {
  for (const weir::duration pause : {weir::duration(0), weir::duration(1ms)}) {
    in_order([pause]() -> task<> {
      probe p{.items = from_to(1, 6), .pause = pause};
      auto all = co_await (feed(p) | weir::to_vector());
      EXPECT_EQ(all, from_to(1, 6));
      auto items = co_await (feed(p) | weir::count());
      EXPECT_EQ(items, 6);
      auto first = co_await (feed(p) | weir::first());
      EXPECT_EQ(first, 1);
      auto last = co_await (feed(p) | weir::last());
      EXPECT_EQ(last, 6);
      int sum = co_await (feed(p) | weir::fold(100, [](int a, int b) { return a + b; }));
      EXPECT_EQ(sum, 121);
      auto product = co_await (feed(p) | weir::reduce([](int a, int b) { return a * b; }));
      EXPECT_EQ(product, 720);
      auto found = co_await (feed(p) | weir::find([](int n) { return n > 3; }));
      EXPECT_EQ(found, 4);
      auto missing = co_await (feed(p) | weir::find([](int n) { return n > 9; }));
      EXPECT_FALSE(missing.has_value());
      numbers seen;
      co_await (feed(p) | weir::for_each([&](int n) { seen.push_back(n); }));
      EXPECT_EQ(seen, from_to(1, 6));
      EXPECT_EQ(p.entered, p.left);
    });
  }
}

FIBER_TEST(stream_sink, each_predicate_sink_answers_and_stops_where_the_answer_is_known) {
  const auto above = [](int limit) { return [limit](int n) { return n > limit; }; };
  const auto ask = [](auto sink, bool answer, int given) -> task<> {
    probe p{.items = from_to(1, 6)};
    bool said = co_await (feed(p) | std::move(sink));
    EXPECT_EQ(said, answer);
    EXPECT_EQ(p.given, given);
    EXPECT_EQ(p.left, 1);
  };
  co_await ask(weir::any_of(above(2)), true, 3);
  co_await ask(weir::any_of(above(9)), false, 6);
  co_await ask(weir::all_of(above(0)), true, 6);
  co_await ask(weir::all_of(above(1)), false, 1);
  co_await ask(weir::none_of(above(9)), true, 6);
  co_await ask(weir::none_of(above(4)), false, 5);
}

FIBER_TEST(stream_sink, each_sink_has_an_answer_for_no_items) {
  const auto add = [](int a, int b) { return a + b; };
  const auto never = [](int) { return false; };
  auto all = co_await (weir::empty<int>() | weir::to_vector());
  EXPECT_TRUE(all.empty());
  auto items = co_await (weir::empty<int>() | weir::count());
  EXPECT_EQ(items, 0);
  auto first = co_await (weir::empty<int>() | weir::first());
  auto last = co_await (weir::empty<int>() | weir::last());
  auto sum = co_await (weir::empty<int>() | weir::reduce(add));
  auto found = co_await (weir::empty<int>() | weir::find(never));
  EXPECT_FALSE(first || last || sum || found);
  int kept = co_await (weir::empty<int>() | weir::fold(5, add));
  EXPECT_EQ(kept, 5);
  bool any = co_await (weir::empty<int>() | weir::any_of(never));
  bool every = co_await (weir::empty<int>() | weir::all_of(never));
  bool none = co_await (weir::empty<int>() | weir::none_of(never));
  EXPECT_TRUE(!any && every && none);
}

FIBER_TEST_IN_EVERY_ORDER(stream_sink, callbacks_may_be_tasks) {
  probe p{.items = from_to(1, 4), .pause = 1ms};
  numbers seen;
  co_await (feed(p) | weir::for_each([&](int n) -> task<> {
              co_await weir::sleep(1ms);
              seen.push_back(n);
            }));
  EXPECT_EQ(seen, from_to(1, 4));
  auto found = co_await (feed(p) | weir::find([](int n) { return is_later(n, 3); }));
  EXPECT_EQ(found, 3);
  bool any = co_await (feed(p) | weir::any_of([](int n) { return is_later(n, 9); }));
  EXPECT_FALSE(any);
  const auto add = [](int a, int b) -> task<int> {
    co_await weir::yield();
    co_return a + b;
  };
  int sum = co_await (feed(p) | weir::fold(0, add));
  auto reduced = co_await (feed(p) | weir::reduce(add));
  EXPECT_EQ(sum + *reduced, 20);
  EXPECT_EQ(p.entered, p.left);
}

// Serial without a number: one pull, then one callback
FIBER_TEST_IN_EVERY_ORDER(stream_sink, without_a_number_a_sink_is_serial) {
  probe p{.items = from_to(1, 4), .pause = 1ms};
  int running = 0, most = 0, ahead = 0;
  co_await (feed(p) | weir::for_each([&](int n) -> task<> {
              most = std::max(most, ++running);
              co_await weir::sleep(3ms);
              ahead = std::max(ahead, p.given - n);
              --running;
            }));
  EXPECT_EQ(most, 1);
  EXPECT_EQ(ahead, 0);
}
FIBER_TEST(stream_sink, an_error_of_the_source_or_of_the_callback_closes_the_source_first) {
  probe source{.items = from_to(1, 4), .fails_behind = 2};
  auto error = co_await error_of(feed(source) | weir::to_vector());
  co_await expect_closed_with(7, error, source);
  probe plain{.items = from_to(1, 4)};
  error = co_await error_of(feed(plain) | weir::for_each([](int n) { throw boom(n); }));
  co_await expect_closed_with(1, error, plain);
  EXPECT_EQ(plain.given, 1);
  probe later{.items = from_to(1, 4)};
  auto fails = [&](int n) -> task<bool> {
    co_await weir::sleep(1ms);
    if (n == 2) throw boom(n);
    co_return false;
  };
  error = co_await error_of(feed(later) | weir::any_of(fails));
  co_await expect_closed_with(2, error, later);
  EXPECT_EQ(later.given, 2);
}

FIBER_TEST_IN_EVERY_ORDER(
    stream_sink, the_cleanup_of_the_source_is_awaited_before_the_answer_and_before_the_error) {
  text_log log;
  auto slow = [&] {
    return weir::finally([&log]() -> task<> {
      co_await weir::sleep(5ms);
      log.push_back("closed");
    });
  };
  auto found = co_await (weir::iota(0) | slow() | weir::find([](int n) { return n == 3; }));
  EXPECT_EQ(found, 3);
  EXPECT_EQ(log.size(), 1U);
  auto fails = [](int n) {
    if (n == 3) throw boom(n);
  };
  auto error = co_await error_of(weir::iota(0) | slow() | weir::for_each(fails));
  EXPECT_EQ(boom_of(error), 3);
  EXPECT_EQ(log.size(), 2U);
}

// The error of the close is the answer
FIBER_TEST(stream_sink, an_error_of_the_close_is_the_answer_of_an_early_exit) {
  auto fails = weir::finally([]() -> task<> { co_await fails_after(1ms, 9); });
  auto error = co_await error_of(weir::iota(0) | std::move(fails) | weir::first());
  EXPECT_EQ(boom_of(error), 9);
}

FIBER_TEST(stream_sink, first_pulls_one_item_only) {
  probe p{.items = from_to(1, 4)};
  auto first = co_await (feed(p) | weir::first());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(p.given, 1);
  EXPECT_EQ(p.left, 1);
}

FIBER_TEST(stream_sink, items_that_cannot_be_copied_reach_the_sink) {
  int alive = 0;
  auto make = [&] {
    return weir::iota(1, 4) | weir::map([&alive](int n) { return counted_value(n, alive); });
  };
  {
    auto all = co_await (make() | weir::to_vector());
    EXPECT_EQ(all.size(), 3U);
    EXPECT_EQ(alive, 3);
  }
  auto last = co_await (make() | weir::last());
  EXPECT_EQ(last->n, 3);
  int sum = 0;
  co_await (make() | weir::for_each([&](counted_value v) { sum += v.n; }));
  EXPECT_EQ(sum, 6);
  last.reset();
  EXPECT_EQ(alive, 0);
}
TEST(stream_sink, a_sink_cancelled_at_any_moment_leaves_its_source) {
  for (int moment = 0; moment <= 14; ++moment) {
    SCOPED_TRACE("after " + std::to_string(moment) + " half milliseconds");
    in_every_order([moment]() -> task<> {
      probe p{.items = from_to(1, 3), .pause = 1ms};
      int begun = 0, done = 0;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto slowly = [&](int) -> task<> {
          ++begun;
          const visit here(p);
          co_await weir::sleep(1ms);
          ++done;
        };
        auto sink = s.spawn(feed(p) | weir::for_each(slowly));
        co_await weir::sleep(moment * 500us);
        sink.cancel();
        co_await s.idle();
      });
      EXPECT_EQ(p.entered, p.left);
      EXPECT_LE(begun - done, 1);
      EXPECT_EQ(p.caught, 0);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(stream_sink, a_sink_is_an_operation_that_policies_and_combinators_take) {
  probe p{.items = from_to(1, 3), .pause = 10ms};
  auto error = co_await error_of(weir::with_timeout(15ms, feed(p) | weir::to_vector()));
  EXPECT_TRUE(holds<weir::timeout_error>(error));
  EXPECT_EQ(p.left, 1);
  auto [a, b] = co_await weir::all(feed(p) | weir::count(), feed(p) | weir::last());
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 3);
  EXPECT_EQ(p.entered, p.left);
}

// A consumer that always has something to do leaves the loop to others.
FIBER_TEST(stream_sink, a_long_synchronous_drain_gives_up_its_turn_now_and_then) {
  int turns = 0;
  bool over = false;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> {
      while (!over) {
        ++turns;
        co_await weir::yield();
      }
    });
    auto items = co_await (weir::iota(0, 100'000) | weir::count());
    over = true;
    EXPECT_EQ(items, 100'000);
    EXPECT_GT(turns, 50);
  });
}

FIBER_TEST(stream_sink, sources_of_all_kinds_give_their_items) {
  const numbers kept{1, 2, 3};
  auto copied = co_await (weir::from(kept) | weir::to_vector());
  EXPECT_EQ(copied, kept);
  std::vector<std::unique_ptr<int>> owned;
  owned.push_back(std::make_unique<int>(4));
  auto moved = co_await (weir::from(std::move(owned)) | weir::first());
  EXPECT_EQ(**moved, 4);
  auto halves = co_await (weir::unfold(20,
                                       [](int n) {
                                         using step = std::optional<std::pair<int, int>>;
                                         return n == 0 ? step() : step(std::pair(n, n / 2));
                                       }) |
                          weir::to_vector());
  EXPECT_EQ(halves, (numbers{20, 10, 5, 2, 1}));
  auto once = co_await (weir::once(7) | weir::to_vector());
  EXPECT_EQ(once, numbers{7});
  auto backwards = co_await (weir::iota(5, 2) | weir::count());
  EXPECT_EQ(backwards, 0);
  std::istringstream text("one\n\nthree");
  auto lines = co_await (weir::lines(text) | weir::to_vector());
  EXPECT_EQ(joined(lines), "one,,three");
  weir::queue<int> q(3);
  (void)q.try_push(8);
  q.close();
  auto queued = co_await (weir::from(q) | weir::to_vector());
  EXPECT_EQ(queued, numbers{8});
}

FIBER_TEST(stream_sink, defer_stream_makes_its_stream_at_the_first_pull) {
  int made = 0;
  auto s = weir::defer_stream([&] {
    ++made;
    return weir::iota(0, 2);
  });
  EXPECT_EQ(made, 0);
  auto all = co_await pull_all(s);
  EXPECT_EQ(all, (numbers{0, 1}));
  EXPECT_EQ(made, 1);
  auto fails = weir::defer_stream([]() -> weir::any_stream<int> { throw boom(1); });
  auto error = co_await pull_error(fails);
  EXPECT_EQ(boom_of(error), 1);
  int end = co_await pull_one(fails);
  EXPECT_EQ(end, -1);
}
FIBER_TEST(stream_sink, leaving_a_queue_early_takes_no_more_than_was_asked_for) {
  weir::queue<int> q(5);
  for (int i = 1; i <= 4; ++i) (void)q.try_push(i);
  auto s = weir::from(q);
  EXPECT_EQ(q.size(), 4);
  auto two = co_await (std::move(s) | weir::take(2) | weir::to_vector());
  EXPECT_EQ(two, (numbers{1, 2}));
  EXPECT_EQ(q.size(), 2);
  EXPECT_EQ(q.try_push(5), std::error_code());  // it is not closed
}
