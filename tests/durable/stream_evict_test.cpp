// SPDX-License-Identifier: MIT
// A run is evicted while its generators have fibers inside, and comes back. Promises: a closed
// engine evicts its runs without running their cleanup, and a suspended run is replayed when it
// gets a completion.
#include <weir/durable.hpp>

#include "flow/stream_support.hpp"

using namespace weir_test;
namespace durable = weir::durable;

namespace {

enum class shape : std::uint8_t { limit, race, scope };
enum class around : std::uint8_t { nothing, one, three, merge, merge_of_nested };

task<int> slow(int v) {
  co_await weir::sleep(10s);
  co_return v;
}
task<> scoped_sleeper() { co_await weir::sleep(10s); }

weir::stream<int> innermost(shape how) {
  if (how == shape::limit) {
    const int v = co_await weir::with_timeout(1h, slow(1));
    co_yield v;
  } else if (how == shape::race) {
    const int v = co_await weir::race(slow(1), slow(1));
    co_yield v;
  } else {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      s.spawn(scoped_sleeper());
      co_return;
    });
    co_yield 1;
  }
}

weir::stream<int> nested(shape how, int levels) {
  auto inner = levels > 1 ? nested(how, levels - 1) : innermost(how);
  while (auto v = co_await inner.next()) co_yield *v;
}

weir::stream<int> ticks() {
  co_await weir::sleep(400ms);
  co_yield 100;
}

template <class S>
task<int> sum_of(S st) {
  int sum = 0;
  while (auto v = co_await st.next()) sum += *v;
  co_return sum;
}

task<int> job(int which) {
  const auto how = static_cast<shape>(which % 10);
  switch (static_cast<around>(which / 10)) {
    case around::nothing:
      co_return co_await sum_of(innermost(how));
    case around::one:
      co_return co_await sum_of(nested(how, 1));
    case around::three:
      co_return co_await sum_of(nested(how, 3));
    case around::merge:
      co_return co_await sum_of(weir::merge(innermost(how), ticks())) - 100;
    case around::merge_of_nested:
      co_return co_await sum_of(weir::merge(nested(how, 2), ticks())) - 100;
  }
  co_return 0;
}

template <class F>
void for_every_shape(F check) {
  for (int outside = 0; outside <= 4; ++outside)
    for (int how = 0; how <= 2; ++how) check(10 * outside + how);
}

durable::engine_options options_of(weir::sim::world& w) {
  durable::engine_options o;
  o.path = "/journal";
  o.disk = &w.disk();
  return o;
}

}  // namespace

TEST(stream_evict, a_run_that_is_evicted_at_the_close_goes_on_in_the_next_life) {
  for_every_shape([](int which) {
    weir::sim::world w({.seed = 1});
    w.run([&]() -> task<> {
      co_await durable::with_engine(options_of(w), [&](durable::engine& e) -> task<> {
        e.add("job", job);
        co_await e.open();
        (void)co_await e.start<int>("job", {.id = "a"}, which);
        co_await weir::sleep(1s);
      });
      co_await durable::with_engine(options_of(w), [&](durable::engine& e) -> task<> {
        e.add("job", job);
        co_await e.open();
        auto again = co_await e.start<int>("job", {.id = "a"}, which);
        EXPECT_EQ(co_await again.result(), 1) << which;
      });
    }());
  });
}

TEST(stream_evict, runs_that_are_suspended_in_turn_all_end) {
  for_every_shape([](int which) {
    weir::sim::world w({.seed = 1});
    w.run([&]() -> task<> {
      durable::engine_options options = options_of(w);
      options.max_live = 1;
      co_await durable::with_engine(options, [&](durable::engine& e) -> task<> {
        e.add("job", job);
        co_await e.open();
        auto a = co_await e.start<int>("job", {.id = "a"}, which);
        auto b = co_await e.start<int>("job", {.id = "b"}, which);
        EXPECT_EQ(co_await a.result(), 1) << which;
        EXPECT_EQ(co_await b.result(), 1) << which;
      });
    }());
  });
}
