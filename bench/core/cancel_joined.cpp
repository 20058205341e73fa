// SPDX-License-Identifier: MIT
//
// From asking a scope of `size` sleeping fibers to stop until all are unwound and joined.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 3;

weir::task<> sleeper(std::int64_t index) { co_await weir::sleep(bench::far_away(index)); }

weir::task<double> cancel_and_join(std::int64_t size) {
  bench::clock::time_point asked;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < size; ++i) s.spawn(sleeper(i));
    co_await weir::yield();  // behind all sleepers: they are parked when this returns
    asked = bench::clock::now();
    s.cancel();
  });
  co_return bench::nanoseconds_since(asked) / 1e6;
}

weir::task<> cancel_many(std::int64_t size) {
  bench::samples all;
  for (int round = 0; round < rounds; ++round) all.add(co_await cancel_and_join(size));
  bench::report("cancel_joined", size, all.median(), "ms");
}

}  // namespace

int main(int argc, char** argv) { weir::run(cancel_many(bench::size_argument(argc, argv))); }
