// SPDX-License-Identifier: MIT
// A generator that stands in a line keeps its place while other streams give values. Keeps of the
// page: "What a generator may await does not depend on what is stacked above it", "first come,
// first served", and "after a cancelled next() nothing is in flight, no value is lost".
#include "stream_support.hpp"

using namespace weir_test;

namespace {

/// Each kind of line has `op()`, which has to wait, and `let_in()`, which lets the first one in.
/// `is_open()`: a newcomer would not have to wait.
struct counting {
  auto op() { return g.acquire(); }
  void let_in() { held.reset(); }
  bool is_open() { return g.available() > 0; }
  weir::counting_governor g{1};
  std::optional<weir::permit> held = g.try_acquire();
};
struct sharing {
  auto op() { return g.acquire(); }
  void let_in() { held.reset(); }
  bool is_open() { return g.available() > 0; }
  weir::shared_governor g{1};
  std::optional<weir::permit> held = g.try_acquire();
};
struct adapting {
  auto op() { return g.acquire(); }
  void let_in() { held.reset(); }
  bool is_open() { return g.available() > 0; }
  weir::adaptive_governor g{weir::adaptive_options{.initial = 1}};
  std::optional<weir::permit> held = g.try_acquire();
};
struct locking {
  auto op() { return m.lock(); }
  void let_in() { held.reset(); }
  bool is_open() { return !m.locked(); }
  weir::mutex m;
  std::optional<weir::mutex_guard> held = m.try_lock();
};
struct taking {
  auto op() { return q.next(); }
  void let_in() { (void)q.try_push(1); }
  bool is_open() { return q.size() > 0; }
  weir::queue<int> q{4};
};
struct pushing {
  pushing() { (void)q.try_push(0); }
  auto op() { return q.push(1); }
  void let_in() { (void)q.try_next(); }
  bool is_open() { return q.size() == 0; }
  weir::queue<int> q{1};
};
struct receiving {
  auto op() { return ends.second.next(); }
  void let_in() { (void)ends.first.try_send(1); }
  std::pair<weir::sender<int>, weir::receiver<int>> ends = weir::channel<int>(4);
};
struct sending {
  sending() { (void)ends.first.try_send(0); }
  auto op() { return ends.first.send(1); }
  void let_in() { (void)ends.second.try_next(); }
  std::pair<weir::sender<int>, weir::receiver<int>> ends = weir::channel<int>(1);
};
struct emitting {
  emitting() { (void)b.try_emit(0); }
  auto op() { return b.emit(1); }
  task<> let_in_later() { (void)co_await sub.next(); }
  weir::broadcast<int> b{1};
  weir::subscription<int> sub = b.subscribe();
};

template <class Line>
struct plainly {
  static task<> wait(Line& line) { (void)co_await line.op(); }
};
template <class Line>
struct in_a_race {
  static task<> wait(Line& line) { (void)co_await weir::race(line.op(), weir::sleep(1h)); }
};
template <class Line>
struct under_a_limit {
  static task<> wait(Line& line) { (void)co_await weir::with_timeout(1h, line.op()); }
};

template <class Line, template <class> class How>
weir::stream<int> stands(Line& line, int& got) {
  co_await How<Line>::wait(line);
  ++got;
  co_yield 1;
}

weir::stream<int> ticks() {
  for (;;) {
    co_await weir::sleep(1ms);
    co_yield 100;
  }
}

weir::stream<int> around(weir::stream<int> inner) {
  while (auto v = co_await inner.next()) co_yield *v;
}

template <class Line>
task<> rival(Line& line, int& got) {
  (void)co_await line.op();
  ++got;
}

template <class Line>
task<> let_in(Line& line) {
  if constexpr (requires { line.let_in_later(); }) {
    co_await line.let_in_later();
  } else {
    line.let_in();
    co_return;
  }
}

/// `st` has a generator that came before the rival; ticks come in between.
template <class Line, class S>
task<> comes_first(Line& line, S st, int& own) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    int others = 0;
    EXPECT_EQ(co_await pull_one(st), 100);
    s.spawn(rival(line, others));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await pull_one(st), 100);
    co_await let_in(line);
    co_await weir::sleep(1ms);
    EXPECT_EQ(others, 0);
    EXPECT_EQ(own, 0);  // nothing of a stream runs while nobody pulls it
    int values = 0;
    for (int i = 0; i < 3; ++i) values += co_await pull_one(st) == 1 ? 1 : 0;
    EXPECT_EQ(values, 1);
    EXPECT_EQ(own, 1);
    co_await let_in(line);
    co_await s.idle();
    EXPECT_EQ(others, 1);
  });
}

template <class Line, template <class> class How>
void keeps_its_place() {
  in_every_order([]() -> task<> {
    Line line;
    int got = 0;
    co_await comes_first(line, weir::merge(stands<Line, How>(line, got), ticks()), got);
  });
  in_every_order([]() -> task<> {
    Line line;
    int got = 0;
    co_await comes_first(line, weir::merge(ticks(), around(stands<Line, How>(line, got))), got);
  });
  in_every_order([]() -> task<> {
    Line line;
    int got = 0;
    auto both = [&]() -> weir::stream<int> {
      auto inner = weir::merge(stands<Line, How>(line, got), ticks());
      while (auto v = co_await inner.next()) co_yield *v;
    };
    co_await comes_first(line, both(), got);
  });
}

template <class Line>
void keeps_its_place_everywhere() {
  keeps_its_place<Line, plainly>();
  keeps_its_place<Line, in_a_race>();
  keeps_its_place<Line, under_a_limit>();
}

/// Crashes at every step: while it stands in line, and when it was let in while nobody pulled.
template <class Line>
void leaves_nothing_in_a_crash() {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::exception_ptr error;
    std::int64_t steps = 0;
    do {
      const weir::sim::options options{
          .seed = seed, .strategy = weir::sim::random, .max_steps = ++steps};
      error = thrown_by([&] {
        weir::sim::run(options, []() -> task<> {
          Line line;
          int got = 0;
          co_await comes_first(line, weir::merge(stands<Line, plainly>(line, got), ticks()), got);
        });
      });
      ASSERT_EQ(live_timers(), 0);
    } while (error != nullptr && steps < 1000);
    EXPECT_GT(steps, 10);
    ASSERT_LT(steps, 1000);
  }
}

enum class end { destroyed, closed };

/// It is dropped while it stands in line, or when it was let in while nobody pulled.
template <class Line>
void gives_back() {
  for (const bool let_in : {false, true})
    for (const end how : {end::destroyed, end::closed})
      in_every_order([&]() -> task<> {
        Line line;
        int got = 0;
        {
          auto st = weir::merge(stands<Line, plainly>(line, got), ticks());
          EXPECT_EQ(co_await pull_one(st), 100);
          if (let_in) line.let_in();
          if (let_in && how == end::closed) co_await weir::sleep(1ms);
          if (how == end::closed) co_await st.close();
        }
        EXPECT_EQ(got, 0);
        if (!let_in) line.let_in();
        co_await weir::sleep(1ms);
        EXPECT_TRUE(line.is_open());
      });
}

}  // namespace

TEST(stream_line, governors_serve_who_came_first) {
  keeps_its_place_everywhere<counting>();
  keeps_its_place_everywhere<sharing>();
  keeps_its_place_everywhere<adapting>();
}
TEST(stream_line, mutexes_serve_who_came_first) { keeps_its_place_everywhere<locking>(); }
TEST(stream_line, queues_serve_who_came_first) {
  keeps_its_place_everywhere<taking>();
  keeps_its_place_everywhere<pushing>();
}
TEST(stream_line, channels_serve_who_came_first) {
  keeps_its_place_everywhere<receiving>();
  keeps_its_place_everywhere<sending>();
}
TEST(stream_line, broadcasts_serve_who_came_first) { keeps_its_place_everywhere<emitting>(); }

TEST(stream_line, what_came_while_nobody_pulled_is_given_back_with_the_stream) {
  gives_back<counting>();
  gives_back<sharing>();
  gives_back<adapting>();
  gives_back<locking>();
  gives_back<taking>();
}

TEST(stream_line, a_crash_at_any_step_leaves_nothing) {
  leaves_nothing_in_a_crash<counting>();
  leaves_nothing_in_a_crash<sharing>();
  leaves_nothing_in_a_crash<locking>();
  leaves_nothing_in_a_crash<taking>();
  leaves_nothing_in_a_crash<sending>();
}

// Each of three is served in turn, however often another stream gives a value.
TEST(stream_line, another_stream_starves_nobody) {
  weir::sim::run({}, []() -> task<> {
    weir::counting_governor g(1);
    auto permitted = [&]() -> weir::stream<int> {
      for (;;) {
        {
          const auto p = co_await g.acquire();
          co_await weir::sleep(5ms);
        }
        co_yield 1;
      }
    };
    auto rivals = [&]() -> task<> {
      for (;;) {
        const auto p = co_await g.acquire();
        co_await weir::sleep(10ms);
      }
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(rivals());
      s.spawn(rivals());
      auto st = weir::merge(permitted(), ticks());
      int served = 0;
      const auto end = weir::now() + 2600ms;
      while (weir::now() < end) served += co_await pull_one(st) == 1 ? 1 : 0;
      EXPECT_GE(served, 95);  // of 104, if it were alone
      s.cancel();
    });
  });
}

FIBER_TEST_IN_EVERY_ORDER(stream_line, a_cancelled_next_leaves_the_line) {
  counting line;
  int got = 0;
  auto st = weir::merge(stands<counting, plainly>(line, got), ticks() | weir::take(1));
  EXPECT_EQ(co_await pull_one(st), 100);
  EXPECT_EQ(line.g.waiting(), 1);
  (void)co_await error_of(weir::with_timeout(2ms, st.next()));
  EXPECT_EQ(line.g.waiting(), 0);
  line.let_in();
  EXPECT_EQ(line.g.available(), 1);
  EXPECT_EQ(co_await pull_one(st), 1);
}

// The end of the scope of a pull is no reason to end what can be paused.
TEST(stream_line, the_end_of_the_scope_of_the_pull_pauses_it) {
  for (const bool let_in : {false, true})
    in_every_order([&]() -> task<> {
      taking line;
      int got = 0;
      auto st = weir::merge(stands<taking, plainly>(line, got), ticks());
      for (int i = 0; i < 3; ++i)
        co_await weir::with_scope([&](weir::scope&) -> task<> {
          EXPECT_EQ(co_await pull_one(st), 100);
          if (i == 2 && let_in) line.let_in();
        });
      if (!let_in) line.let_in();
      int values = 0;
      for (int i = 0; i < 3; ++i) values += co_await pull_one(st) == 1 ? 1 : 0;
      EXPECT_EQ(values, 1);
      EXPECT_EQ(got, 1);
    });
}
