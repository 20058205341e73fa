// SPDX-License-Identifier: MIT
//
// Runs of ten steps, `size` of them at any time: how many there are in a second, how long each of
// them takes and how often the disk is synced. A step gives a small number.
#include <weir/durable.hpp>
#include <weir/weir.hpp>

#include "support/counting_disk.hpp"
#include "support/latency.hpp"
#include "support/scratch.hpp"

namespace {

constexpr int steps = 10;

weir::task<int> ten_steps(int input) {
  int sum = input;
  for (int i = 0; i < steps; ++i) sum += co_await weir::step("add", [i] { return i; });
  co_return sum;
}

struct load {
  weir::durable::engine& engine;
  bench::run_times times{};
  bench::clock::time_point until{};
};

weir::task<> client(load& l) {
  while (bench::clock::now() < l.until) {
    const auto begun = bench::clock::now();
    const auto run = co_await l.engine.start<int>("ten_steps", {}, 1);
    co_await run.result();
    l.times.add(begun, bench::clock::now());
  }
}

weir::task<> all_clients(load& l, std::int64_t size, bench::clock::duration for_so_long) {
  l.until = bench::clock::now() + for_so_long;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < size; ++i) s.spawn(client(l));
    co_return;
  });
}

weir::task<> measure(std::int64_t size, const std::string& path) {
  weir_test::counting_disk disk(weir::real_disk());
  auto body = [&](weir::durable::engine& e) -> weir::task<> {
    e.add("ten_steps", ten_steps);
    co_await e.open();
    load l{e};
    co_await all_clients(l, size, bench::warm_up);
    l.times.clear();
    const std::int64_t syncs = disk.syncs;
    const auto start = bench::clock::now();
    co_await all_clients(l, size, bench::run_for);
    const double elapsed = bench::nanoseconds_since(start) / 1000;
    l.times.report_all(size, elapsed, static_cast<double>(disk.syncs - syncs));
  };
  co_await weir::durable::with_engine({.path = path, .disk = &disk}, body);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::scratch here(argv[0]);
  weir::run(measure(bench::size_argument(argc, argv), here.path("journal")));
}
