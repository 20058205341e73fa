// SPDX-License-Identifier: MIT
//
// Small jobs from one loop through the bounded backlog of a pool, until the last one is done. The
// threads are there before the clock starts.
#include <weir/weir.hpp>

#include "support/finish_line.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;
constexpr std::int64_t backlog = 1024;

weir::task<double> submit_many(weir::pool& pool, std::int64_t size) {
  bench::finish_line line;
  line.set(size);
  const auto start = bench::clock::now();
  for (std::int64_t i = 0; i < size; ++i) co_await pool.submit([&line] { line.cross(); });
  // This loop has nothing else to do, and all jobs are accepted: it may as well block.
  line.wait();
  co_return bench::nanoseconds_since(start) / static_cast<double>(size);
}

weir::task<> measure(std::int64_t workers, std::int64_t size, const char* row) {
  bench::samples each;
  co_await weir::with_pool({.workers = workers, .queue_size = backlog},
                           [&](weir::pool& pool) -> weir::task<> {
                             co_await submit_many(pool, size);
                             for (int round = 0; round < rounds; ++round)
                               each.add(co_await submit_many(pool, size));
                           });
  bench::report(row, size, each.median(), "ns");
}

weir::task<> measure_both(std::int64_t size) {
  co_await measure(1, size, "pool_1");
  co_await measure(2, size, "pool_2");
}

}  // namespace

int main(int argc, char** argv) { weir::run(measure_both(bench::size_argument(argc, argv))); }
