// SPDX-License-Identifier: MIT
//
// Jobs enqueued in an arena without a limit, and with results in batches of 1024, each job in its
// own place; and the same batches in a task_group, where the thread that waits for them helps the
// workers.
#include <vector>

#include <oneapi/tbb/task_group.h>

#include "peers/tbb/workers.hpp"
#include "support/finish_line.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;
constexpr std::int64_t batch = 1024;

bench::cost enqueue_many(tbb::task_arena& arena, std::int64_t size) {
  bench::finish_line line;
  line.set(size);
  const bench::stopwatch watch;
  for (std::int64_t i = 0; i < size; ++i) arena.enqueue([&line] { line.cross(); });
  line.wait();
  return watch.per(size);
}

void fire(const char* row, int count, std::int64_t size) {
  bench::workers workers(count);
  bench::costs each;
  enqueue_many(workers.arena, size);
  for (int round = 0; round < rounds; ++round) each.add(enqueue_many(workers.arena, size));
  each.report(row, size);
}

// run_batch(results, begin) runs a job for each of the results and waits for all of them.
template <typename RunBatch>
bench::cost run_many(std::int64_t size, RunBatch run_batch) {
  std::vector<std::int64_t> results;
  std::int64_t sum = 0;
  const bench::stopwatch watch;
  for (std::int64_t begin = 0; begin < size; begin += batch) {
    results.assign(static_cast<std::size_t>(std::min(batch, size - begin)), 0);
    run_batch(results, begin);
    for (const std::int64_t result : results) sum += result;
  }
  const bench::cost cost = watch.per(size);
  if (sum != size * (size + 1) / 2) std::abort();
  return cost;
}

template <typename RunBatch>
void measure_results(const char* row, std::int64_t size, RunBatch run_batch) {
  bench::costs each;
  run_many(size, run_batch);
  for (int round = 0; round < rounds; ++round) each.add(run_many(size, run_batch));
  each.report(row, size);
}

void results(const char* row, int count, std::int64_t size) {
  bench::workers workers(count);
  measure_results(row, size, [&](std::vector<std::int64_t>& results, std::int64_t value) {
    bench::finish_line line;
    line.set(static_cast<std::int64_t>(results.size()));
    for (std::int64_t& result : results) {
      workers.arena.enqueue([&line, &result, value] {
        result = value + 1;
        line.cross();
      });
      ++value;
    }
    line.wait();
  });
}

void helped(const char* row, int count, std::int64_t size) {
  // A place for the thread that submits, besides those of the workers.
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(count) + 1);
  tbb::task_arena arena(count + 1, 1);
  arena.execute([&] {
    tbb::task_group group;
    measure_results(row, size, [&](std::vector<std::int64_t>& results, std::int64_t value) {
      for (std::int64_t& result : results) {
        group.run([&result, value] { result = value + 1; });
        ++value;
      }
      group.wait();
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  fire("pool_1", 1, size);
  fire("pool_2", 2, size);
  results("result_1", 1, size);
  results("result_2", 2, size);
  helped("helped_1", 1, size);
  helped("helped_2", 2, size);
}
