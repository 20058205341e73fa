// SPDX-License-Identifier: MIT
// from_callback on one loop: when it starts and stops, every overflow policy, its ends, and
// consumers that leave. With threads: from_callback_threads_test.cpp.
#include <functional>
#include <memory>
#include <optional>

#include "flow_support.hpp"

using namespace weir_test;
using int_emitter = weir::emitter<int>;
using weir::overflow;

namespace {

/// A source of callbacks: keeps the emitter and counts how often it was started and stopped.
struct device {
  std::optional<int_emitter> out;
  int started = 0;
  int stopped = 0;

  auto starter() {
    return [this](int_emitter e) {
      ++started;
      out.emplace(std::move(e));
      return [this] { ++stopped; };
    };
  }
  auto stream(std::int64_t capacity = 8, overflow policy = overflow::reject) {
    return weir::from_callback<int>(capacity, policy, starter());
  }
  /// What emit answers for each of first..last, as a text of 1 and 0.
  std::string emit_all(int first, int last) {
    std::string kept;
    for (int i = first; i <= last; ++i) kept += out->emit(i) ? '1' : '0';
    return kept;
  }
};

/// Lets a stream begin without taking anything from it: its first pull waits and is given up.
template <class S>
task<> begin(S& stream) {
  (void)co_await weir::race(stream.next(), weir::sleep(1ms));
}

long dropped_events() {
  long all = 0;
  for (const auto& e : weir::recent_events().events)
    if (e.name == "dropped" && e.object == "from_callback") all += static_cast<long>(e.number);
  return all;
}

}  // namespace

FIBER_TEST(from_callback, starts_at_the_first_pull_and_stops_at_the_end) {
  device d;
  {
    auto s = d.stream();
    co_await settled();
    EXPECT_EQ(d.started, 0);
    co_await begin(s);
    EXPECT_EQ(d.started, 1);
    EXPECT_EQ(d.emit_all(1, 3), "111");
    numbers got;
    for (int i = 0; i < 3; ++i) got.push_back(co_await take_one(s));
    EXPECT_EQ(got, from_to(1, 3));
    EXPECT_EQ(d.stopped, 0);
    d.out->close();
    auto end = co_await s.next();
    EXPECT_EQ(end, std::nullopt);
    EXPECT_EQ(d.stopped, 1);
  }
  EXPECT_EQ(d.started, 1);
  EXPECT_EQ(d.stopped, 1);
}

FIBER_TEST(from_callback, one_that_is_never_pulled_never_starts) {
  device d;
  {
    auto s = d.stream();
    auto moved = std::move(s);
    co_await moved.close();
  }
  EXPECT_EQ(d.started, 0);
  EXPECT_EQ(d.stopped, 0);
}

FIBER_TEST_IN_EVERY_ORDER(from_callback, an_emit_wakes_a_consumer_that_waits) {
  device d;
  numbers got;
  auto s = d.stream();
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    sc.spawn(take_all(s, got));
    while (!d.out) co_await weir::yield();
    for (int i = 1; i <= 4; ++i) {
      EXPECT_TRUE(d.out->emit(i));
      co_await weir::yield();
    }
    d.out->close();
  });
  EXPECT_EQ(got, from_to(1, 4));
  EXPECT_EQ(d.stopped, 1);
}

FIBER_TEST(from_callback, the_start_function_may_emit_and_close_at_once_and_return_nothing) {
  auto all = co_await (weir::from_callback<int>(4, overflow::reject,
                                                [](int_emitter e) {
                                                  for (int i = 1; i <= 3; ++i) (void)e.emit(i);
                                                  e.close();
                                                }) |
                       weir::to_vector());
  EXPECT_EQ(all, from_to(1, 3));
}

TEST(from_callback, a_full_one_rejects_or_drops_as_it_was_told_and_counts) {
  struct expectation {
    overflow policy;
    std::string kept;
    numbers got;
    long dropped;
  };
  const expectation all[] = {{overflow::reject, "11000", {1, 2}, 3},
                             {overflow::drop_newest, "11000", {1, 2}, 3},
                             {overflow::drop_oldest, "11111", {4, 5}, 3},
                             {overflow::conflate, "11111", {5}, 4}};
  for (const expectation& e : all) {
    SCOPED_TRACE(static_cast<int>(e.policy));
    in_order([&]() -> task<> {
      device d;
      auto s = d.stream(2, e.policy);
      co_await begin(s);
      EXPECT_EQ(d.emit_all(1, 5), e.kept);
      d.out->close();
      EXPECT_FALSE(d.out->emit(6));
      numbers got;
      co_await take_all(s, got);
      EXPECT_EQ(got, e.got);
      EXPECT_EQ(dropped_events(), e.dropped);
    });
  }
}

FIBER_TEST(from_callback, conflate_drops_all_that_waits_when_it_is_full) {
  device d;
  auto s = d.stream(3, overflow::conflate);
  co_await begin(s);
  EXPECT_EQ(d.emit_all(1, 5), "11111");  // 1 2 3, then 4 alone, then 4 5
  d.out->close();
  numbers got;
  co_await take_all(s, got);
  EXPECT_EQ(got, from_to(4, 5));
  EXPECT_EQ(dropped_events(), 3);
}

FIBER_TEST(from_callback, an_error_comes_after_the_items_once_and_then_the_end) {
  device d;
  auto s = d.stream();
  co_await begin(s);
  EXPECT_EQ(d.emit_all(1, 1), "1");
  d.out->fail(std::make_exception_ptr(boom(4)));
  d.out->fail(std::make_exception_ptr(boom(5)));
  d.out->close();
  EXPECT_FALSE(d.out->emit(2));
  const int item = co_await take_one(s);
  EXPECT_EQ(item, 1);
  const std::exception_ptr error = co_await error_of(s.next());
  EXPECT_EQ(boom_of(error), 4);
  EXPECT_EQ(d.stopped, 1);
  auto end = co_await s.next();
  EXPECT_EQ(end, std::nullopt);
}

FIBER_TEST(from_callback, a_start_function_that_throws_fails_the_stream) {
  int calls = 0;
  auto s = weir::from_callback<int>(1, overflow::reject, [&](int_emitter) -> void {
    ++calls;
    throw boom(1);
  });
  const std::exception_ptr error = co_await error_of(s.next());
  EXPECT_EQ(boom_of(error), 1);
  auto end = co_await s.next();
  EXPECT_EQ(end, std::nullopt);
  EXPECT_EQ(calls, 1);
}

FIBER_TEST(from_callback, leaving_early_stops_it_once_and_later_items_are_not_kept) {
  device d;
  {
    auto s = d.stream();
    co_await begin(s);
    EXPECT_TRUE(d.out->emit(1));
  }
  EXPECT_EQ(d.stopped, 1);
  EXPECT_FALSE(d.out->emit(2));
  d.out->close();
  EXPECT_EQ(d.stopped, 1);

  auto emit_three = [&](int_emitter e) {
    for (int i = 1; i <= 3; ++i) (void)e.emit(i);
    return [&] { ++d.stopped; };
  };
  auto two = co_await (weir::from_callback<int>(8, overflow::reject, emit_three) | weir::take(2) |
                       weir::to_vector());
  EXPECT_EQ(two, from_to(1, 2));
  EXPECT_EQ(d.stopped, 2);
}

FIBER_TEST(from_callback, what_nobody_took_is_destroyed_with_the_stream_not_with_the_emitter) {
  using item = std::shared_ptr<int>;
  std::optional<weir::emitter<item>> out;
  auto kept = std::make_shared<int>(1);
  {
    auto s = weir::from_callback<item>(4, overflow::reject, [&](weir::emitter<item> e) {
      (void)e.emit(kept);
      (void)e.emit(kept);
      out.emplace(std::move(e));
    });
    auto first = co_await s.next();
    EXPECT_EQ(**first, 1);
    EXPECT_EQ(kept.use_count(), 3);
  }
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_FALSE(out->emit(kept));
}

// Closing a stream interrupts its pending await.
FIBER_TEST(from_callback, close_ends_a_pending_next_and_stops_it) {
  device d;
  auto s = d.stream();
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    auto pending = sc.spawn(take_one(s));
    co_await settled();
    co_await s.close();
    EXPECT_EQ(d.stopped, 1);
    const int answer = co_await pending;
    EXPECT_EQ(answer, -1);
  });
}
FIBER_TEST_IN_EVERY_ORDER(from_callback, a_next_that_loses_a_race_loses_no_value) {
  device d;
  weir::event tick;
  numbers got;
  auto s = d.stream();
  auto emitting = [&]() -> task<> {
    while (!d.out) co_await weir::yield();
    for (int i = 1; i <= 4; ++i) {
      tick.set();
      EXPECT_TRUE(d.out->emit(i));
      co_await weir::yield();
    }
    d.out->close();
  };
  co_await weir::with_scope([&](weir::scope& sc) -> task<> {
    sc.spawn(emitting());
    for (;;) {
      auto won = co_await weir::race(s.next(), tick.wait());
      tick.reset();
      if (won.index() == 1) continue;
      if (!std::get<0>(won)) break;
      got.push_back(*std::get<0>(won));
    }
  });
  EXPECT_EQ(got, from_to(1, 4));
  EXPECT_EQ(d.stopped, 1);
}

FIBER_TEST(from_callback, an_item_whose_end_emits_does_not_lock_itself_out) {
  struct echo {
    explicit echo(std::function<void()> f) : at_end(std::make_shared<guard>(std::move(f))) {}
    struct guard {
      explicit guard(std::function<void()> f) : fn(std::move(f)) {}
      guard(const guard&) = delete;
      guard& operator=(const guard&) = delete;
      ~guard() { fn(); }
      std::function<void()> fn;
    };
    std::shared_ptr<guard> at_end;
  };
  for (overflow policy : {overflow::drop_oldest, overflow::conflate, overflow::reject}) {
    int ended = 0;
    std::optional<weir::emitter<echo>> out;
    auto s = weir::from_callback<echo>(1, policy, [&](weir::emitter<echo> e) { out.emplace(e); });
    co_await begin(s);
    for (int i = 0; i < 3; ++i)
      (void)out->emit(echo([&] {
        if (++ended == 1) (void)out->emit(echo([] {}));
      }));
    out->close();
    for (;;) {
      auto v = co_await s.next();
      if (!v) break;
    }
    EXPECT_EQ(ended, 3);
  }
}

TEST(from_callback, misuse_is_refused_with_a_clear_error) {
  device d;
  EXPECT_EQ(code_thrown_by([&] { (void)d.stream(0); }), errc::invalid_argument);
  EXPECT_EQ(code_thrown_by([&] { (void)d.stream(-1); }), errc::invalid_argument);
  for (overflow policy : {overflow::wait, overflow::disconnect, overflow::fail_emitter,
                          overflow::stop, static_cast<overflow>(77)}) {
    const auto error = thrown_by([&] { (void)d.stream(1, policy); });
    EXPECT_EQ(code_of(error), errc::invalid_argument);
    EXPECT_TRUE(contains(what_of(error), "drop_oldest")) << what_of(error);
  }
}
