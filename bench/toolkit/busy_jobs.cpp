// SPDX-License-Identifier: MIT
//
// Jobs of 1 and of 10 microseconds on 2 workers, against the time that two cores would take if
// handing them over cost nothing. The size is the work in microseconds.
#include <weir/weir.hpp>

#include "support/burn.hpp"
#include "support/finish_line.hpp"

namespace {

constexpr int rounds = 5;

weir::task<bench::cost> submit_many(weir::pool& pool, const bench::busy_jobs& busy) {
  bench::finish_line line;
  line.set(busy.jobs);
  const bench::stopwatch watch;
  for (std::int64_t i = 0; i < busy.jobs; ++i) {
    co_await pool.submit([&line, &busy, i] {
      std::uint64_t x = bench::burn(busy.steps, static_cast<std::uint64_t>(i));
      bench::keep(x);
      line.cross();
    });
  }
  line.wait();
  co_return busy.by_ideal(watch);
}

weir::task<> measure(const char* row, std::int64_t microseconds, std::int64_t size, int cores) {
  const bench::busy_jobs busy(microseconds, size, cores);
  bench::costs each;
  co_await weir::with_pool({.workers = 2, .queue_size = 1024},
                           [&](weir::pool& pool) -> weir::task<> {
                             co_await submit_many(pool, busy);
                             for (int round = 0; round < rounds; ++round)
                               each.add(co_await submit_many(pool, busy));
                           });
  each.report(row, size, "x");
}

weir::task<> measure_both(std::int64_t size, int cores) {
  co_await measure("busy_1us", 1, size, cores);
  co_await measure("busy_10us", 10, size, cores);
}

}  // namespace

int main(int argc, char** argv) {
  const int cores = bench::cores_of_two();
  weir::run(measure_both(bench::size_argument(argc, argv), cores));
}
