// SPDX-License-Identifier: MIT
// Every kind of wait inside every composite, in a generator. Keeps of the page: "Cancelling a
// pending next() pauses the generator: the wait it is parked on is withdrawn and started again by
// the following next(). Waits that cannot be withdrawn without effect end the generator instead",
// and "What a generator may await does not depend on what is stacked above it."
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "agent_support.hpp"
#include "flow/stream_support.hpp"

namespace weir_test {

/// Each kind of wait is a class that is made with a scope and has
///   auto op()             a new wait, which has to wait
///   task<> release()      lets it be complete
///   static constexpr bool pausable    whether it can be withdrawn without effect
/// Each composite is a class with `static task<> await(make)`, where `make()` gives the wait.

struct plainly {
  static constexpr bool starts_nothing = true;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await make();
  }
};
struct under_a_limit {
  static constexpr bool starts_nothing = true;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await weir::with_timeout(1h, make());
  }
};
struct in_a_race {
  static constexpr bool starts_nothing = true;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await weir::race(weir::sleep(1h), make());
  }
};
struct in_any {
  static constexpr bool starts_nothing = true;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await weir::any(make(), weir::sleep(1h));
  }
};
struct in_all {
  static constexpr bool starts_nothing = true;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await weir::all(make(), weir::sleep(100us));
  }
};
struct in_a_race_of_races {
  static constexpr bool starts_nothing = true;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await weir::race(weir::with_timeout(1h, weir::race(make(), weir::sleep(2h))),
                              weir::sleep(1h));
  }
};
struct settled_op {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    const auto how = co_await weir::settle(make());
    EXPECT_TRUE(how.is_value());
  }
};
struct shielded_op {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await weir::shield(make());
  }
};
struct task_under_a_limit {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    co_await weir::with_timeout(1h, plainly::await(make));
  }
};
struct race_of_tasks {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    co_await weir::race(plainly::await(make), sleep_for(1h));
  }
};
struct all_settled_ops {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    (void)co_await weir::all_settled(make(), weir::sleep(100us));
  }
};
struct in_a_scope {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto child = s.spawn(plainly::await(make));
      co_await child;
    });
  }
};

struct under_a_token {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    const weir::cancel_source never_fires;
    (void)co_await weir::with_token(never_fires.token(), make());
  }
};
struct selected_op {
  static constexpr bool starts_nothing = false;
  template <class Make>
  static task<> await(Make make) {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto slow = s.spawn(sleep_for(1h));
      auto child = s.spawn(plainly::await(make));
      EXPECT_EQ(co_await weir::select(slow, child), 1U);
      slow.cancel();
    });
  }
};

template <class Op>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

/// Whether the composite runs nothing in a fiber or region of its own. A task is only paused if it
/// is awaited plainly.
template <class Op, class Composite>
inline constexpr bool starts_nothing =
    is_task<Op> ? std::is_same_v<Composite, plainly> : Composite::starts_nothing;

/// One cell of the matrix, without its types.
struct cell {
  cell() = default;
  cell(const cell&) = delete;
  cell& operator=(const cell&) = delete;
  virtual ~cell() = default;
  std::function<task<>()> await;
  std::function<task<>()> release;
  bool resumes = false;  // after a cancelled next()
  int left = 0;          // generators that have ended
};

inline weir::stream<int> waits_once(cell& c) {
  const auto end = weir::scope_exit([&] { ++c.left; });
  co_await c.await();
  co_yield 1;
}

inline weir::stream<int> tick() {
  co_await weir::sleep(1ms);
  co_yield 100;
}

inline task<> release_later(cell& c) {
  co_await weir::sleep(10ms);
  co_await c.release();
}

/// A next() is cancelled, then another one is made.
inline task<> cancelled_and_resumed(weir::scope& s, cell& c) {
  auto st = waits_once(c);
  s.spawn(release_later(c));
  (void)co_await error_of(weir::with_timeout(1ms, st.next()));
  std::exception_ptr error;
  std::optional<int> value;
  try {
    value = co_await st.next();
  } catch (...) {
    error = std::current_exception();
  }
  if (c.resumes) {
    EXPECT_EQ(value, 1) << what_of(error);
  } else if (error != nullptr) {
    EXPECT_EQ(code_of(error), errc::stream_interrupted) << what_of(error);
  }
  co_await st.close();
  EXPECT_EQ(c.left, 1);
}

/// A next() is cancelled, then the stream is closed, or destroyed.
inline task<> cancelled_and_ended(weir::scope& s, cell& c, bool close) {
  s.spawn(release_later(c));
  {
    auto st = waits_once(c);
    (void)co_await error_of(weir::with_timeout(1ms, st.next()));
    if (close) co_await st.close();
  }
  EXPECT_EQ(c.left, 1);
  co_await weir::sleep(20ms);
}

/// Another stream gives a value meanwhile.
inline task<> beside_another(weir::scope& s, cell& c) {
  auto st = weir::merge(waits_once(c), tick());
  s.spawn(release_later(c));
  numbers both = co_await pull_all(st);  // a simulated blocking call takes no time
  EXPECT_EQ(sorted(both), (numbers{1, 100}));
  EXPECT_EQ(c.left, 1);
}

/// The same, and then the stream is closed, or destroyed.
inline task<> beside_another_and_ended(weir::scope& s, cell& c, bool close) {
  s.spawn(release_later(c));
  auto st = weir::merge(waits_once(c), tick());
  EXPECT_GT(co_await pull_one(st), 0);
  if (!close) co_return;
  co_await st.close();
  EXPECT_EQ(c.left, 1);
}

using cell_program = std::function<task<>(weir::scope&, cell&)>;
using cell_maker = std::unique_ptr<cell> (*)(weir::scope&);

template <class Kind, class Composite>
struct cell_of final : cell {
  explicit cell_of(weir::scope& s) : kind(s) {
    await = [this] { return Composite::await([this] { return kind.op(); }); };
    release = [this] { return kind.release(); };
    resumes = Kind::pausable && starts_nothing<decltype(kind.op()), Composite>;
  }
  static std::unique_ptr<cell> make(weir::scope& s) { return std::make_unique<cell_of>(s); }
  Kind kind;
};

inline void in_one_cell(cell_maker make, const cell_program& program) {
  const weir::sim::explore_options all[] = {{.runs = 1, .strategy = weir::sim::fifo},
                                            {.runs = 25, .strategy = weir::sim::random}};
  auto run = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const std::unique_ptr<cell> c = make(s);
      co_await weir::sleep(1ms);  // agents are busy now
      co_await weir::with_scope([&](weir::scope& inner) -> task<> { co_await program(inner, *c); });
      EXPECT_EQ(c->left, 1);
    });
  };
  for (const auto& options : all)
    if (!weir::testing::explore(options, run).ok()) return;
}

template <class Kind, class... Composites>
void in_composites(const cell_program& program) {
  for (const cell_maker make : {&cell_of<Kind, Composites>::make...}) in_one_cell(make, program);
}

template <class Kind>
void in_all_composites() {
  const auto all = [](const cell_program& program) {
    in_composites<Kind, plainly, under_a_limit, in_a_race, in_any, in_all, in_a_race_of_races,
                  settled_op, shielded_op, task_under_a_limit, race_of_tasks, all_settled_ops,
                  in_a_scope, under_a_token, selected_op>(program);
  };
  all(cancelled_and_resumed);
  all([](weir::scope& s, cell& c) { return cancelled_and_ended(s, c, false); });
  all([](weir::scope& s, cell& c) { return cancelled_and_ended(s, c, true); });
  all(beside_another);
  all([](weir::scope& s, cell& c) { return beside_another_and_ended(s, c, false); });
  all([](weir::scope& s, cell& c) { return beside_another_and_ended(s, c, true); });
}

}  // namespace weir_test
