// SPDX-License-Identifier: MIT
// Generators that pull generators, with fibers inside. Keeps of the pages: "every concurrent work
// has an owner", "dump prints the tree", "unwinding a fiber unwinds all of its strands", and "a
// crash destroys the frames of a loop, and nothing else happens".
#include "stream_support.hpp"

using namespace weir_test;

namespace {

/// What a generator awaits, with fibers or regions of its own.
enum class shape : std::uint8_t { race, scope, limit, settled, nested_scopes };
constexpr shape all_shapes[] = {shape::race, shape::scope, shape::limit, shape::settled,
                                shape::nested_scopes};

task<int> visited(probe& p, weir::duration d) {
  const visit here(p);
  co_await weir::sleep(d);
  co_return 1;
}

task<> discarded(task<int> t) { (void)co_await std::move(t); }

task<> with_children(probe& p, int levels) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    const visit here(p);
    s.spawn(discarded(visited(p, 1ms)));
    if (levels > 1) co_await with_children(p, levels - 1);
  });
}

weir::stream<int> innermost(probe& p, shape how) {
  const visit here(p);
  for (int i = 0; i < 2; ++i) {
    if (how == shape::race) co_await weir::race(visited(p, 1ms), visited(p, 2ms));
    if (how == shape::scope) co_await with_children(p, 1);
    if (how == shape::limit) co_await weir::with_timeout(1h, visited(p, 1ms));
    if (how == shape::settled) (void)co_await weir::settle(visited(p, 1ms));
    if (how == shape::nested_scopes) co_await with_children(p, 3);
    co_yield i;
  }
}

/// Pulled through `levels` generators.
weir::stream<int> around(probe& p, shape how, int levels) {
  const visit here(p);
  auto inner = levels > 1 ? around(p, how, levels - 1) : innermost(p, how);
  while (auto v = co_await inner.next()) co_yield *v;
}

/// The same with another generator beside each, and a region around each pull.
weir::stream<int> between(probe& p, shape how) {
  const visit here(p);
  auto inner = weir::merge(around(p, how, 1), innermost(p, how));
  for (;;) {
    const auto v = co_await weir::with_timeout(1h, pull_one(inner));
    if (v < 0) co_return;
    co_yield v;
  }
}

weir::stream<int> counts() {
  for (int i = 0; i < 10; ++i) {
    co_await weir::sleep(1ms);
    co_yield i;
  }
}

/// Through `levels` generators; the outermost one gives the one below away after its first value.
weir::stream<int> passed_on(int levels, std::unique_ptr<weir::stream<int>>* to) {
  auto inner = levels > 1 ? passed_on(levels - 1, nullptr) : counts();
  const auto first = co_await inner.next();
  co_yield *first;
  if (to != nullptr) {
    *to = std::make_unique<weir::stream<int>>(std::move(inner));
    co_yield -1;
  }
  while (auto v = co_await inner.next()) co_yield *v;
}

template <class F>
void crash_at_every_step(F program) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (std::int64_t steps = 1; steps < 1000; ++steps) {
      probe p;
      const weir::sim::options options{
          .seed = seed, .strategy = weir::sim::random, .max_steps = steps};
      const auto error =
          thrown_by([&] { weir::sim::run(options, [&]() -> task<> { co_await program(p); }); });
      ASSERT_EQ(p.entered, p.left) << "seed " << seed << ", " << steps << " steps";
      ASSERT_EQ(live_timers(), 0);
      if (error == nullptr) break;
      ASSERT_LT(steps, 999);
    }
  }
}

int count_of(const std::string& text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST(stream_nested, a_crash_at_any_step_leaves_nothing) {
  for (const shape how : all_shapes) {
    for (const int levels : {1, 3})
      crash_at_every_step([&](probe& p) -> task<> {
        auto st = around(p, how, levels);
        (void)co_await pull_all(st);
      });
    crash_at_every_step([&](probe& p) -> task<> {
      auto st = weir::merge(between(p, how), around(p, how, 2));
      (void)co_await pull_all(st);
    });
    ASSERT_FALSE(testing::Test::HasFailure()) << "shape " << static_cast<int>(how);
  }
}

TEST(stream_nested, a_dump_shows_every_fiber) {
  for (const int levels : {1, 4}) {
    weir::sim::run({}, [&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        probe p;
        s.spawn([&]() -> task<> {
          auto st = around(p, shape::race, levels);
          (void)co_await pull_all(st);
        });
        co_await weir::sleep(500us);
        const std::string text = dump_text();
        EXPECT_EQ(count_of(text, " spawned at "), weir::live().fibers) << text;
        EXPECT_EQ(count_of(text, "  stream"), levels + 1) << text;
        EXPECT_EQ(count_of(text, "in visited"), 2) << text;
        co_await weir::sleep(1ms);  // between two races, and behind the second one
        EXPECT_EQ(count_of(dump_text(), " spawned at "), weir::live().fibers);
        co_await weir::sleep(10ms);
        EXPECT_EQ(count_of(dump_text(), "  stream"), 0);
      });
    });
  }
}

TEST(stream_nested, a_deadlock_shows_every_fiber) {
  weir::event never;
  const auto error = thrown_by([&] {
    weir::sim::run({}, [&]() -> task<> {
      auto inner = [&]() -> weir::stream<int> {
        auto waits = [&]() -> task<> { co_await never.wait(); };
        co_await weir::race(waits(), waits());
        co_yield 1;
      };
      auto outer = [&]() -> weir::stream<int> {
        auto in = inner();
        while (auto v = co_await in.next()) co_yield *v;
      };
      auto st = outer();
      (void)co_await st.next();
    });
  });
  EXPECT_EQ(code_of(error), errc::deadlock);
  EXPECT_TRUE(contains(what_of(error), "3 fibers")) << what_of(error);
  EXPECT_EQ(count_of(what_of(error), " spawned at "), 3) << what_of(error);
}

// The children of a scope inside go first, then the generators from the inside out, then the body.
FIBER_TEST_IN_EVERY_ORDER(stream_nested, a_cancelled_consumer_unwinds_them_from_the_inside_out) {
  text_log log;
  auto child = [](text_log& to) -> task<> {
    const end_note left(to, "child");
    co_await weir::sleep(1h);
  };
  auto inner = [&]() -> weir::stream<int> {
    const end_note left(log, "inner");
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(child(log));
      co_await weir::sleep(1h);
    });
    co_yield 1;
  };
  auto outer = [&]() -> weir::stream<int> {
    const end_note left(log, "outer");
    auto in = inner();
    while (auto v = co_await in.next()) co_yield *v;
  };
  auto consumer = [&]() -> task<> {
    const end_note left(log, "consumer");
    auto st = outer();
    (void)co_await st.next();
  };
  (void)co_await error_of(weir::with_timeout(1ms, consumer()));
  EXPECT_EQ(joined(log), "child,inner,outer,consumer");
}

// "stream_interrupted names the generator, the line of its await and what it awaited."
FIBER_TEST_IN_EVERY_ORDER(stream_nested, an_interrupted_pull_says_what_was_awaited_inside) {
  probe p;
  for (const shape how : {shape::race, shape::limit}) {
    auto st = around(p, how, 2);
    (void)co_await error_of(weir::with_timeout(500us, st.next()));
    const std::string text = what_of(co_await pull_error(st));
    EXPECT_TRUE(contains(text, "around")) << text;
    EXPECT_TRUE(contains(text, how == shape::race ? ": race of 2" : ": sleep")) << text;
    EXPECT_FALSE(contains(text, ": ;")) << text;
  }
  EXPECT_EQ(p.entered, p.left);
}

// A stream is freed by whoever has it, also if its loop is gone while a part of it was ready.
TEST(stream_nested, a_stream_may_outlive_its_loop) {
  auto gives = [](int v) -> weir::stream<int> {
    for (;;) {
      co_await weir::sleep(1ms);
      co_await weir::yield();
      co_yield v;
      co_await weir::yield();
    }
  };
  using merged = decltype(weir::merge(gives(0), gives(1), gives(2)));
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::unique_ptr<merged> kept;
    const weir::sim::options options{.seed = seed, .strategy = weir::sim::random};
    weir::sim::run(options, [&]() -> task<> {
      kept = std::make_unique<merged>(weir::merge(gives(0), gives(1), gives(2)));
      (void)co_await kept->next();
    });
    if (seed % 2 == 0) {
      kept.reset();
    } else {
      weir::sim::run({}, [&]() -> task<> {
        kept.reset();
        co_return;
      });
    }
  }
}

// "Its frames are destroyed with whoever owns it": that is where it was moved to, however deep.
TEST(stream_nested, a_stream_that_was_moved_out_does_not_end_with_those_that_pulled_it) {
  for (const int depth : {10, 70, 300}) {
    weir::sim::run({}, [&]() -> task<> {
      std::unique_ptr<weir::stream<int>> kept;
      {
        auto top = passed_on(depth, &kept);
        (void)co_await top.next();
        EXPECT_EQ(co_await pull_one(top), -1);
      }
      EXPECT_EQ(co_await pull_one(*kept), 1) << depth;
    });
  }
}
