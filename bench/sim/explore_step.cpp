// SPDX-License-Identifier: MIT
//
// sim::explore over a small program: worlds made, run, checked for leaks and thrown away.
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

weir::task<> deposit(int& account) {
  for (int i = 0; i < 4; ++i) {
    const int seen = account;
    co_await weir::yield();
    account = seen + 1;
  }
}

weir::task<> program() {
  int account = 0;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (int i = 0; i < 3; ++i) s.spawn(deposit(account));
    co_return;
  });
}

void measure(weir::sim::strategy strategy, std::int64_t runs, const char* step, const char* run) {
  const auto start = bench::clock::now();
  const auto report = weir::sim::explore({.runs = runs, .strategy = strategy}, program);
  const double spent = bench::nanoseconds_since(start);
  bench::report(step, runs, spent / static_cast<double>(report.steps()), "ns");
  if (run != nullptr) bench::report(run, runs, spent / static_cast<double>(runs), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t runs = bench::size_argument(argc, argv);
  measure(weir::sim::random, runs, "step_random", nullptr);
  measure(weir::sim::pct(3), runs, "step_pct", "run_pct");
}
