// SPDX-License-Identifier: MIT
// A crash at any step of a program that pulls streams leaves nothing of them.
#include "stream_support.hpp"

using namespace weir_test;

namespace {

weir::stream<int> nested(probe& p) {
  const visit here(p);
  auto inner = feed(p);
  for (;;) {
    auto v = co_await inner.next();
    if (!v) break;
    int same = co_await after(1ms, *v);
    co_yield same;
  }
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    const visit inside(p);
    s.spawn(sleep_for(1ms));
    co_await weir::sleep(2ms);
  });
  co_yield 9;
}

auto cleanup(probe& p) {
  return weir::finally([&p]() -> task<> {
    const visit inside(p);
    co_await weir::sleep(1ms);
  });
}

task<> pulls(probe& p) {
  auto whole = weir::merge(nested(p), nested(p)) | cleanup(p);
  (void)co_await pull_all(whole);
  auto paused = weir::merge(feed(p), feed(p)) | cleanup(p);
  int given_up = 0;
  (void)co_await pull_all_impatiently(paused, 700us, given_up);
  auto interrupted = nested(p);
  (void)co_await error_of(pull_all_impatiently(interrupted, 700us, given_up));
}

task<> sinks(probe& p) {
  auto busy = [](int) { return sleep_for(1ms); };
  co_await weir::all(feed(p) | cleanup(p) | weir::for_each(busy),
                     weir::any_stream<int>(feed(p) | weir::timeout_each(1h)) | weir::count());
}

task<> closes(probe& p) {
  auto s = weir::race_streams(nested(p), weir::never<int>() | cleanup(p)) | cleanup(p);
  co_await weir::with_scope([&](weir::scope& scope) -> task<> {
    scope.spawn(error_of(s.next()));
    co_await weir::sleep(2500us);
    co_await s.close();
  });
}

/// One generator is in flight between the pulls, and at the end of the stream.
task<> flights(probe& p) {
  auto whole = weir::merge(nested(p), feed(p)) | cleanup(p);
  for (int i = 0; i < 3; ++i) {
    (void)co_await whole.next();
    co_await weir::sleep(300us);
  }
  auto dropped = std::make_unique<decltype(weir::merge(nested(p), nested(p)))>(
      weir::merge(nested(p), nested(p)));
  for (int i = 0; i < 5; ++i) (void)co_await dropped->next();
  dropped.reset();
  auto around = [](probe& of) -> weir::stream<int> {
    const visit here(of);
    auto inner = weir::merge(nested(of), feed(of));
    for (;;) {
      auto v = co_await inner.next();
      if (!v) co_return;
      co_yield *v;
    }
  };
  auto deep = weir::merge(around(p), feed(p));
  for (int i = 0; i < 5; ++i) (void)co_await weir::with_timeout(1h, pull_one(deep));
}

/// Whether the program ended by itself; if not, the crash must have left nothing.
template <class F>
bool ends_within(const weir::sim::options& options, F program) {
  probe p{.items = {1, 2}, .pause = 1ms};
  const auto error =
      thrown_by([&] { weir::sim::run(options, [&]() -> task<> { co_await program(p); }); });
  EXPECT_EQ(p.entered, p.left) << options.max_steps << " steps";
  EXPECT_EQ(live_timers(), 0);
  return error == nullptr;
}

template <class F>
void crash_at_every_step(F program) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    weir::sim::options options{.seed = seed, .strategy = weir::sim::random, .max_steps = 1};
    while (!ends_within(options, program) && options.max_steps < 1000) ++options.max_steps;
    EXPECT_GT(options.max_steps, 5);
    EXPECT_LT(options.max_steps, 1000);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace

TEST(stream_crash, pulls_leave_nothing) { crash_at_every_step(pulls); }
TEST(stream_crash, sinks_leave_nothing) { crash_at_every_step(sinks); }
TEST(stream_crash, what_is_in_flight_leaves_nothing) { crash_at_every_step(flights); }
TEST(stream_crash, closing_leaves_nothing) { crash_at_every_step(closes); }
