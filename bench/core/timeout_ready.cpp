// SPDX-License-Identifier: MIT
//
// A deadline around an operation that finishes at once: the common case of a guarded call.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 7;

[[gnu::noinline]] weir::task<std::int64_t> ready(std::int64_t value) { co_return value; }

weir::task<> guard_many(std::int64_t size) {
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const bench::stopwatch watch;
    for (std::int64_t i = 0; i < size; ++i) sum += co_await weir::with_timeout(1h, ready(i));
    const bench::cost cost = watch.per(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  each.report("timeout_ready", size);
}

}  // namespace

int main(int argc, char** argv) { weir::run(guard_many(bench::size_argument(argc, argv))); }
