// SPDX-License-Identifier: MIT
//
// From asking a retry that sleeps for 5 s to stop until it is joined, while `size` others are
// asleep: in time, and in turns of the loop. The turns are counted by a message that posts itself
// again, because a loop takes its messages once in every turn; the time is taken without it.
#include <stdexcept>

#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int repetitions = 1000;

// Not in a coroutine's frame: its last message may arrive after the count is over.
struct {
  weir::loop_ref loop;
  std::int64_t count = 0;
  bool on = false;

  void next() {
    ++count;
    if (on) loop.post([this] { next(); });
  }
} turns;

weir::task<> fails() {
  throw std::runtime_error("down");
  co_return;
}

auto retry_after(weir::duration pause) {
  return weir::op(fails) |
         weir::retry(
             {.attempts = 2, .base = pause, .ceiling = pause, .jitter = weir::jitter::none});
}

struct cancelled {
  double nanoseconds;
  std::int64_t turns;
};

weir::task<cancelled> cancel_one() {
  const auto sleepy = retry_after(5s);
  bench::clock::time_point asked;
  std::int64_t turn = 0;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn(sleepy());
    co_await weir::yield();  // behind the retry: it is asleep when this returns
    // From the start of a turn, as if an event from outside had asked for it.
    for (turn = turns.count; turns.on && turn == turns.count;) co_await weir::yield();
    turn = turns.count;
    asked = bench::clock::now();
    s.cancel();
  });
  const double took = bench::nanoseconds_since(asked);
  co_return cancelled{took, turns.count - turn + 1};
}

weir::task<double> median_time() {
  bench::samples each;
  for (int i = 0; i < repetitions; ++i) each.add((co_await cancel_one()).nanoseconds);
  co_return each.median();
}

weir::task<std::int64_t> most_turns() {
  std::int64_t most = 0;
  turns.loop = weir::this_loop();
  turns.on = true;
  turns.next();
  for (int i = 0; i < repetitions; ++i) most = std::max(most, (co_await cancel_one()).turns);
  turns.on = false;
  co_return most;
}

weir::task<> cancel_many(std::int64_t size) {
  const auto asleep = retry_after(1h);
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < size; ++i) s.spawn(asleep());
    co_await weir::yield();
    co_await median_time();  // a warm-up
    bench::report("cancel_retry", size, co_await median_time(), "ns");
    bench::report("cancel_turns", size, static_cast<double>(co_await most_turns()), "turns");
    s.cancel();
  });
}

}  // namespace

int main(int argc, char** argv) { weir::run(cancel_many(bench::size_argument(argc, argv))); }
