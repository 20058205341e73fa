// SPDX-License-Identifier: MIT
//
// Small jobs from one loop through the bounded backlog of a pool: submitted until the last one is
// done, and with a result for each of 1024 callers. The threads are there before the clock starts.
#include <weir/weir.hpp>

#include "support/finish_line.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;
constexpr std::int64_t backlog = 1024;

weir::task<bench::cost> submit_many(weir::pool& pool, std::int64_t size) {
  bench::finish_line line;
  line.set(size);
  const bench::stopwatch watch;
  for (std::int64_t i = 0; i < size; ++i) co_await pool.submit([&line] { line.cross(); });
  // This loop has nothing else to do, and all jobs are accepted: it may as well block.
  line.wait();
  co_return watch.per(size);
}

weir::task<> call(weir::pool& pool, std::int64_t& next, std::int64_t& sum, std::int64_t size) {
  while (next < size) {
    const std::int64_t value = next++;
    sum += co_await pool.run([value] { return value + 1; });
  }
}

weir::task<bench::cost> run_many(weir::pool& pool, std::int64_t size) {
  std::int64_t next = 0;
  std::int64_t sum = 0;
  const bench::stopwatch watch;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < backlog; ++i) s.spawn(call(pool, next, sum, size));
    co_return;
  });
  const bench::cost cost = watch.per(size);
  if (sum != size * (size + 1) / 2) std::abort();
  co_return cost;
}

template <typename Round>
weir::task<> measure(const char* row, std::int64_t workers, std::int64_t size, Round round) {
  bench::costs each;
  co_await weir::with_pool({.workers = workers, .queue_size = backlog},
                           [&](weir::pool& pool) -> weir::task<> {
                             co_await round(pool, size);
                             for (int i = 0; i < rounds; ++i) each.add(co_await round(pool, size));
                           });
  each.report(row, size);
}

weir::task<> measure_all(std::int64_t size) {
  co_await measure("pool_1", 1, size, submit_many);
  co_await measure("pool_2", 2, size, submit_many);
  co_await measure("result_1", 1, size, run_many);
  co_await measure("result_2", 2, size, run_many);
}

}  // namespace

int main(int argc, char** argv) { weir::run(measure_all(bench::size_argument(argc, argv))); }
