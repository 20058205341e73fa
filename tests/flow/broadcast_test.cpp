// SPDX-License-Identifier: MIT
// broadcast: every overflow policy with its exact counts, the ways to end it, subscribers that
// come, wait and leave. Order under an adversary and random sequences: broadcast_order_test.cpp
// and broadcast_model_test.cpp.
#include <memory>

#include "flow_support.hpp"

using namespace weir_test;
using int_broadcast = weir::broadcast<int>;
using subscription = weir::subscription<int>;
using weir::emit_result;
using weir::overflow;

namespace {

void emit_all(int_broadcast& b, int first, int last) {
  for (int i = first; i <= last; ++i) (void)b.try_emit(i);
}

/// What is left after the end was told: every item and the misses before it, "3" or "3(-2)".
task<std::string> story(subscription& sub) {
  std::string all;
  for (;;) {
    auto v = co_await sub.next();
    if (!v) co_return all;
    if (!all.empty()) all += ' ';
    all += std::to_string(*v);
    if (sub.missed() > 0) all += "(-" + std::to_string(sub.missed()) + ")";
  }
}

task<std::error_code> code_of_next(subscription& sub) {
  auto make = [&] { return sub.next(); };
  co_return co_await code_after(make);
}

}  // namespace

FIBER_TEST(broadcast, every_subscriber_sees_every_item_from_its_subscription_on) {
  int_broadcast b(8);
  EXPECT_EQ(b.try_emit(1), emit_result::delivered);
  auto one = b.subscribe();
  EXPECT_EQ(b.try_emit(2), emit_result::delivered);
  auto two = b.subscribe();
  EXPECT_EQ(b.subscribers(), 2U);
  co_await b.emit(3);
  b.close();
  const std::string first = co_await story(one);
  const std::string second = co_await story(two);
  EXPECT_EQ(first, "2 3");
  EXPECT_EQ(second, "3");
}

FIBER_TEST(broadcast, without_subscribers_nothing_waits_and_nothing_is_refused) {
  int_broadcast b(1);
  for (int i = 0; i < 100; ++i) {
    co_await b.emit(i);
    EXPECT_EQ(b.try_emit(i), emit_result::delivered);
  }
}

FIBER_TEST(broadcast, emit_waits_for_a_full_subscriber_and_goes_on_when_that_one_reads) {
  int_broadcast b(2);
  auto slow = b.subscribe();
  auto quick = b.subscribe();
  numbers accepted;
  emit_all(b, 1, 2);
  EXPECT_EQ(b.try_emit(99), emit_result::refused);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(emit_one(b, 3, accepted));
    co_await settled();
    int v = co_await take_one(quick);
    EXPECT_EQ(v, 1);
    co_await settled();
    EXPECT_TRUE(accepted.empty());
    v = co_await take_one(slow);
    EXPECT_EQ(v, 1);
    co_await settled();
    EXPECT_EQ(accepted, numbers{3});
  });
  b.close();
  const std::string slow_saw = co_await story(slow);
  const std::string quick_saw = co_await story(quick);
  EXPECT_EQ(slow_saw, "2 3");
  EXPECT_EQ(quick_saw, "2 3");
}
FIBER_TEST(broadcast, drop_oldest_keeps_the_last_items_and_counts_the_others) {
  int_broadcast b(2);
  auto sub = b.subscribe({.overflow = overflow::drop_oldest});
  EXPECT_EQ(b.try_emit(0), emit_result::delivered);
  EXPECT_EQ(b.try_emit(1), emit_result::delivered);
  EXPECT_EQ(b.try_emit(2), emit_result::dropped);
  emit_all(b, 3, 99);
  EXPECT_EQ(sub.missed_total(), 98U);
  EXPECT_EQ(sub.missed(), 0U);
  b.close();
  const std::string saw = co_await story(sub);
  EXPECT_EQ(saw, "98(-98) 99");
  EXPECT_EQ(sub.missed_total(), 98U);
}

FIBER_TEST(broadcast, drop_newest_keeps_the_first_items_and_counts_what_came_between) {
  int_broadcast b(2);
  auto sub = b.subscribe({.overflow = overflow::drop_newest});
  emit_all(b, 0, 4);
  EXPECT_EQ(sub.missed_total(), 3U);
  const int first = co_await take_one(sub);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(sub.missed(), 0U);
  EXPECT_EQ(b.try_emit(5), emit_result::delivered);
  EXPECT_EQ(b.try_emit(6), emit_result::dropped);
  b.close();
  const std::string saw = co_await story(sub);
  EXPECT_EQ(saw, "1 5(-3)");
  EXPECT_EQ(sub.missed_total(), 4U);
}

FIBER_TEST(broadcast, conflate_keeps_the_latest_item_only_and_counts_the_others) {
  int_broadcast b(4);
  auto sub = b.subscribe({.overflow = overflow::conflate});
  EXPECT_EQ(b.try_emit(0), emit_result::delivered);
  EXPECT_EQ(b.try_emit(1), emit_result::dropped);
  EXPECT_EQ(sub.missed_total(), 1U);
  emit_all(b, 2, 9);
  EXPECT_EQ(sub.missed_total(), 9U);
  const int first = co_await take_one(sub);
  EXPECT_EQ(first, 9);
  EXPECT_EQ(sub.missed(), 9U);
  EXPECT_EQ(b.try_emit(10), emit_result::delivered);
  b.close();
  const std::string saw = co_await story(sub);
  EXPECT_EQ(saw, "10");
  EXPECT_EQ(sub.missed_total(), 9U);
}

FIBER_TEST(broadcast, disconnect_cuts_off_a_subscriber_that_is_too_slow_and_nobody_else) {
  int_broadcast b(2);
  auto slow = b.subscribe({.overflow = overflow::disconnect});
  auto other = b.subscribe({.overflow = overflow::drop_oldest});
  emit_all(b, 0, 1);
  EXPECT_EQ(b.try_emit(2), emit_result::dropped);
  const std::error_code code = co_await code_of_next(slow);
  EXPECT_EQ(code, errc::lagged);
  b.close();
  const std::string saw = co_await story(other);
  EXPECT_EQ(saw, "1(-1) 2");
}

FIBER_TEST(broadcast, disconnect_leaves_a_subscriber_alone_that_is_exactly_full) {
  int_broadcast b(2);
  auto sub = b.subscribe({.overflow = overflow::disconnect});
  emit_all(b, 0, 1);
  b.close();
  const std::string saw = co_await story(sub);
  EXPECT_EQ(saw, "0 1");
}

FIBER_TEST(broadcast, a_stream_of_a_disconnected_subscriber_fails_once_and_ends) {
  int_broadcast b(1);
  auto sub = b.subscribe({.overflow = overflow::disconnect});
  emit_all(b, 0, 1);
  auto stream = sub.stream();
  auto next = [&] { return stream.next(); };
  const std::error_code code = co_await code_after(next);
  EXPECT_EQ(code, errc::lagged);
  auto end = co_await stream.next();
  EXPECT_EQ(end, std::nullopt);
}

FIBER_TEST(broadcast, fail_emitter_fails_the_emitter_and_nobody_gets_the_item) {
  int_broadcast b(2);
  auto strict = b.subscribe({.overflow = overflow::fail_emitter});
  auto other = b.subscribe();
  emit_all(b, 0, 1);
  (void)co_await take_one(other);
  auto make = [&] { return b.emit(2); };
  const std::error_code code = co_await code_after(make);
  EXPECT_EQ(code, errc::queue_full);
  EXPECT_EQ(b.try_emit(3), emit_result::refused);
  (void)co_await take_one(strict);
  co_await b.emit(4);
  b.close();
  const std::string saw = co_await story(other);
  EXPECT_EQ(saw, "1 4");
}

FIBER_TEST(broadcast, a_dropping_subscriber_does_not_help_when_another_one_waits) {
  int_broadcast b(1);
  auto waits = b.subscribe();
  auto drops = b.subscribe({.overflow = overflow::drop_oldest});
  EXPECT_EQ(b.try_emit(1), emit_result::delivered);
  EXPECT_EQ(b.try_emit(2), emit_result::refused);
  (void)co_await take_one(waits);
  EXPECT_EQ(b.try_emit(3), emit_result::dropped);
  EXPECT_EQ(drops.missed_total(), 1U);
}

FIBER_TEST(broadcast, replay_begins_as_far_back_as_the_ring_goes) {
  int_broadcast b(3);
  emit_all(b, 1, 5);
  auto none = b.subscribe();
  auto two = b.subscribe({.replay = 2});
  auto all = b.subscribe({.replay = 100});
  auto window = b.subscribe({.overflow = overflow::drop_newest, .replay = 2});
  (void)co_await take_one(all);
  EXPECT_EQ(b.try_emit(6), emit_result::delivered);
  b.close();
  const std::string a = co_await story(none);
  const std::string c = co_await story(two);
  const std::string d = co_await story(all);
  const std::string e = co_await story(window);
  EXPECT_EQ(a, "6");
  EXPECT_EQ(c, "4 5 6");
  EXPECT_EQ(d, "4 5 6");
  EXPECT_EQ(e, "4 5 6");
  EXPECT_EQ(two.missed_total() + all.missed_total() + window.missed_total(), 0U);
}

FIBER_TEST(broadcast, the_end_comes_after_the_buffered_items_and_stays) {
  int_broadcast b(4);
  auto sub = b.subscribe();
  emit_all(b, 1, 2);
  b.close();
  b.close();
  EXPECT_TRUE(b.closed());
  const std::string saw = co_await story(sub);
  EXPECT_EQ(saw, "1 2");
  auto again = co_await sub.next();
  EXPECT_EQ(again, std::nullopt);
  auto late = b.subscribe();
  auto nothing = co_await late.next();
  EXPECT_EQ(nothing, std::nullopt);
}
FIBER_TEST(broadcast, an_error_reaches_every_subscriber_after_its_items_once_and_then_the_end) {
  int_broadcast b(4);
  auto behind = b.subscribe();
  auto level = b.subscribe();
  emit_all(b, 1, 1);
  (void)co_await take_one(level);
  b.fail(std::make_exception_ptr(boom(7)));
  b.fail(std::make_exception_ptr(boom(8)));
  const int item = co_await take_one(behind);
  EXPECT_EQ(item, 1);
  auto late = b.subscribe({.replay = 1});
  const int replayed = co_await take_one(late);
  EXPECT_EQ(replayed, 1);
  for (subscription* sub : {&behind, &level, &late}) {
    const std::exception_ptr error = co_await error_of(sub->next());
    EXPECT_EQ(boom_of(error), 7);
    auto end = co_await sub->next();
    EXPECT_EQ(end, std::nullopt);
  }
}

TEST(broadcast, the_end_and_the_error_wake_subscribers_that_wait) {
  for (bool with_error : {false, true}) {
    in_order([with_error]() -> task<> {
      int_broadcast b(1);
      auto one = b.subscribe();
      auto two = b.subscribe({.overflow = overflow::drop_newest});
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto a = s.spawn(error_of(one.next()));
        auto c = s.spawn(error_of(two.next()));
        co_await settled();
        with_error ? b.fail(std::make_exception_ptr(boom(1))) : b.close();
        const std::exception_ptr first = co_await a;
        const std::exception_ptr second = co_await c;
        EXPECT_EQ(boom_of(first), with_error ? 1 : -1);
        EXPECT_EQ(boom_of(second), with_error ? 1 : -1);
      });
    });
  }
}

FIBER_TEST(broadcast, emit_after_the_end_and_a_parked_emit_are_refused) {
  int_broadcast b(1);
  auto sub = b.subscribe();
  emit_all(b, 1, 1);
  auto make = [&] { return b.emit(2); };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto parked = s.spawn(code_after(make));
    co_await settled();
    b.close();
    const std::error_code code = co_await parked;
    EXPECT_EQ(code, errc::queue_closed);
  });
  const std::error_code later = co_await code_after(make);
  EXPECT_EQ(later, errc::queue_closed);
  EXPECT_EQ(code_thrown_by([&] { (void)b.try_emit(3); }), errc::queue_closed);
  const std::string saw = co_await story(sub);
  EXPECT_EQ(saw, "1");
}
FIBER_TEST(broadcast, leaving_unsubscribes_at_once_and_frees_the_items) {
  auto item = std::make_shared<int>(1);
  weir::broadcast<std::shared_ptr<int>> b(1);
  {
    auto sub = b.subscribe({.overflow = overflow::drop_newest});
    (void)b.try_emit(item);
    (void)b.try_emit(nullptr);
    EXPECT_EQ(item.use_count(), 2);
    EXPECT_EQ(b.subscribers(), 1U);
  }
  EXPECT_EQ(b.subscribers(), 0U);
  EXPECT_EQ(item.use_count(), 1);
  for (int i = 0; i < 100; ++i) (void)b.subscribe();
  EXPECT_EQ(b.subscribers(), 0U);
  co_return;
}

FIBER_TEST(broadcast, an_emitter_goes_on_when_the_slow_subscriber_leaves) {
  int_broadcast b(1);
  auto stays = b.subscribe({.overflow = overflow::drop_oldest});
  std::optional<subscription> slow(b.subscribe());
  emit_all(b, 1, 1);
  numbers accepted;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(emit_one(b, 2, accepted));
    s.spawn(emit_one(b, 3, accepted));
    co_await settled();
    EXPECT_TRUE(accepted.empty());
    slow.reset();
    co_await settled();
    EXPECT_EQ(accepted, from_to(2, 3));
  });
}

FIBER_TEST(broadcast, a_subscription_moves_with_its_place) {
  int_broadcast b(4);
  auto sub = b.subscribe();
  emit_all(b, 1, 2);
  (void)co_await take_one(sub);
  subscription moved = std::move(sub);
  const int second = co_await take_one(moved);
  EXPECT_EQ(second, 2);
  moved = b.subscribe({.replay = 1});
  EXPECT_EQ(b.subscribers(), 1U);
  const int again = co_await take_one(moved);
  EXPECT_EQ(again, 2);
}

FIBER_TEST(broadcast, subscribers_outlive_it_and_see_the_end) {
  auto b = std::make_unique<int_broadcast>(4);
  auto sub = b->subscribe();
  emit_all(*b, 1, 2);
  b.reset();
  const std::string saw = co_await story(sub);
  EXPECT_EQ(saw, "1 2");
}

FIBER_TEST(broadcast, a_stream_of_a_subscription_can_be_used_like_any_other) {
  int_broadcast b(8);
  auto sub = b.subscribe();
  emit_all(b, 1, 6);
  b.close();
  auto even = [](int v) { return v % 2 == 0; };
  auto all = co_await (sub.stream() | weir::filter(even) | weir::to_vector());
  EXPECT_EQ(all, (numbers{2, 4, 6}));
}

FIBER_TEST(broadcast, at_most_capacity_times_subscribers_and_one_items_are_kept) {
  weir::broadcast<std::shared_ptr<int>> b(3);
  auto newest = b.subscribe({.overflow = overflow::drop_newest});
  auto oldest = b.subscribe({.overflow = overflow::drop_oldest});
  auto latest = b.subscribe({.overflow = overflow::conflate});
  std::vector<std::weak_ptr<int>> all;
  for (int i = 0; i < 100; ++i) {
    auto item = std::make_shared<int>(i);
    all.push_back(item);
    (void)b.try_emit(std::move(item));
  }
  std::size_t alive = 0;
  for (const auto& item : all) alive += item.expired() ? 0 : 1;
  EXPECT_EQ(alive, 6U);  // three of the ring, three of the window
  co_return;
}

FIBER_TEST(broadcast, a_copy_that_throws_loses_nothing) {
  weir::broadcast<brittle> b(2);
  auto sub = b.subscribe();
  (void)b.try_emit(brittle(1));
  brittle::fuse = 1;
  const std::exception_ptr error = co_await error_of(sub.next());
  brittle::fuse = 0;
  EXPECT_EQ(boom_of(error), 1);
  auto again = co_await sub.next();
  EXPECT_EQ(again->n, 1);
}

TEST(broadcast, misuse_is_refused_with_a_clear_error) {
  EXPECT_EQ(code_thrown_by([] { int_broadcast b(0); }), errc::invalid_argument);
  EXPECT_EQ(code_thrown_by([] { int_broadcast b(-1); }), errc::invalid_argument);
  EXPECT_TRUE(contains(what_of(thrown_by([] { weir::replay<int> r(0); })), "replay"));
  in_order([]() -> task<> {
    int_broadcast b(1);
    for (overflow policy : {overflow::reject, overflow::stop, static_cast<overflow>(99)}) {
      const auto error = thrown_by([&] { (void)b.subscribe({.overflow = policy}); });
      EXPECT_EQ(code_of(error), errc::invalid_argument);
      EXPECT_TRUE(contains(what_of(error), "disconnect")) << what_of(error);
    }
    EXPECT_EQ(code_thrown_by([&] { (void)b.subscribe({.replay = -1}); }), errc::invalid_argument);
    EXPECT_EQ(code_thrown_by([&] { b.fail(nullptr); }), errc::invalid_argument);
    EXPECT_FALSE(b.closed());
    EXPECT_EQ(b.subscribers(), 0U);
    co_return;
  });
}

TEST(broadcast, use_on_another_loop_is_refused) {
  weir::run([]() -> task<> {
    int_broadcast b(1);
    auto sub = b.subscribe();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::loop_thread other(s);
      auto abroad = [&]() -> task<> {
        EXPECT_EQ(code_thrown_by([&] { (void)b.try_emit(1); }), errc::wrong_loop);
        EXPECT_EQ(code_thrown_by([&] { (void)b.subscribe(); }), errc::wrong_loop);
        EXPECT_EQ(code_thrown_by([&] { (void)sub.next(); }), errc::wrong_loop);
        EXPECT_EQ(code_thrown_by([&] { b.close(); }), errc::wrong_loop);
        co_return;
      };
      co_await s.spawn_on(other, abroad());
    });
  });
}
